"""The four goals, as one question to a state: is it met? And two of them want as many GPUs as do, two as few."""

from dataclasses import dataclass
from enum import StrEnum

from muster.api.job import Goal
from muster.sizing import text
from muster.sizing.iteration import State
from muster.sizing.rounding import at_most


class Kind(StrEnum):
    """Also the reason (`limitedBy`) of a number of workers that the goal decided."""

    EFFICIENCY = "Efficiency"
    SPEEDUP = "Speedup"
    DEADLINE = "Deadline"
    COST = "Cost"


@dataclass(frozen=True)
class Target:
    """A goal in numbers: a share, a factor, seconds or GPU-seconds by its kind. `samples`: the whole training."""

    kind: Kind
    value: float
    samples: int = 0

    @classmethod
    def of(cls, goal: Goal) -> "Target":
        """From the user's goal."""
        if goal.efficiency_percent is not None:
            return cls(Kind.EFFICIENCY, goal.efficiency_percent / 100)
        if goal.speedup is not None:
            return cls(Kind.SPEEDUP, float(goal.speedup))
        if goal.deadline is not None:
            return cls(Kind.DEADLINE, goal.deadline.seconds, goal.deadline.samples)
        if goal.cost is not None:
            return cls(Kind.COST, goal.cost.gpu_seconds, goal.cost.samples)
        raise ValueError("give exactly one goal: efficiencyPercent, speedup, deadline or cost")

    @property
    def wants_most(self) -> bool:
        """As many GPUs as meet the goal, not as few."""
        return self.kind in (Kind.EFFICIENCY, Kind.COST)

    def measure(self, state: State) -> float:
        """What the goal is about: efficiency, speed-up, seconds or GPU-seconds."""
        match self.kind:
            case Kind.EFFICIENCY:
                return state.efficiency
            case Kind.SPEEDUP:
                return state.speedup
            case Kind.DEADLINE:
                return self.samples / state.samples_per_second
            case Kind.COST:
                return self.samples / state.samples_per_second * state.gpus

    def met(self, state: State) -> bool:
        """An exact fit meets the goal."""
        value = self.measure(state)
        more_is_better = self.kind in (Kind.EFFICIENCY, Kind.SPEEDUP)
        return at_most(self.value, value) if more_is_better else at_most(value, self.value)

    def closeness(self, state: State) -> float:
        """The larger the nearer to the goal."""
        value = self.measure(state)
        return value if self.kind in (Kind.EFFICIENCY, Kind.SPEEDUP) else -value

    def words(self, value: float) -> str:
        """A value of the goal's kind in words."""
        match self.kind:
            case Kind.EFFICIENCY:
                return f"{text.percent(value)} of linear"
            case Kind.SPEEDUP:
                return f"{text.number(value)} times one GPU"
            case Kind.DEADLINE:
                return text.seconds(value)
            case Kind.COST:
                return f"{text.number(value)} GPU-seconds"
