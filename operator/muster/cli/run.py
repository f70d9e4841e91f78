"""`muster run`: a job on this machine, told as it happens."""

import functools
import signal
import sys
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

from muster import jobs, local
from muster.api import report_log
from muster.api.job import Profile, ProfileSource
from muster.api.status import ConditionType, TrainingJobStatus
from muster.cli import manifest
from muster.cli.exits import Code, Exit, why
from muster.cli.explain import sentences
from muster.cli.terminal import Terminal
from muster.jobs import conditions
from muster.jobs.model import Event, Job, Pod, Role
from muster.jobs.reasons import Reason
from muster.jobs.settings import Settings
from muster.local import devices
from muster.local.container import left_out
from muster.local.machine import log_of
from muster.local.ports import AddressBook
from muster.local.process import termination_log
from muster.sizing import text

_PROFILE = "given-profile"


def run(filename: Path, *, directory: Path | None, profile: Path | None, logs: Path) -> None:
    """Run every TrainingJob of the file, one after the other."""
    documents = manifest.load(filename)
    if directory is not None and not directory.is_dir():
        raise Exit(Code.USAGE, f"--directory {directory}: there is no such folder to run in")
    config_maps = dict(documents.config_maps)
    if profile is not None:
        config_maps[_PROFILE] = {"report.json": _text(profile)}
    for signal_ in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_, _interrupt)
    for one in documents.jobs:
        _check_roles(one)
    for one in documents.jobs:
        spec = one.spec
        if profile is not None:
            given = Profile(source=ProfileSource.CONFIG_MAP, config_map_name=_PROFILE)
            spec = spec.model_copy(update={"profile": given})
        elif (named := spec.profile.config_map_name) is not None and named not in config_maps:
            message = f"{one.name} takes its profile from ConfigMap {named}, which is not in {filename}: give --profile"
            raise Exit(Code.USAGE, message)
        job = Job(
            namespace=one.namespace or "default",
            name=one.name,
            uid=str(uuid.uuid4()),
            generation=1,
            created=datetime.now(UTC),
            spec=spec,
            status=TrainingJobStatus(),
            labels=one.labels,
        )
        folder = _fresh(logs / one.name)
        where = directory or (filename.parent if str(filename) != "-" else Path())
        _run_one(job, where, folder, config_maps)


def _run_one(job: Job, directory: Path, folder: Path, config_maps: dict[str, dict[str, str]]) -> None:
    tell = Narrator()
    assert job.spec is not None
    tell.say(f"{job.name} runs on this machine, in {directory.resolve()}; every process's log is in {folder}")
    if unused := left_out(job.spec.worker.template.spec):
        tell.say(f"not used, because no container is made: {', '.join(unused)}")
    termination = termination_log(log_of(folder.resolve(), Role.PROFILER, 0, 0))
    settings = Settings(
        address=AddressBook().address,
        profile_command=(sys.executable, "-m", "muster_profiler", "run", "--termination-log", str(termination), "--"),
        measure_network=False,  # Within one machine there is none.
        progress_interval=None,  # It is on the terminal.
        backoff_base=timedelta(seconds=1),
        backoff_cap=timedelta(seconds=30),
    )
    machine = local.Machine(directory, folder, tell, dict(config_maps))
    try:
        status = local.run(job, machine, tell, functools.partial(jobs.decide, settings=settings))
    except KeyboardInterrupt:
        tell.say("interrupted: every process has been ended")
        raise Exit(Code.INTERRUPTED) from None
    _conclude(tell, job, status)


def _conclude(tell: "Narrator", job: Job, status: TrainingJobStatus) -> None:
    if conditions.is_true(status, ConditionType.COMPLETE):
        tell.say(f"{job.name} is complete")
        return
    failed = conditions.get(status, ConditionType.FAILED)
    if failed is None or failed.status != "True":
        raise Exit(Code.FAILED, f"{job.name} did not run: it is {status.state or 'left alone'}")
    code = Code.INFEASIBLE if failed.reason == Reason.INFEASIBLE else Code.FAILED
    raise Exit(code, f"{job.name} has failed: {failed.reason}: {failed.message}")


class Narrator(Terminal):
    """Tells on the terminal what happens to the job."""

    def line(self, pod: Pod, text: str) -> None:
        """A process's line; the profiler's report is for Muster, and not shown."""
        if pod.role != Role.PROFILER or not text.startswith(report_log.MARKER):
            self.prefixed(str(pod.role), pod.index, text)

    def started(self, pod: Pod, gpus: tuple[str, ...]) -> None:
        """A process was started."""
        on = f" on GPU {', '.join(gpus)}" if gpus else ""
        again = f", attempt {pod.attempt}" if pod.attempt > 1 else ""
        self.say(f"started {pod.role}-{pod.index}{on}{again}")

    def event(self, event: Event) -> None:
        """What an operator would post on the job."""
        self.say(f"{event.reason}: {event.message}" if event.message else event.reason)

    def planned(self, job: Job) -> None:
        """The plan, explained."""
        assert job.spec is not None
        self.say("the plan")
        for each in sentences(job.spec, job.status):
            self.plain(f"  - {each}")


def _check_roles(job: manifest.Manifest) -> None:
    """What could never start here is told before anything is started."""
    wanted = 0
    for name in ("worker", "server", "chief", "evaluator"):
        role = getattr(job.spec, name)
        if role is None:
            continue
        if not role.template.training_container.get("command"):
            where = f"spec.{name}.template.spec.containers[{role.template.training_container['name']}].command"
            message = f"{job.name}: {where} is missing: write what the image's entrypoint runs, which is not known here"
            raise Exit(Code.USAGE, message)
        wanted += (getattr(role, "replicas", 1) or 1) * role.template.gpus
    if wanted > (there := len(devices.gpus()) if wanted else 0):
        message = f"{job.name} asks for {text.count(wanted, 'GPU')} at least, and this machine has {there or 'none'}"
        raise Exit(Code.INFEASIBLE, f"{message}: leave the GPUs out of its limits to run it here all the same")


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _fresh(folder: Path) -> Path:
    """The job's folder, without an earlier run's logs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("*.log"), *folder.glob("*.termination")):
            old.unlink()
    except OSError as error:
        raise Exit(Code.USAGE, f"{folder}: {why(error)}") from None
    return folder


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Exit(Code.USAGE, f"{path}: {why(error)}") from None
