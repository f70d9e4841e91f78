"""kind."""

from muster_dev.cluster import Cluster
from muster_dev.shell import CannotRunHereError


def up() -> Cluster:
    raise CannotRunHereError("not yet")
