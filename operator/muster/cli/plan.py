"""`muster plan`: a manifest's plan from a profile report, offline, and how a plan is printed."""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from rich.console import Console
from rich.table import Table

from muster import sizing
from muster.api import report_log
from muster.api.job import TrainingJobSpec
from muster.api.measured import MeasuredPlan, Run
from muster.api.model import complaint, dotted
from muster.api.report import Report
from muster.api.status import Choice, Plan
from muster.cli import manifest
from muster.cli.exits import Code, Exit, why
from muster.cli.explain import sentence
from muster.sizing import CannotFit, Infeasible, Limits, text

REPORT_KEY = "report.json"


def run(
    filename: Path, *, profile: Path | None, measured: Path | None, model: str | None, output: str, plot: Path | None
) -> None:
    """Plan every TrainingJob of the file."""
    documents = manifest.load(filename)
    for option, value in (("--plot", plot), ("--measured", measured)):
        if value is not None and len(documents.jobs) > 1:
            raise Exit(Code.USAGE, f"{option} is for one job, and {filename} has {len(documents.jobs)}")
    if model is not None and measured is None:
        raise Exit(Code.USAGE, "--model is fitted to runs: give them with --measured runs.yaml")
    runs = read_runs(measured) if measured else None
    plans: dict[str, Plan] = {}
    for job in documents.jobs:
        report = _report(job, profile, documents.config_maps)
        limits = Limits.of(job.spec)
        try:
            plans[job.name] = (
                sizing.plan(report, job.spec.goal, limits, None)
                if runs is None
                else sizing.plan_measured(report, job.spec.goal, limits, None, runs, model)
            )
        except CannotFit as error:
            raise Exit(Code.USAGE, f"{measured}: {error}") from None
        except Infeasible as error:
            raise Exit(Code.INFEASIBLE, f"{job.name}: {error.reason}: {error.message}") from None
        if plot is not None:
            _draw(report, job.spec, limits, plans[job.name], plot)
    _print(plans, output)
    if plot is not None and output == "table":
        print(f"the curves behind it are in {plot}")


def read_report(text: str, where: str) -> Report:
    """A report.json. Ends the command where it is not one."""
    try:
        return report_log.parse(text)
    except report_log.ReportError as error:
        raise Exit(Code.USAGE, f"{where}: {error}") from None


def read_runs(path: Path) -> list[Run]:
    """Measured runs: a YAML list. Ends the command where it is not one."""
    try:
        return TypeAdapter(list[Run]).validate_python(yaml.safe_load(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Exit(Code.USAGE, f"{path}: {why(error)}") from None
    except ValidationError as error:
        raise Exit(Code.USAGE, "\n".join(f"{path}: {_problem(each)}" for each in error.errors())) from None


def _problem(error: ErrorDetails) -> str:
    known = ", ".join(info.alias or name for name, info in Run.model_fields.items())
    if not error["loc"]:
        return f"a list of runs is expected, each with {known}"
    hint = f"; known here: {known}" if error["type"] == "extra_forbidden" else ""
    return f"{dotted(error['loc'])}: {complaint(error)}{hint}"


def table(plan: Plan) -> Table:
    """The numbers of a plan, each with what bound it and why."""
    result = Table("", "value", "recommended", "limited by", "why", box=None, pad_edge=False, header_style="bold")
    for name, choice in (("mini-batch", plan.mini_batch), ("workers", plan.workers), ("servers", plan.servers)):
        result.add_row(name, str(choice.value), _recommended(choice), choice.limited_by, choice.message)
    return result


def show(console: Console, plan: Plan) -> None:
    """A plan as a table, with what it predicts and warns of below."""
    console.print(table(plan))
    predicted = plan.predicted
    console.print(
        f"\npredicted: {predicted.samples_per_second:,} samples/s, "
        f"{predicted.iteration_time_microseconds / 1000:,.1f} ms an iteration, "
        f"speed-up {predicted.speedup}, efficiency {predicted.efficiency_percent} %"
    )
    if isinstance(plan, MeasuredPlan):
        _show_fit(console, plan)
    if plan.convolution is not None and plan.convolution.message:
        console.print(f"convolutions: {sentence(plan.convolution.message)}")
    if plan.bottleneck is not None:
        console.print(f"bottleneck: {sentence(plan.bottleneck.message)} {sentence(plan.bottleneck.remedy)}")
    for alternative in plan.alternatives:
        servers = text.count(alternative.servers, "server")
        console.print(f"or {alternative.topology}, {servers}: {sentence(alternative.message)}")
    for warning in plan.warnings:
        console.print(f"warning: {sentence(warning.message)}")


def _show_fit(console: Console, plan: MeasuredPlan) -> None:
    predicted, rules = plan.predicted, plan.fit.rules
    bounds = predicted.iteration_time_low_microseconds, predicted.iteration_time_high_microseconds
    low, high = (f"{(bound or 0) / 1000:,.1f}" for bound in bounds)
    console.print(f"from measured runs: {low} to {high} ms an iteration. {plan.fit.message}")
    console.print(
        f"the rules alone: {rules.samples_per_second:,} samples/s,"
        f" {rules.iteration_time_microseconds / 1000:,.1f} ms an iteration,"
        f" speed-up {rules.speedup}, efficiency {rules.efficiency_percent} %"
    )


def _recommended(choice: Choice) -> str:
    return "" if choice.recommended == choice.value else str(choice.recommended)


def _report(job: manifest.Manifest, profile: Path | None, config_maps: dict[str, dict[str, str]]) -> Report:
    if profile is not None:
        try:
            return read_report(profile.read_text(), str(profile))
        except (OSError, UnicodeDecodeError) as error:
            raise Exit(Code.USAGE, f"{profile}: {why(error)}") from None
    name = job.spec.profile.config_map_name
    if name is None or REPORT_KEY not in config_maps.get(name, {}):
        raise Exit(
            Code.USAGE,
            f"{job.name}: a plan needs a profile: give --profile report.json, "
            "which `muster profile -- python train.py ...` makes",
        )
    return read_report(config_maps[name][REPORT_KEY], f"ConfigMap {name}")


def _draw(report: Report, spec: TrainingJobSpec, limits: Limits, plan: Plan, path: Path) -> None:
    try:
        from muster import plots
    except ModuleNotFoundError as error:
        raise Exit(Code.USAGE, f"--plot needs {error.name}: pip install 'muster-operator[plot]'") from None
    try:
        plots.draw(report, spec.goal, limits, plan, path)
    except (OSError, ValueError) as error:
        raise Exit(Code.USAGE, f"--plot {path}: {why(error)}") from None


def _print(plans: dict[str, Plan], output: str) -> None:
    if output == "table":
        console = Console(highlight=False, markup=False)
        for name, plan in plans.items():
            if len(plans) > 1:
                console.print(f"{name}:")
            show(console, plan)
        return
    dumped: list[dict[str, Any]] = [plan.dump() for plan in plans.values()]
    if output == "json":
        print(json.dumps(dumped[0] if len(dumped) == 1 else dumped, indent=2, ensure_ascii=False))
    else:
        print(yaml.safe_dump_all(dumped, sort_keys=False, allow_unicode=True), end="")
