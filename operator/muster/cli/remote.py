"""The commands that speak to a cluster: `submit`, `status`, `explain`, `logs`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from rich.table import Table

from muster.api import labels
from muster.api.job import TrainingJobSpec
from muster.api.status import ConditionType, TrainingJobStatus
from muster.cli import manifest
from muster.cli.exits import Code, Exit
from muster.cli.explain import sentences
from muster.cli.terminal import Terminal
from muster.cluster.client import JOBS, PODS, Client, Object
from muster.cluster.errors import ApiError, Conflict, NotFound, Rejected, Transient
from muster.cluster.throttle import TokenBucket
from muster.cluster.views import training_container
from muster.jobs import conditions
from muster.jobs.model import Role

_LOOK_SECONDS = 2.0
_LOG_LINES, _LOG_BYTES = 10_000, 16 * 2**20


@dataclass(frozen=True)
class Place:
    """Where the jobs are: the options that every command of a cluster has."""

    namespace: str | None
    context: str | None
    kubeconfig: Path | None

    def run(self, task: Callable[["Session"], Awaitable[None]]) -> None:
        """Run `task` with a connection; what the API server refuses ends the command with its message."""
        try:
            asyncio.run(self._run(task))
        except ApiError as error:
            raise Exit(Code.FAILED, error.message) from None
        except KeyboardInterrupt:
            raise Exit(Code.INTERRUPTED) from None

    async def _run(self, task: Callable[["Session"], Awaitable[None]]) -> None:
        kubeconfig = str(self.kubeconfig) if self.kubeconfig else None
        client = await Client.connect(TokenBucket(10, 10), kubeconfig, self.context)
        try:
            await task(Session(client, self.namespace or client.namespace))
        finally:
            await client.close()


@dataclass(frozen=True)
class Session:
    """A connection, and the namespace that is meant."""

    client: Client
    namespace: str

    async def job(self, name: str) -> tuple[TrainingJobSpec | None, TrainingJobStatus]:
        """A job's spec (None where this version cannot read it) and status."""
        try:
            raw = await self.client.get(JOBS, self.namespace, name)
        except NotFound as error:
            raise NotFound(f"{error.message} (namespace {self.namespace})") from None
        try:
            spec = TrainingJobSpec.model_validate(raw["spec"])
        except ValidationError:
            spec = None
        return spec, TrainingJobStatus.model_validate(raw.get("status") or {})

    async def changes(self, name: str) -> AsyncIterator[TrainingJobStatus]:
        """The job's status, each time that it has changed, to the job's end."""
        last: TrainingJobStatus | None = None
        while True:
            with contextlib.suppress(Transient):  # the next look may be luckier
                _, found = await self.job(name)
                if found != last:
                    last = found
                    yield found
                if conditions.is_over(found):
                    return
            await asyncio.sleep(_LOOK_SECONDS)

    async def pods(self, name: str, role: str | None) -> list[Object]:
        """A job's pods by role and index."""
        selector = f"{labels.JOB}={name}" + (f",{labels.ROLE}={role}" if role else "")
        found = [pod async for page, _ in self.client.pages(PODS, self.namespace, selector=selector) for pod in page]
        return sorted(found, key=_role_and_index)


def submit(place: Place, filename: Path, *, watch: bool) -> None:
    """Create the TrainingJobs of a file."""
    documents = manifest.load(filename)
    left_out = [*documents.others, *(f"ConfigMap {name}" for name in documents.config_maps)]
    if watch and len(documents.jobs) > 1:
        raise Exit(Code.USAGE, f"--watch follows one job, and {filename} has {len(documents.jobs)}")

    async def task(session: Session) -> None:
        for job in documents.jobs:
            namespace = place.namespace or job.namespace or session.namespace
            body = {**job.body, "metadata": {**job.body["metadata"], "namespace": namespace}}
            try:
                await session.client.create(JOBS, namespace, body)
            except Conflict:
                message = (
                    f"{job.name} exists already in namespace {namespace}: change it with kubectl apply, or delete it"
                )
                raise Conflict(message) from None
            terminal.say(f"created {labels.KIND} {job.name} in namespace {namespace}")
            if watch:
                await _watch(terminal, Session(session.client, namespace), job.name)

    terminal = Terminal()
    if left_out:
        terminal.say(f"left out, because only {labels.KIND}s are created: {', '.join(left_out)}")
    place.run(task)


def status(place: Place, name: str, *, watch: bool) -> None:
    """Show a job's status, or follow it."""

    async def task(session: Session) -> None:
        if watch:
            await _watch(terminal, session, name)
            return
        _, found = await session.job(name)
        terminal.plain(f"{name}: {found.state or 'not seen by an operator yet'}")
        terminal.plain(_counts(found))
        terminal.console.print(_conditions(found))

    terminal = Terminal()
    place.run(task)


def explain(place: Place, name: str) -> None:
    """The plan of a job in sentences."""

    async def task(session: Session) -> None:
        spec, found = await session.job(name)
        if spec is None:
            raise Exit(Code.FAILED, f"{name} has a spec that this version of Muster cannot read")
        for each in sentences(spec, found):
            terminal.plain(f"- {each}")
        if found.plan is None:
            sized = conditions.get(found, ConditionType.SIZED)
            why = f": {sized.reason}: {sized.message}" if sized and sized.message else ""
            infeasible = sized is not None and sized.status == "False"
            raise Exit(Code.INFEASIBLE if infeasible else Code.FAILED, f"{name} has no plan{why}")

    terminal = Terminal()
    place.run(task)


def logs(place: Place, name: str, *, role: str | None, follow: bool) -> None:
    """Print the logs of a job's pods."""
    if role is not None and role not in set(Role):
        raise Exit(Code.USAGE, f"--role {role}: there are {', '.join(Role)}")

    async def task(session: Session) -> None:
        if follow:
            await _follow(terminal, session, name, role)
            return
        pods = await session.pods(name, role)
        if not pods:
            await session.job(name)  # says so where there is no such job
            raise Exit(Code.FAILED, f"{name} has no pods" + (f" of role {role}" if role else ""))
        for pod in pods:
            where = session.namespace, pod["metadata"]["name"], training_container(pod)
            try:
                text = await session.client.log(*where, tail_lines=_LOG_LINES, limit_bytes=_LOG_BYTES)
            except Rejected as error:  # it has not started
                text = error.message
            for line in text.splitlines():
                _print(terminal, pod, line)

    terminal = Terminal()
    place.run(task)


async def _follow(terminal: Terminal, session: Session, name: str, role: str | None) -> None:
    """Every pod's log as it comes, those of pods that come later too, to the job's end."""
    tasks: dict[str, asyncio.Task[None]] = {}

    async def one(pod: Object) -> None:
        where = session.namespace, pod["metadata"]["name"], training_container(pod)
        try:
            async for line in session.client.follow_log(*where):
                _print(terminal, pod, line)
        except Rejected:  # it has not started: the next look tries again
            tasks.pop(pod["metadata"]["uid"], None)
        except NotFound:
            pass

    while True:
        _, status_ = await session.job(name)
        for pod in await session.pods(name, role):
            tasks.setdefault(pod["metadata"]["uid"], asyncio.create_task(one(pod)))
        if conditions.is_over(status_):
            await asyncio.gather(*tasks.values())
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _watch(terminal: Terminal, session: Session, name: str) -> None:
    """A line for each change, to the job's end, which is the command's exit code."""
    found = TrainingJobStatus()
    async for found in session.changes(name):
        terminal.say(f"{name}: {found.state or 'Pending'}; {_counts(found)}")
    failed = conditions.get(found, ConditionType.FAILED)
    if failed is not None and failed.status == "True":
        code = Code.INFEASIBLE if failed.reason == "Infeasible" else Code.FAILED
        raise Exit(code, f"{name} has failed: {failed.reason}: {failed.message}")


def _counts(found: TrainingJobStatus) -> str:
    roles = (("workers", found.workers), ("servers", found.servers))
    counts = ", ".join(f"{name} {count.ready}/{count.desired} ready" for name, count in roles)
    batch = f", mini-batch {found.plan.mini_batch.value}" if found.plan else ""
    return f"{counts}{batch}, {found.restarts} restarts"


def _conditions(found: TrainingJobStatus) -> Table:
    result = Table("condition", "status", "reason", "message", box=None, pad_edge=False, header_style="bold")
    for each in found.conditions:
        result.add_row(each.type, each.status, each.reason, each.message)
    return result


def _print(terminal: Terminal, pod: Object, line: str) -> None:
    role, index = _role_and_index(pod)
    terminal.prefixed(role, index, line)


def _role_and_index(pod: Object) -> tuple[str, int]:
    marks = pod["metadata"].get("labels") or {}
    index = marks.get(labels.INDEX, "0")
    return marks.get(labels.ROLE, "pod"), int(index) if index.isdecimal() else 0
