"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
    help="Plug-and-play image reconstruction.",
)
train = typer.Typer(no_args_is_help=True, help="Train the networks.")
bench = typer.Typer(no_args_is_help=True, help="Measure, and write the numbers as JSON.")
app.add_typer(train, name="train")
app.add_typer(bench, name="bench")

Data = Annotated[Path, typer.Option(help="Folder that holds the test sets, as NAME/ or test/NAME/.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write rows and per-image values here.")]
Images = Annotated[int | None, typer.Option(help="Only the first N images of each set.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of noise and random masks.")]
Device = Annotated[str, typer.Option(help="cuda, cpu, or auto.")]
Methods = Annotated[list[str] | None, typer.Option("--method", help="Only this method; repeat for several.")]
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="Only this test set; repeat for several.")]
Settings = Annotated[
    list[str] | None, typer.Option("--setting", help="Only this setting, e.g. 'x4 sigma=15'; repeat for several.")
]


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and JSON.")] = Path("demo"),
    device: Device = "auto",
) -> None:
    """Undersample a real brain scan four times, reconstruct it, and compare with simpler methods."""
    from .demo import run_demo

    with _stoppable("stopped; nothing was written"):
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
    out: Annotated[Path, typer.Option(help="Folder for checkpoint, weights and card.")] = Path("runs/denoiser"),
    minutes: Annotated[float, typer.Option(help="Wall-clock budget; the learning rate follows it.", min=0.001)] = 20.0,
    test: Annotated[Path | None, typer.Option(help="Folder whose subfolders are test sets, scored at the end.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights, patches and noise.")] = 0,
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
        run(args, out, device=_device(device), test=test)


@bench.command("denoisers")
def bench_denoisers(
    data: Data,
    json: Json = None,
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Gaussian denoising on Set12 and BSD68 at noise levels 15, 25 and 50."""
    from .benchmark.denoising import DATASETS, LEVELS, bench_denoisers, shipped
    from .benchmark.results import Results

    names, sets = method or shipped(), dataset or DATASETS
    results = Results(json, seed)
    with _progress(results, len(names) * len(sets) * len(LEVELS)) as tick:
        bench_denoisers(names, data, results, datasets=sets, images=images, device=_device(device), tick=tick)


@bench.command("policies")
def bench_policies(
    data: Data,
    json: Json = None,
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    setting: Settings = None,
    solver: Annotated[str, typer.Option(help="Whose parameters the policies set.")] = "admm",
    denoiser: Annotated[str, typer.Option(help="A registered denoiser.")] = "compact",
    batch: Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 512.", min=1)] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """CS-MRI with different ways to set the parameters; starred rows stop each image at its best."""
    from .benchmark.policies import DATASETS, METHODS, Bench, bench_policies, choose_settings
    from .benchmark.results import Results
    from .denoisers import build_denoiser
    from .errors import UnknownName
    from .solvers import build_solver
    from .tasks import build_task

    methods, sets = method or METHODS, dataset or DATASETS
    if unknown := set(methods) - set(METHODS):
        raise UnknownName(f"unknown method {sorted(unknown)[0]!r}; known: {', '.join(METHODS)}")
    where = _device(device)
    plan = Bench(
        build_task("csmri"),
        build_solver(solver),
        build_denoiser(denoiser).to(where),
        seed=seed,
        batch=batch or (512 if where.type == "cuda" else 8),
    )
    results = Results(json, seed)
    cells = len(sets) * len(choose_settings(plan.task, setting)) * len(methods)
    with _progress(results, cells) as tick:
        bench_policies(plan, data, results, datasets=sets, methods=methods, settings=setting, images=images, tick=tick)


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
    try:
        with _stoppable("stopped; finished rows are kept"), Progress(*columns, console=Console(stderr=True)) as bar:
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

    from .errors import BadInput

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadInput(f"the device {name!r} cannot be used: {str(error).splitlines()[0]}") from error
    return device


def main() -> None:
    """Entry point: errors a user can mend are one line and exit code 2."""
    from .errors import PnPilotError

    try:
        app(standalone_mode=True)
    except PnPilotError as error:
        typer.echo(f"pnpilot: {error}", err=True)
        sys.exit(2)
