"""The script's command line, and where a candidate mini-batch goes into it."""

from __future__ import annotations

from typing import Mapping

VARIABLE = "MUSTER_MINIBATCH"
PLACEHOLDER = "$(%s)" % VARIABLE

TRACKERS = {
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false",
    "AIM_DISABLED": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}
"""A profile is no training run: the trackers that can be switched off by the environment are."""


def mentions(arguments: list[str], environment: Mapping[str, str]) -> bool:
    """Whether the batch size reaches the script: the variable is named in an argument or in a variable's value."""
    return any(VARIABLE in text for text in [*arguments, *environment.values()])


def applied(
    arguments: list[str], environment: Mapping[str, str], mini_batch: int | None
) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of one trial. None: the script keeps its own batch size."""
    if mini_batch is None:
        return list(arguments), dict(environment)
    changed = {key: value.replace(PLACEHOLDER, str(mini_batch)) for key, value in environment.items()}
    changed[VARIABLE] = str(mini_batch)
    return [argument.replace(PLACEHOLDER, str(mini_batch)) for argument in arguments], changed
