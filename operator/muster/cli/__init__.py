"""The command line, `muster` and `kubectl muster`.

Every command's words stand in `muster.cli.app`, what it does in a module of its own that is imported when it is called,
so that `muster --help` is quick. Exit codes: 0 done, 1 it failed, 2 wrong usage, 3 infeasible, 130 interrupted.
"""

import sys


def main() -> None:
    """The console script."""
    from muster.cli.app import app
    from muster.cli.exits import Exit

    try:
        app(prog_name="muster")
    except Exit as exit_:
        if exit_.message:
            print(f"error: {exit_.message}", file=sys.stderr)
        sys.exit(exit_.code)
    except BrokenPipeError:  # `muster plan | head`
        sys.stderr.close()
        sys.exit(1)
