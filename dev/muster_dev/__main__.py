"""`python3 -m muster_dev`: clusters for the tests and the demos, and what they are made of."""

import argparse
import shutil
import sys
from pathlib import Path

from muster_dev import api_server, cache, diagnostics, engine, images, kind, tools
from muster_dev.cluster import CommandError
from muster_dev.shell import SetupError, run, succeeds


def main() -> int:
    args = _parser().parse_args()
    try:
        args.run(args)
    except (SetupError, CommandError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muster_dev", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser("tools", help="build the binaries that the cache lacks, print where they lie")
    build.add_argument("--for", dest="sets", action="append", choices=sorted(cache.versions().sets))
    build.set_defaults(run=_tools)
    commands.add_parser("engine", help="find, or install and start, a container engine").set_defaults(run=_engine)
    start = commands.add_parser("up", help="bring the kind cluster up, from any state")
    start.add_argument("--no-images", action="store_true", help="do not build and load the project's images")
    start.set_defaults(run=_up)
    commands.add_parser("down", help="delete the kind cluster").set_defaults(run=lambda _: kind.down())
    commands.add_parser("status", help="what is up").set_defaults(run=_status)
    load = commands.add_parser("load", help="load images of the engine into the cluster")
    load.add_argument("image", nargs="+")
    load.set_defaults(run=lambda args: kind.load(args.image))
    commands.add_parser("images", help="build the project's images").set_defaults(run=_images)
    commands.add_parser("kubeconfig", help="print the path").set_defaults(
        run=lambda _: print(kind.cluster().kubeconfig)
    )
    logs = commands.add_parser("logs", help="collect what explains a failure")
    logs.add_argument("folder", type=Path)
    logs.set_defaults(run=_logs)
    clean = commands.add_parser("clean", help="delete the clusters, and the cache but for its binaries")
    clean.set_defaults(run=_clean)
    light = commands.add_parser("api-server", help="etcd and kube-apiserver as plain processes")
    light.add_argument("action", choices=["up", "down"])
    light.add_argument("--control-plane", action="store_true", help="with controller manager, scheduler and kwok")
    light.set_defaults(run=_api_server)
    return parser


def _tools(args: argparse.Namespace) -> None:
    sets = cache.versions().sets
    wanted = dict.fromkeys(name for each in args.sets or sets for name in sets[each])
    tools.ensure(wanted)
    for name in wanted:
        print(tools.path(name))


def _engine(_: argparse.Namespace) -> None:
    engine.ensure()
    print(
        run(
            "docker", "info", "-f", "Docker {{.ServerVersion}}, runtime {{.DefaultRuntime}}, {{.DockerRootDir}}"
        ).strip()
    )


def _up(args: argparse.Namespace) -> None:
    cluster = kind.up(load_images=not args.no_images)
    print(" ".join(["kubectl", *cluster.flags]))


def _status(_: argparse.Namespace) -> None:
    answers = succeeds("docker", "info")
    print(f"container engine: {'answers' if answers else 'does not answer'}")
    print(f"kind cluster: {'healthy' if answers and kind.healthy() else 'not up'}")
    if answers and kind.healthy():
        columns = (
            "NAME:.metadata.name,VERSION:.status.nodeInfo.kubeletVersion,GPUS:.status.allocatable.nvidia\\.com/gpu"
        )
        print(kind.cluster().kubectl("get", "nodes", "-o", f"custom-columns={columns}"), end="")
    print(f"api-server: {api_server.status()}")
    missing = [name for name in cache.versions().sets["node-image"] if not tools.path(name).exists()]
    print(f"cache: {cache.root()}" + (f", still to build: {', '.join(missing)}" if missing else ""))


def _images(_: argparse.Namespace) -> None:
    engine.ensure()
    for name in images.build_project():
        print(name)


def _logs(args: argparse.Namespace) -> None:
    args.folder.mkdir(parents=True, exist_ok=True)
    if kind.healthy():
        diagnostics.collect(kind.cluster(), args.folder)
    if succeeds("docker", "info"):
        kind.export_logs(args.folder / "nodes")
    shutil.copytree(cache.root() / "logs", args.folder / "setup", dirs_exist_ok=True)
    print(args.folder)


def _clean(_: argparse.Namespace) -> None:
    api_server.down()
    kind.down()
    for path in cache.root().glob("*"):
        if path.name not in ("locks", "tools", "uv") and not path.name.startswith("uv-"):
            cache.remove(path)


def _api_server(args: argparse.Namespace) -> None:
    if args.action == "down":
        api_server.down()
        return
    plane = api_server.up(api_server.CONTROL_PLANE if args.control_plane else ())
    print(" ".join(["kubectl", *plane.flags]))


if __name__ == "__main__":
    sys.exit(main())
