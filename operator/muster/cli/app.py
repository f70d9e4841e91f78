"""What can be typed: every command with its options and help, and nothing of what it does."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import muster

app = typer.Typer(
    name="muster",
    help="Sizes distributed training: profiles the script, then chooses workers, parameter servers and mini-batch.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

File = Annotated[Path, typer.Option("--filename", "-f", help="The job's YAML; - reads standard input.")]
Name = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Default: the context's.")]
Context = Annotated[str | None, typer.Option(help="Of the kubeconfig. Default: its current one.")]
Kubeconfig = Annotated[Path | None, typer.Option(help="Default: $KUBECONFIG, else ~/.kube/config.")]


class Output(StrEnum):
    """Formats of a plan."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Law(StrEnum):
    """Laws of an iteration that can be fitted to measured runs."""

    LEMMA2 = "lemma2"
    CALIBRATED = "calibrated"
    OPTIMUS = "optimus"
    POLLUX = "pollux"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"muster {muster.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def profile(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The training script as it is started.")
    ],
    minibatch: Annotated[
        str | None,
        typer.Option(help="Mini-batches to try, 32,64,128: each is put where the command says $(MUSTER_MINIBATCH)."),
    ] = None,
    warmup_steps: Annotated[int, typer.Option(min=0, help="Iterations at each mini-batch before measuring.")] = 5,
    steps: Annotated[int, typer.Option(min=4, help="Iterations measured at each mini-batch.")] = 20,
    deadline_seconds: Annotated[int, typer.Option(min=10, help="What was learnt by then is reported.")] = 600,
    report: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("report.json"),
) -> None:
    """Profile a training script on this machine."""
    from muster.cli import profile as implementation

    implementation.run(
        command,
        minibatch=minibatch,
        warmup_steps=warmup_steps,
        steps=steps,
        deadline_seconds=deadline_seconds,
        report=report,
    )


@app.command()
def plan(
    filename: File,
    profile: Annotated[
        Path | None, typer.Option(help="A report.json. Default: the file's own ConfigMap, where the job names one.")
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(help="Iterations of the job at several sizes, as YAML: the prediction comes from them."),
    ] = None,
    model: Annotated[
        Law | None, typer.Option(help="What is fitted to --measured. Default: what errs least on sizes left out.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Format.")] = Output.TABLE,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the curves behind the choice into this file (png, svg, pdf).")
    ] = None,
) -> None:
    """Compute a job's plan from a profile, without a cluster."""
    from muster.cli import plan as implementation

    implementation.run(
        filename,
        profile=profile,
        measured=measured,
        model=model.value if model else None,
        output=output.value,
        plot=plot,
    )


@app.command()
def run(
    filename: File,
    directory: Annotated[
        Path | None, typer.Option("--directory", "-C", help="Where the commands run. Default: the file's folder.")
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="A report.json in place of profiling.")] = None,
    logs: Annotated[Path, typer.Option(help="Where every process's log goes, in a folder of the job's name.")] = Path(
        "muster-run"
    ),
) -> None:
    """Run a whole job on this machine: profile, plan, then workers and servers as processes."""
    from muster.cli import run as implementation

    implementation.run(filename, directory=directory, profile=profile, logs=logs)


@app.command()
def submit(
    filename: File,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow the job to its end.")] = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Create the jobs of a file on the cluster."""
    from muster.cli import remote

    remote.submit(remote.Place(namespace, context, kubeconfig), filename, watch=watch)


@app.command()
def status(
    job: Name,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow the job to its end.")] = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show a job's state, conditions and pods."""
    from muster.cli import remote

    remote.status(remote.Place(namespace, context, kubeconfig), job, watch=watch)


@app.command()
def explain(job: Name, namespace: Namespace = None, context: Context = None, kubeconfig: Kubeconfig = None) -> None:
    """Say in sentences what was chosen for a job, and why."""
    from muster.cli import remote

    remote.explain(remote.Place(namespace, context, kubeconfig), job)


@app.command()
def logs(
    job: Name,
    role: Annotated[
        str | None, typer.Option(help="worker, server, chief, evaluator, scheduler, profiler or peer. Default: all.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the pods end.")] = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show the logs of a job's pods, prefixed by role and index."""
    from muster.cli import remote

    remote.logs(remote.Place(namespace, context, kubeconfig), job, role=role, follow=follow)


@app.command()
def operator() -> None:
    """Run the operator. It is configured by MUSTER_* in the environment."""
    from muster.cli import serve

    serve.operator()


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition."""
    from muster.api.crd import to_yaml

    typer.echo(to_yaml(), nl=False)
