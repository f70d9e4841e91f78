"""`python3 -m muster_dev`."""

import argparse
import sys

from muster_dev import cache, tools
from muster_dev.shell import SetupError


def main() -> int:
    parser = argparse.ArgumentParser(prog="muster_dev", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("tools", help="build the binaries that the cache lacks, print where they lie")
    build.add_argument("--for", dest="sets", action="append", choices=sorted(cache.versions().sets))
    build.set_defaults(run=_tools)
    args = parser.parse_args()
    try:
        args.run(args)
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _tools(args: argparse.Namespace) -> None:
    sets = cache.versions().sets
    wanted = dict.fromkeys(name for each in args.sets or sets for name in sets[each])
    tools.ensure(wanted)
    for name in wanted:
        print(tools.path(name))


if __name__ == "__main__":
    sys.exit(main())
