"""Iterations that a user measured of a job at several sizes, and a plan whose prediction comes from them."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from muster.api.job import Count, Integer, Samples
from muster.api.model import Strict, Text, Tolerant
from muster.api.status import Plan, Prediction


class Run(Strict):
    """One measured iteration of the job at one size."""

    mini_batch: Samples = Field(description="Samples per GPU and iteration.")
    workers: Count
    servers: Annotated[Integer, Field(ge=0, le=512)] = 0
    gpus_per_worker: Annotated[Integer, Field(ge=1, le=1024)] | None = Field(None, description="Default: the job's.")
    nodes: Count | None = Field(None, description="That the workers ran on. Default: one each.")
    iteration_time_microseconds: Integer = Field(ge=1, le=10**12)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.nodes is not None and self.servers:
            raise ValueError("leave nodes out of a run with servers: every worker counts with its own link")
        if self.nodes is not None and self.nodes > self.workers:
            raise ValueError(f"{self.workers} workers cannot be on {self.nodes} nodes")
        return self


class Fit(Tolerant):
    """Where the prediction of a plan comes from, and what it would be without the runs."""

    model: str
    runs: int
    held_out_error_percent: int = Field(description="Mean, of sizes that were left out and predicted; rounded up.")
    message: Text
    rules: Prediction = Field(description="By the profile and the rules alone.")


class MeasuredPlan(Plan):
    """A plan that predicts by a model fitted to measured runs. What it chooses is what the rules choose."""

    fit: Fit
