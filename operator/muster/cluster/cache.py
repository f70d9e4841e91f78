"""What the operator knows of the cluster: small frozen views; the newest version wins.

Three things feed it: watch events, complete listings, and the answers to the operator's own writes, so that a reconcile
sees what the last one did before any event tells of it. They arrive in any order; versions put them right: those of one
kind are comparable numbers (Kubernetes 1.35 says so officially, every earlier release behaves so).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from muster.api import labels
from muster.api.inventory import Inventory, Node
from muster.cluster import views
from muster.cluster.client import CONFIG_MAPS, JOBS, NODES, PODS, QUOTAS, SERVICES, Object, Resource
from muster.cluster.views import Child, PackedJob, Quota
from muster.jobs.model import Observed, Pod

V = TypeVar("V")


class Key(NamedTuple):
    """A job's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class _Entry(Generic[V]):
    view: V
    uid: str
    version: int
    seen: int  # the listing during or after which it was last seen


class Table(Generic[V]):
    """The objects of one kind, by group (what they are looked up by) and name."""

    def __init__(self, view: Callable[[Object], V | None], key: Callable[[Object], Key | None]) -> None:
        self._view = view
        self.key = key
        self._groups: dict[Key, dict[str, _Entry[V]]] = {}
        self._gone: set[str] = set()
        self._listing = 0
        self.untold: set[tuple[Key, str]] = set()
        """What a listing or an answer has shown, and no watch has told of."""

    def put(self, raw: Object, *, watched: bool = False) -> bool:
        """Take in an object, unless a newer version is known; returns whether that changed anything."""
        meta = raw["metadata"]
        name, uid, version, group = meta["name"], meta["uid"], int(meta.get("resourceVersion") or 0), self.key(raw)
        if group is None or uid in self._gone:
            return False
        known = self._groups.get(group, {}).get(name)
        if known is not None:
            known.seen = self._listing
            if watched:
                self.untold.discard((group, name))
            if version <= known.version:
                return False
        view = self._view(raw)
        if view is None:
            return self._drop(group, name)
        self._groups.setdefault(group, {})[name] = _Entry(view, uid, version, self._listing)
        if not watched and (known is None or known.uid != uid):
            self.untold.add((group, name))
        return known is None or known.view != view

    def remove(self, raw: Object) -> bool:
        """The object was deleted. It does not come back by an older listing or event."""
        meta = raw["metadata"]
        group = self.key(raw)
        return group is not None and self.forget(group, meta["name"], meta["uid"])

    def forget(self, group: Key, name: str, uid: str) -> bool:
        """As `remove`, of an object that the server does not know any more."""
        self._gone.add(uid)
        known = self._groups.get(group, {}).get(name)
        return known is not None and known.uid == uid and self._drop(group, name)

    def begin_listing(self) -> None:
        """A complete listing starts: what it does not show is pruned at its end."""
        self._listing += 1

    def end_listing(self, version: int) -> set[Key]:
        """Prune what the listing of this version did not show and nothing newer told of; returns the changed groups.

        An object newer than the listing stays: the listing was answered from an older state.
        """
        lost = [
            (group, name)
            for group, entries in self._groups.items()
            for name, entry in entries.items()
            if entry.seen < self._listing and entry.version <= version
        ]
        for group, name in lost:
            self._drop(group, name)
        self._gone.clear()
        return {group for group, _ in lost}

    def prune(self, group: Key, shown: set[str], version: int) -> bool:
        """As `end_listing`, of one group whose listing showed these names."""
        entries = self._groups.get(group, {})
        lost = [name for name, entry in entries.items() if name not in shown and entry.version <= version]
        for name in lost:
            self._drop(group, name)
        return bool(lost)

    def is_news(self, raw: Object) -> bool:
        """Whether a watch's listing shows what it has shown before, or something unknown: it lists anew."""
        group, name = self.key(raw), raw["metadata"]["name"]
        return group is None or name not in self._groups.get(group, {}) or (group, name) not in self.untold

    def get(self, group: Key, name: str) -> V | None:
        """One object's view."""
        entry = self._groups.get(group, {}).get(name)
        return entry.view if entry else None

    def version(self, group: Key, name: str) -> int:
        """The version of one object, 0 where it is not known."""
        entry = self._groups.get(group, {}).get(name)
        return entry.version if entry else 0

    def group(self, group: Key) -> dict[str, V]:
        """All of one group, by name."""
        return {name: entry.view for name, entry in self._groups.get(group, {}).items()}

    def values(self) -> Iterator[V]:
        """All objects."""
        return (entry.view for entries in self._groups.values() for entry in entries.values())

    def groups(self) -> Iterator[Key]:
        """The groups that have objects."""
        return iter(self._groups)

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._groups.values())

    def _drop(self, group: Key, name: str) -> bool:
        entries = self._groups.get(group, {})
        if entries.pop(name, None) is None:
            return False
        self.untold.discard((group, name))
        if not entries:
            del self._groups[group]
        return True


class Cache:
    """All tables, and the news of them: `changed(key)` is called for every job whose snapshot may have changed."""

    def __init__(self, changed: Callable[[Key], None]) -> None:
        self._changed = changed
        self.jobs: Table[PackedJob] = Table(views.packed_job, _own_key)
        self.pods: Table[Pod] = Table(views.pod_view, _job_key)
        self.services: Table[Child] = Table(views.child_view, _job_key)
        self.config_maps: Table[Child] = Table(views.child_view, _job_key)
        self.nodes: Table[Node] = Table(views.node_view, lambda _: _CLUSTER)
        self.quotas: Table[Quota] = Table(views.quota_view, _namespace_key)
        self.nodes_known = False
        """Whether nodes may be read and have been listed."""
        self._tables: dict[Resource, Table[Any]] = {
            JOBS: self.jobs,
            PODS: self.pods,
            SERVICES: self.services,
            CONFIG_MAPS: self.config_maps,
            NODES: self.nodes,
            QUOTAS: self.quotas,
        }

    def table(self, resource: Resource) -> Table[Any]:
        """The table of a kind."""
        return self._tables[resource]

    def put(self, resource: Resource, raw: Object, *, watched: bool = False) -> None:
        """Take in an object that an event, a listing or an answer shows."""
        table = self._tables[resource]
        if table.put(raw, watched=watched):
            self._tell(resource, table.key(raw))

    def remove(self, resource: Resource, raw: Object) -> None:
        """Take out an object that was deleted."""
        table = self._tables[resource]
        if table.remove(raw):
            self._tell(resource, table.key(raw))

    def forget(self, resource: Resource, key: Key, name: str, uid: str) -> None:
        """Take out an object of a job that the server does not know any more."""
        if self._tables[resource].forget(key, name, uid):
            self._tell(resource, key)

    def end_listing(self, resource: Resource, version: int) -> None:
        """See `Table.end_listing`."""
        for key in self._tables[resource].end_listing(version):
            self._tell(resource, key)

    def untold(self) -> set[tuple[Resource, Key, str]]:
        """Everything that a watch should have told of and has not."""
        return {
            (resource, *each)
            for resource, table in self._tables.items()
            if resource in WATCHED
            for each in table.untold
        }

    def put_pods(self, key: Key, found: list[Object], version: int) -> None:
        """Take in a complete listing of one job's pods."""
        for raw in found:
            self.put(PODS, raw)
        if self.pods.prune(key, {raw["metadata"]["name"] for raw in found}, version):
            self._changed(key)

    def observe(self, key: Key) -> Observed | None:
        """A snapshot of one job, without what only the controller remembers; None where the job is not known."""
        packed = self.jobs.get(key, key.name)
        if packed is None:
            return None
        job = packed.unpack()
        return Observed(
            job=job,
            pods=tuple(self.pods.group(key).values()),
            services=_owned(self.services.group(key), job.uid),
            config_maps=_owned(self.config_maps.group(key), job.uid),
            inventory=self._inventory(key.namespace),
        )

    def _inventory(self, namespace: str) -> Inventory | None:
        if not self.nodes_known:
            return None
        quotas = self.quotas.group(Key(namespace, "")).values()
        left = min((quota.gpus_left for quota in quotas), default=None)
        return Inventory(nodes=tuple(self.nodes.values()), gpu_quota=left)

    def _tell(self, resource: Resource, key: Key | None) -> None:
        if key is not None and resource not in (NODES, QUOTAS):  # they change often, and no job waits for them alone
            self._changed(key)


WATCHED = (JOBS, PODS, SERVICES, NODES, QUOTAS)
"""Kinds that watches tell of. Config maps are listed alone: nothing has to happen at once when one changes."""
_CLUSTER = Key("", "")


def _own_key(raw: Object) -> Key:
    return Key(raw["metadata"]["namespace"], raw["metadata"]["name"])


def _job_key(raw: Object) -> Key | None:
    job = (raw["metadata"].get("labels") or {}).get(labels.JOB)
    return Key(raw["metadata"]["namespace"], job) if job else None


def _namespace_key(raw: Object) -> Key:
    return Key(raw["metadata"]["namespace"], "")


def _owned(children: dict[str, Child], uid: str) -> tuple[str, ...]:
    return tuple(name for name, child in children.items() if child.owner_uid == uid)
