"""What tests ask of a live cluster: one namespace's jobs and pods, with waits that say what they saw on giving up."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

PATIENCE_SECONDS = 400
"""A wait is over as soon as what it waits for holds; on a busy machine that takes long."""


class Cluster(Protocol):
    """What the fixtures offer."""

    def kubectl(self, *args: str, stdin: str | None = None) -> str: ...

    def apply(self, manifest: Any, namespace: str | None = None) -> str: ...


@dataclass(frozen=True)
class Namespace:
    """One namespace of a cluster."""

    cluster: Cluster
    name: str

    def kubectl(self, *args: str) -> str:
        return self.cluster.kubectl("-n", self.name, *args)

    def apply(self, *manifests: dict[str, Any]) -> None:
        for manifest in manifests:
            self.cluster.apply(manifest, namespace=self.name)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def items(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        return json.loads(self.kubectl("get", kind, "-l", selector, "-o", "json"))["items"]

    def pods(self, job: str, role: str = "") -> list[dict[str, Any]]:
        """The job's pods that are not being deleted."""
        selector = f"muster.dev/job={job}" + (f",muster.dev/role={role}" if role else "")
        return [pod for pod in self.items("pods", selector) if "deletionTimestamp" not in pod["metadata"]]

    def status(self, job: str) -> dict[str, Any]:
        return self.get("tjob", job).get("status", {})

    def condition(self, job: str, kind: str) -> dict[str, Any]:
        found = [c for c in self.status(job).get("conditions", []) if c["type"] == kind]
        return found[0] if found else {"status": "absent", "reason": "", "message": ""}

    def wait_for(self, job: str, condition: str) -> None:
        """As a user waits."""
        self.kubectl("wait", f"--for=condition={condition}", f"tjob/{job}", f"--timeout={PATIENCE_SECONDS}s")

    def eventually(self, what: str, true: Callable[[], Any]) -> Any:
        """Polls `true` until it holds, and returns what it returned."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (seen := true()):
            late = time.monotonic() > end
            assert not late, f"not within {PATIENCE_SECONDS} s: {what}\n{self.kubectl('get', 'tjob,pods,events')}"
            time.sleep(0.5)
        return seen
