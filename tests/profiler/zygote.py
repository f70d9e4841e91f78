"""Runs many small scripts without paying for the framework's import each time: imports it once, forks for each script.

One JSON job a line on standard input: script, arguments, out (where its output goes), settings (of the profiler's
trial, or null to run without it), imports (modules that are slow to import as well). One JSON answer a line: the exit
status, or why an import failed.
"""

import atexit
import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

import torch
from muster_profiler import trial
from muster_profiler.inject import watch

for module in ("torch.utils.data", "torch.nn.parallel", "torch._dynamo"):
    with contextlib.suppress(ImportError):  # no dynamo before torch 2.0; later the first optimiser would import it
        importlib.import_module(module)


def _child(job):
    out = os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.argv = [job["script"], *job["arguments"]]
    sys.path.insert(0, str(Path(job["script"]).parent))
    status = 0
    try:
        if job["settings"]:
            os.environ[trial.SETTINGS] = job["settings"]
            os.environ["TMPDIR"] = str(Path(job["settings"]).parent)
            tempfile.tempdir = None
            watch._start_agent("torch")
        runpy.run_path(job["script"], run_name="__main__")
    except SystemExit as error:
        status = error.code or 0
    except BaseException as error:  # noqa: BLE001
        sys.excepthook(type(error), error, error.__traceback__)
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def main():
    print(json.dumps(torch.__version__), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            for module in job["imports"]:
                importlib.import_module(module)
        except ImportError as error:
            print(json.dumps(str(error)), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            _child(job)
        _, status = os.waitpid(pid, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    main()
