"""What is measured and what is asked: one iteration of a job at one size, and the arrays that the models compute on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Configuration:
    """Where one job runs: `minibatch` samples on each of `gpus` GPUs, spread over `nodes` nodes.

    `densest` is the number of GPUs on the fullest node (as even as possible, if not given). `servers` is the number of
    parameter servers; 0 stands for all-reduce. With servers, each node is one worker.
    """

    minibatch: int
    gpus: int
    nodes: int = 1
    servers: int = 0
    densest: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= self.gpus:
            raise ValueError(f"{self.gpus} GPUs on {self.nodes} nodes: every node needs at least one GPU")
        if self.minibatch < 1 or self.servers < 0:
            raise ValueError(f"minibatch {self.minibatch} and servers {self.servers}: at least 1 and at least 0")
        if not self.densest:
            object.__setattr__(self, "densest", -(-self.gpus // self.nodes))


@dataclass(frozen=True)
class Sample:
    """A measured iteration, in seconds. `exposed`: the part in which the device waits for the exchange, if known."""

    configuration: Configuration
    iteration: float
    exposed: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= (self.exposed or 0.0) < self.iteration:
            raise ValueError(f"an iteration of {self.iteration} s that waits {self.exposed} s for its exchange")


class Fitted(Protocol):
    """A model whose parameters are known."""

    def predict(self, configurations: Sequence[Configuration]) -> "Floats":
        """Seconds of one iteration at each configuration. ValueError for a kind of placement that no sample had."""
        ...


class Model(Protocol):
    """A law with free parameters."""

    def fit(self, samples: Sequence[Sample]) -> Fitted:
        """The parameters with the least relative error. Raises ValueError where the samples cannot tell them."""
        ...


@dataclass(frozen=True, eq=False)
class Columns:
    """Configurations as arrays of one shape."""

    minibatch: "Floats"
    gpus: "Floats"
    nodes: "Floats"
    densest: "Floats"
    servers: "Floats"

    @classmethod
    def of(cls, configurations: Sequence[Configuration]) -> "Columns":
        """One row a configuration."""
        import numpy as np

        rows = [(c.minibatch, c.gpus, c.nodes, c.densest, c.servers) for c in configurations]
        return cls(*np.array(rows, dtype=float).reshape(-1, 5).T)

    @property
    def placement(self) -> "NDArray[np.int_]":
        """ALONE, ONE_NODE, SEVERAL_NODES or SERVERS of each row."""
        import numpy as np

        several = np.where(self.nodes > 1, SEVERAL_NODES, ONE_NODE)
        return np.where(self.gpus == 1, ALONE, np.where(self.servers > 0, SERVERS, several))

    @property
    def volumes(self) -> "Floats":
        """Times the parameters' bytes that the busiest link carries in an iteration, in both directions together.

        All-reduce: 2 (G - 1) / G, a ring over every GPU. Servers: 2 N_w / N_ps, each node one worker.
        """
        import numpy as np

        ring = 2 * (self.gpus - 1) / self.gpus
        return np.where(self.servers > 0, 2 * self.nodes / np.maximum(self.servers, 1), ring)


ALONE, ONE_NODE, SEVERAL_NODES, SERVERS = range(4)
PLACEMENT_NAMES = ("on one GPU", "on one node", "across nodes", "with parameter servers")


def require(known: "NDArray[np.int_]", asked: "NDArray[np.int_]") -> None:
    """Every kind of placement that is asked for was measured; ValueError names the first that was not."""
    for kind in sorted(set(asked.tolist()) - set(known.tolist()) - {ALONE}):
        raise ValueError(f"no sample ran {PLACEMENT_NAMES[kind]}: measure one such iteration before predicting others")


def times(samples: Sequence[Sample]) -> "tuple[Floats, Floats]":
    """The iterations and their exposed parts, in seconds; NaN where it is not known."""
    import numpy as np

    exposed = [np.nan if s.exposed is None else s.exposed for s in samples]
    return np.array([s.iteration for s in samples]), np.array(exposed)
