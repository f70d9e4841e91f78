"""This machine in the place of a cluster: carries out what was decided with processes, and shows them as pods."""

import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from muster.api import labels, report_log
from muster.api.report import Report
from muster.jobs.model import (
    Action,
    CreateConfigMap,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeleteService,
    Event,
    Job,
    Observed,
    Pod,
    ReadProgress,
    ReadReport,
    ReportProblem,
    Role,
)
from muster.local import devices
from muster.local.container import Command, command
from muster.local.process import Process

_REPORT_KEY = "report.json"
_LOG_BYTES = 16 * 2**20  # of the end of a log, where the report is


class Listener(Protocol):
    """Is told what happens. Called from several threads."""

    def line(self, pod: Pod, text: str) -> None:
        """A process printed a line."""

    def started(self, pod: Pod, gpus: tuple[str, ...]) -> None:
        """A process was started."""

    def event(self, event: Event) -> None:
        """Something that a cluster's operator would post on the job."""

    def planned(self, job: Job) -> None:
        """The job's status has a plan, for the first time or another one."""


def log_of(logs: Path, role: Role | None, index: int, attempt: int) -> Path:
    """Where a process's log is."""
    return logs / (f"{role}-{index}" + (f".attempt-{attempt}" if attempt > 1 else "") + ".log")


@dataclass
class _Waiting:
    """A pod that no GPUs are free for yet."""

    pod: Pod
    command: Command


@dataclass
class Machine:
    """Processes in place of pods.

    `directory`: where they run; `logs`: an empty folder for what they print; `config_maps`: data by name.
    """

    directory: Path
    logs: Path
    listener: Listener
    config_maps: dict[str, Mapping[str, str]] = field(default_factory=dict)
    gpus: tuple[str, ...] = field(default_factory=devices.gpus)

    def __post_init__(self) -> None:
        self._changed = threading.Event()
        self._processes: dict[str, Process] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._held: dict[str, tuple[str, ...]] = {}
        self._services: list[str] = []
        self._report: Report | ReportProblem | None = None
        self._digest = self._report_of = ""

    def observe(self, job: Job) -> Observed:
        """The snapshot that deciding is given."""
        for name in [name for name, process in self._processes.items() if process.ended and process.view().deleting]:
            del self._processes[name]
        for process in self._processes.values():
            process.tick()
        self._place()
        pods = [
            *(process.view() for process in self._processes.values()),
            *(each.pod for each in self._waiting.values()),
        ]
        return Observed(
            job=job,
            pods=tuple(pods),
            services=tuple(self._services),
            config_maps=tuple(self.config_maps),
            report=self._report,
            report_digest=self._digest,
            report_of=self._report_of,
            inventory=devices.inventory(len(self.gpus)),
        )

    def wait(self, seconds: float) -> None:
        """Until a process ends, at most so long."""
        self._changed.wait(seconds)
        self._changed.clear()

    @property
    def idle(self) -> bool:
        """Whether no process runs or waits."""
        return not self._waiting and all(process.ended for process in self._processes.values())

    def act(self, job: Job, action: Action) -> None:
        """Carry out one action."""
        match action:
            case CreatePod(name, body):
                if name not in self._processes and name not in self._waiting:
                    self._create(job, name, body)
            case DeletePod(name, _, grace_seconds):
                self._waiting.pop(name, None)
                if process := self._processes.get(name):
                    process.stop(grace_seconds)
            case CreateService(name):
                self._services.append(name)
            case DeleteService(name):
                self._services.remove(name)
            case CreateConfigMap(name, body):
                self.config_maps[name] = body["data"]
                (self.logs / _REPORT_KEY).write_text(body["data"].get(_REPORT_KEY, ""))
            case ReadReport(pod, config_map):
                self._read_report(pod, config_map)
            case ReadProgress():
                pass  # it is on the terminal
            case DeleteJob():
                pass  # its time to live concerns an object, of which there is none

    def stop(self) -> None:
        """End every process: politely, then by force when its grace is over, or at once where interrupted meanwhile."""
        self._waiting.clear()
        try:
            for process in self._processes.values():
                process.stop()
            while not self.idle:
                for process in self._processes.values():
                    process.tick()
                self.wait(0.2)
        finally:
            for process in self._processes.values():
                process.kill()
            while not self.idle:
                self.wait(0.2)

    def _create(self, job: Job, name: str, body: Mapping[str, Any]) -> None:
        marks = body["metadata"]["labels"]
        pod = Pod(
            name=name,
            uid=str(uuid.uuid4()),
            owner_uid=job.uid,
            role=Role(marks[labels.ROLE]),
            index=int(marks[labels.INDEX]),
            attempt=int(marks[labels.ATTEMPT]),
            phase="Pending",
            created=datetime.now(UTC),
        )
        self._waiting[name] = _Waiting(pod, command(body))
        self._place()

    def _place(self) -> None:
        """Start what waits, as far as there are GPUs."""
        for name, waiting in list(self._waiting.items()):
            busy = {gpu for holder, held in self._held.items() if holder in self._alive() for gpu in held}
            free = [gpu for gpu in self.gpus if gpu not in busy]
            wanted = waiting.command.gpus
            if wanted > len(free):
                message = f"{wanted} GPUs are needed, {len(free)} of this machine's {len(self.gpus)} are free"
                waiting.pod = replace(waiting.pod, unschedulable=message)
                continue
            self._held[name] = tuple(free[:wanted])
            del self._waiting[name]
            self._start(waiting)

    def _alive(self) -> set[str]:
        return {name for name, process in self._processes.items() if not process.ended}

    def _start(self, waiting: _Waiting) -> None:
        pod = replace(waiting.pod, unschedulable="", started=datetime.now(UTC))
        held = self._held[pod.name]
        self.listener.started(pod, held)
        self._processes[pod.name] = Process(
            pod,
            waiting.command,
            environment=waiting.command.environment | {"CUDA_VISIBLE_DEVICES": ",".join(held), "PYTHONUNBUFFERED": "1"},
            directory=self.directory,
            log=log_of(self.logs, pod.role, pod.index, pod.attempt),
            on_line=self.listener.line,
            on_end=self._changed.set,
        )

    def _read_report(self, pod: str | None, config_map: str | None) -> None:
        process = self._processes.get(pod or "")
        try:
            if process is not None:
                self._report_of = process.view().uid
                self._report, self._digest = report_log.read(process.tail(_LOG_BYTES), process.termination_message())
            else:
                self._report_of = config_map or ""
                text = self.config_maps.get(self._report_of, {}).get(_REPORT_KEY)
                if text is None:
                    raise report_log.ReportError(f"the job's file has no ConfigMap {config_map} with {_REPORT_KEY}")
                self._report, self._digest = report_log.parse(text), report_log.digest(text)
        except report_log.ReportError as error:
            self._report = ReportProblem(str(error), datetime.now(UTC))
