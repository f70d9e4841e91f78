"""Runs when a Python of the trial starts: hands on to the image's own sitecustomize, then lets the profiler watch for a
framework. A script must not fail because of it, whatever goes wrong here."""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _chain() -> None:
    ours = sys.modules.pop("sitecustomize", None)
    kept = list(sys.path)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        removed = [entry for entry in kept if os.path.abspath(entry or ".") == _here]
        sys.path[:0] = removed
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


def _watch() -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(_here)))
    sys.path.insert(0, package)
    try:
        from muster_profiler.inject import watch
    finally:
        sys.path.remove(package)
    watch.start()


_chain()
if "MUSTER_PROFILE_TRIAL" in os.environ:
    try:
        _watch()
    except Exception as error:  # noqa: BLE001
        print("muster-profile: cannot watch this process: %s" % error, file=sys.stderr)
