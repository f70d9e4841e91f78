"""The step of the iteration that costs most beyond compute, and what would help against it."""

from muster.api.status import Bottleneck
from muster.sizing import text
from muster.sizing.iteration import Exchange, Law, Model, State

REMEDIES = {
    "LoadData": "More loader workers, faster storage, or a cache near the GPUs.",
    "PrepareData": "Prepare data ahead of training, on more CPU cores, or on the GPU.",
    "CopyToDevice": "Pinned memory and an asynchronous copy of the next mini-batch.",
    "Update": "A fused optimiser, or an update that overlaps with the backward pass.",
    "Exchange": "More or faster links, fewer bytes (fp16 gradients), or a larger mini-batch per GPU.",
    "Overhead": "Profile with the loader's parts told apart to see which step waits.",
}
NEGLIGIBLE = 0.005
"""Share of the iteration below which nothing is worth a remedy."""


def bottleneck(model: Model, state: State) -> Bottleneck | None:
    """The largest exposed step, or None where nothing is exposed that matters."""
    steps = {**_overhead_steps(model, state), "Exchange": state.exposed}
    step = max(steps, key=lambda name: steps[name])
    exposed = steps[step]
    if exposed <= NEGLIGIBLE * state.iteration:
        return None
    share = text.percent(exposed / state.iteration)
    remedy = REMEDIES[step]
    if (
        step == "Exchange"
        and model.exchange is Exchange.SERVERS
        and model.servers_for(state.workers).bound == "MaxReplicas"
    ):
        remedy = "A higher server.maxReplicas. " + remedy
    return Bottleneck(
        step=step,
        exposed_microseconds=round(exposed * 1e6),
        message=f"{step} leaves {text.seconds(exposed)} of every iteration exposed, {share}.",
        remedy=remedy,
    )


def _overhead_steps(model: Model, state: State) -> dict[str, float]:
    """The overhead by step, in the proportions of the profile; what was not told apart is `Overhead`."""
    parts = model.candidate.point.overhead_parts if model.candidate.point else None
    measured = {
        "LoadData": parts.load_nanoseconds if parts else None,
        "PrepareData": parts.prepare_nanoseconds if parts else None,
        "CopyToDevice": parts.host_to_device_nanoseconds if parts else None,
        "Update": parts.update_nanoseconds if parts else None,
    }
    grown = state.gpus if model.law is Law.SHARED_LOAD else 1
    steps = {name: (value or 0) / 1e9 * grown for name, value in measured.items()}
    told = sum(steps.values())
    if told > state.overhead:
        return {name: value * state.overhead / told for name, value in steps.items()}
    return {**steps, "Overhead": state.overhead - told}
