"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import torch

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
train = typer.Typer(no_args_is_help=True, help="Train the networks.")
bench = typer.Typer(no_args_is_help=True, help="Measure, and write the numbers as JSON.")
app.add_typer(train, name="train")
app.add_typer(bench, name="bench")

Data = Annotated[Path, typer.Option(help="Folder that holds the test sets, as NAME/ or test/NAME/.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write rows and per-image values here.")]
Images = Annotated[int | None, typer.Option(help="Only the first N images of each set.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of noise and random masks.", min=0)]
Weights = Annotated[
    Path | None, typer.Option(help="Folder that `pnpilot train denoiser` wrote, in place of shipped weights.")
]
Device = Annotated[str, typer.Option(help="cuda, cpu, or auto.")]
Methods = Annotated[list[str] | None, typer.Option("--method", help="Only this method; repeat for several.")]
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="Only this test set; repeat for several.")]
Settings = Annotated[
    list[str] | None, typer.Option("--setting", help="Only this setting, e.g. 'x4 sigma=15'; repeat for several.")
]


def _version(wanted: bool) -> None:
    if wanted:
        from . import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Plug-and-play image reconstruction."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and JSON.")] = Path("demo"),
    device: Device = "auto",
) -> None:
    """Undersample a real brain scan four times, reconstruct it, and compare with simpler methods."""
    from .demo import run_demo

    with _stoppable("stopped"):
        run_demo(out, _device(device))


@app.command("list")
def list_registered() -> None:
    """Show what is registered: tasks, solvers, denoisers, policies, baselines."""
    from rich.console import Console
    from rich.table import Table

    from .baselines import BASELINES
    from .denoisers import DENOISERS
    from .policies import POLICIES
    from .solvers import SOLVERS
    from .tasks import TASKS

    table = Table(box=None, header_style="bold", show_edge=False)
    for column in ("kind", "name", "what it is"):
        table.add_column(column, no_wrap=column != "what it is")
    registries: tuple[Any, ...] = (TASKS, SOLVERS, DENOISERS, POLICIES, BASELINES)
    for registry in registries:
        for index, name in enumerate(registry):
            table.add_row(registry.kind if index == 0 else "", name, registry.summary(name))
        table.add_section()
    Console().print(table)


@train.command("denoiser")
def train_denoiser(
    name: Annotated[str, typer.Argument(help="A trainable denoiser: compact or unet.")],
    data: Annotated[Path, typer.Option(help="Folder of training images, searched with its subfolders.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for checkpoint, weights and card; default runs/NAME.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Wall-clock budget; the learning rate follows it.", min=0.001)] = 20.0,
    test: Annotated[Path | None, typer.Option(help="Folder whose subfolders are test sets, scored at the end.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights, patches and noise.", min=0)] = 0,
    device: Device = "auto",
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few seconds with small batches, to see that all works.")
    ] = False,
) -> None:
    """Train a denoiser; run the same command again to go on after a stop."""
    from .training.train_denoiser import DenoiserArgs
    from .training.train_denoiser import train_denoiser as run

    args = DenoiserArgs(name=name, data=str(data), minutes=minutes, seed=seed)
    if smoke:
        args.minutes, args.batch, args.patch, args.warmup = min(minutes, 0.2), 4, 64, 5
    with _stoppable("stopped; the same command goes on from the last checkpoint"):
        run(args, out or Path("runs") / name, device=_device(device), test=test)


@bench.command("denoisers")
def bench_denoisers(
    data: Data,
    json: Json = None,
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    weights: Weights = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Gaussian denoising on Set12 and BSD68 at noise levels 15, 25 and 50."""
    from .benchmark.data import check_datasets
    from .benchmark.denoising import DATASETS, LEVELS, bench_denoisers, ready
    from .benchmark.results import Results
    from .denoisers import build_denoiser

    names, sets = _distinct(method or ready()), _distinct(dataset or DATASETS)
    check_datasets(data, sets, images)
    where = _device(device)
    denoisers = {name: build_denoiser(name, weights=weights).to(where) for name in names}
    results = Results(json, seed)
    with _progress(results, len(names) * len(sets) * len(LEVELS)) as tick:
        bench_denoisers(denoisers, data, results, datasets=sets, images=images, tick=tick)


@bench.command("policies")
def bench_policies(
    data: Data,
    json: Json = None,
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    setting: Settings = None,
    task: Annotated[
        str, typer.Option(help="A registered task; its own test sets and settings are the default.")
    ] = "csmri",
    solver: Annotated[str, typer.Option(help="Whose parameters the policies set; auto is ADMM if it fits.")] = "auto",
    denoiser: Annotated[str, typer.Option(help="A registered denoiser.")] = "compact",
    weights: Weights = None,
    batch: Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 512.", min=1)] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Reconstruction with different ways to set the parameters; starred rows stop each image at its best.

    The rows fixed-optimal and oracle search with the truth at hand: minutes on a GPU, hours on a CPU.
    """
    from .benchmark.data import check_datasets
    from .benchmark.policies import Bench, bench_policies, check_methods, choose_settings, method_names
    from .benchmark.results import Results
    from .denoisers import build_denoiser
    from .solvers import build_solver
    from .tasks import build_task

    chosen = build_task(task)
    methods, sets = _distinct(method or method_names(chosen)), _distinct(dataset or chosen.datasets)
    check_methods(chosen, methods)
    build_solver(solver)
    settings = choose_settings(chosen, _distinct(setting or ()))
    check_datasets(data, sets, images)
    where = _device(device)
    network = build_denoiser(denoiser, weights=weights).to(where)
    plan = Bench(chosen, solver, network, seed=seed, batch=batch or (512 if where.type == "cuda" else 8))
    results = Results(json, seed)
    with _progress(results, len(sets) * len(settings) * len(methods)) as tick:
        bench_policies(plan, data, results, datasets=sets, methods=methods, settings=settings, images=images, tick=tick)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


@contextmanager
def _progress(results: Any, total: int) -> Iterator[Any]:
    """A bar over the cells of a table; the table is printed at the end, even after Ctrl-C."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    try:
        with _stoppable("stopped; finished rows are kept"), bar:
            task = bar.add_task("…", total=total)
            yield lambda words: bar.update(task, advance=1, description=words)
    finally:
        results.show(Console())


@contextmanager
def _stoppable(message: str) -> Iterator[None]:
    """Ctrl-C is a line and the customary exit code, not a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"pnpilot: {message}", err=True)
        raise typer.Exit(130) from None


def _device(name: str) -> torch.device:
    import torch

    from .errors import BadInput, first_line

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(f"the device {name!r} cannot be used: {first_line(error)}") from error
    return device


def main() -> None:
    """Entry point: errors a user can mend are one line and exit code 2."""
    from .errors import PnPilotError

    try:
        sys.exit(app(standalone_mode=False))
    except PnPilotError as error:
        typer.echo(f"pnpilot: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        # What the command-line library refuses; its classes have moved from one release to another.
        explain = getattr(error, "format_message", None)
        if explain is None:
            raise
        if message := explain():  # nothing is said where the help was shown
            typer.echo(f"pnpilot: {message}", err=True)
        sys.exit(2)
