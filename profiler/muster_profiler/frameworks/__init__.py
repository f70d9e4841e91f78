"""The seam between the profiler's core and a training framework.

The core (`agent`) knows iterations, blocks and results; a `Framework` knows where an iteration's events come from, what
a batch is made of, how time and memory are read on its device, and which parameters are learnt.
"""

from __future__ import annotations

from typing import Any, Callable, Protocol

MODULES = {"torch": "muster_profiler.frameworks.torch"}
"""The framework's own module, whose import starts the agent, and the module here that speaks for it by `create()`."""


class Source(Protocol):
    """One pass over a data loader."""

    key: int
    """The same for every pass over the same data."""
    position: int
    """Batches handed out so far, repeated ones included."""
    repeated: int
    """How many of them were repeated ones; the agent counts them."""
    length: int | None
    """Batches of a whole pass; None if it is not known."""
    batch_size: int | None
    samples: int | None
    """Of a whole pass; None if it is not known."""
    workers: int
    prefetched: int
    """Batches that can lie ready; the iterations after a switch that still live on them are not timed."""


class Events(Protocol):
    """What a framework tells the agent. Called in the script's thread; each may raise `Stop`."""

    def fetch(self, source: Source, produce: Callable[[], Any]) -> Any:
        """The script asks for a batch; returns what it gets, by `produce` or a repeated one."""

    def collated(self, nanoseconds: int) -> None:
        """A batch was put together from its samples in the script's own process."""

    def step_begin(self, optimizer: object) -> None: ...

    def step_end(self, closure: bool) -> None: ...

    def backward(self) -> None: ...


class Kept(Protocol):
    """A batch that the script got, as it was then."""

    @property
    def bytes(self) -> int: ...

    @property
    def samples(self) -> int | None:
        """The leading dimension of its first tensor."""

    def outline(self) -> Any:
        """What it is made of, without its data."""

    def again(self, resident: bool) -> Any:
        """The batch, whatever the script did to it since; `resident`: already on the device."""


class Pretence(Protocol):
    """While it lasts, the script computes on tensors that have sizes and no data, and changes nothing that is real."""

    def batch(self, outline: Any, samples: int, wanted: int) -> Any:
        """The batch of so many samples whose outline this is, as if it had the wanted number of them."""

    def restart_peak(self) -> None: ...

    def peak(self) -> int:
        """Bytes at the peak since `restart_peak`, of what was made since the pretence began."""

    def end(self) -> None:
        """Back to real tensors. The script may hold pretended ones that it made: nothing that it saves may get out."""


class Framework(Protocol):
    """One framework in the script's process."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def install(self, events: Events) -> None:
        """Hook the framework so that it tells `events`. Must not change what any script computes."""

    def rank(self) -> int:
        """This process's place among those that train together; 0 leads."""

    def world(self) -> int: ...

    def optimizers_exist(self) -> bool:
        """Whether the script has made an optimiser that will tell of its steps."""

    def mark(self) -> Any:
        """A point in time on the device's own timeline, cheap to take."""

    def nanoseconds(self, begin: Any, end: Any, own: int) -> int:
        """Between two marks, on the device's timeline (waits for it if it must), or on the host's less `own`, the
        profiler's work in between."""

    def host_seconds(self, begin: Any, end: Any) -> float:
        """Between two marks on the host's timeline, without waiting."""

    def keep(self, batch: Any) -> Kept:
        """A copy of a batch to hand out again later. Raises if it is of a kind that cannot be copied."""

    def resident_differs(self) -> bool:
        """Whether the device has its own memory, so that copying batches to it takes time."""

    def device(self) -> dict[str, Any]:
        """The report's `device`."""

    def parameters(self) -> dict[str, Any]:
        """The report's `parameters`, from the optimisers that stepped; called when gradients are present."""

    def restart_peak(self) -> None:
        """Begin a new peak of device memory."""

    def peak(self) -> int:
        """Bytes at the peak since `restart_peak`."""

    def memory_facts(self) -> dict[str, int]:
        """What else bears on fitting: bytes reserved beyond the peak, retries of the allocator."""

    def pretend(self) -> Pretence | None:
        """Begin to pretend; None if this script cannot be pretended with."""

    def convolutional(self) -> bool:
        """Whether what is learnt may hold convolutions."""

    def watch_convolutions(self) -> Any:
        """Watch the convolutions of the iteration that begins; returns what `convolutions` is then given."""

    def convolutions(self, watch: Any, seconds: float) -> dict[str, Any]:
        """End the watch, and measure what it saw: `rows` of the report's `convolutions`, `leftOut`, `troubles`."""

    def switch(self, setting: str) -> None:
        """Apply a setting of the whole process; called when the framework is there, and after the first iterations."""

    def environment(self) -> dict[str, str]: ...

    def warnings(self) -> list[dict[str, str]]: ...
