"""What an operator can be told, as one typed object. Each field can be given as `MUSTER_<FIELD>` in the environment."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_PREFIX = "MUSTER_"


def _names(value: object) -> object:
    return tuple(filter(None, (name.strip() for name in value.split(",")))) if isinstance(value, str) else value


class Settings(BaseModel):
    """Of one operator process. The defaults are those of the chart."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespaces: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """The namespaces to serve, comma-separated in the environment; all of them where empty."""
    kubeconfig: str | None = None
    """Where the cluster is, outside of one. In a pod the service account is used."""
    context: str | None = None
    """Of the kubeconfig; its current one where empty."""
    workers: int = Field(8, ge=1, le=256)
    """Jobs that are reconciled at once."""
    parallel_actions: int = Field(16, ge=1, le=256)
    """Pods of one job that are created or deleted at once."""
    write_rate: float = Field(50, gt=0)
    """API writes a second, over all jobs."""
    write_burst: int = Field(100, ge=1)
    """API writes at once, over all jobs."""
    resync_seconds: float = Field(300, ge=1)
    """Between two complete listings, which find what a watch has missed."""
    count_interval_seconds: float = Field(1, ge=0)
    """Least time between two writes of a status of which only the counts of pods have changed."""
    watch_nodes: bool = True
    """Read the nodes, so that no plan asks for more than there is. Turned off by itself where not permitted."""
    leader_elect: bool = False
    """Act only while holding the lease: needed for more than one replica."""
    lease_namespace: str = "default"
    """Where the lease lies."""
    lease_name: str = "muster-operator"
    lease_seconds: float = Field(15, ge=3)
    """How long a lease holds that is not renewed."""
    identity: str = ""
    """Of this replica, for the lease and the events; the host's name where empty."""
    metrics_port: int = Field(8080, ge=0, le=65535)
    """Serves /metrics and /readyz; 0: not served."""
    health_port: int = Field(8081, ge=0, le=65535)
    """Serves /healthz; 0: not served."""
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    profiler_image: str = "muster-profiler:dev"
    """Holds `muster_profiler`, which an init container copies into the profiling pod."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **given: object) -> "Settings":
        """From `MUSTER_*`; `given` wins where it is not None. Raises pydantic.ValidationError, naming the field."""
        found: dict[str, object] = {
            name: environment[_PREFIX + name.upper()]
            for name in cls.model_fields
            if environment.get(_PREFIX + name.upper())
        }
        return cls.model_validate(found | {name: value for name, value in given.items() if value is not None})
