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
Seed = Annotated[int, typer.Option(help="Seed of noise and random masks.", min=0, max=2**31)]
Weights = Annotated[
    Path | None, typer.Option(help="Folder that `pnpilot train denoiser` wrote, in place of shipped weights.")
]
Device = Annotated[str, typer.Option(help="cuda, cpu, or auto.")]
Methods = Annotated[list[str] | None, typer.Option("--method", help="Only this method; repeat for several.")]
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="Only this test set; repeat for several.")]
Settings = Annotated[
    list[str] | None, typer.Option("--setting", help="Only this setting, e.g. 'x4 sigma=15'; repeat for several.")
]

Policies = Annotated[
    list[Path] | None, typer.Option("--policy", help="Folder that `pnpilot train policy` wrote; repeat for several.")
]
Size = Annotated[str, typer.Option(help="Images are resized to this: 128, or HEIGHTxWIDTH.")]
Seeds = Annotated[int, typer.Option(help="Average over this many seeds, from the first on.", min=1)]
EstimateNoise = Annotated[bool, typer.Option("--estimate-noise", help="Policies are not told the noise level.")]


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
    seed: Annotated[int, typer.Option(help="Seed of weights, patches and noise.", min=0, max=2**31)] = 0,
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


@train.command("policy")
def train_policy(
    task: Annotated[str, typer.Option(help="A registered task.")],
    data: Annotated[Path, typer.Option(help="Folder of training images, searched with its subfolders.")],
    solver: Annotated[str, typer.Option(help="Whose parameters it sets; auto is ADMM if it fits.")] = "auto",
    denoiser: Annotated[str, typer.Option(help="A registered denoiser that has a gradient.")] = "compact",
    weights: Weights = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all it writes; default runs/METHOD-TASK-SOLVER.")] = None,
    minutes: Annotated[float, typer.Option(help="Wall-clock budget; the learning rate follows it.", min=0.001)] = 10.0,
    method: Annotated[str, typer.Option(help="learned, or model-free for comparison.")] = "learned",
    observation: Annotated[str, typer.Option(help="probed, universal, or paper for its own channels.")] = "probed",
    width: Annotated[int, typer.Option(help="Width of the encoder; the paper's is 64.", min=8)] = 32,
    lookahead: Annotated[int, typer.Option(help="Decisions that gradients pass through; the paper's is 1.", min=1)] = 2,
    seed: Annotated[int, typer.Option(help="Seed of weights, images, masks and noise.", min=0, max=2**31)] = 0,
    device: Device = "auto",
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few seconds with small batches, to see that all works.")
    ] = False,
) -> None:
    """Train a policy; run the same command again to go on after a stop, or under torchrun on several GPUs."""
    from .training.learner import LearnerArgs
    from .training.train_policy import PolicyArgs
    from .training.train_policy import train_policy as run

    noise = 0.1 if method == "model-free" else 0.0
    args = PolicyArgs(
        task=task,
        data=str(data),
        solver=solver,
        denoiser=denoiser,
        method=method,
        observation=observation,
        minutes=minutes,
        seed=seed,
        learner=LearnerArgs(width=width, lookahead=lookahead, noise=noise),
    )
    if smoke:
        args.minutes, args.batch, args.size, args.held_out, args.updates = min(minutes, 0.5), 4, 64, 2, 2
    with _stoppable("stopped; the same command goes on from the last checkpoint"):
        run(args, out or Path("runs") / f"{method}-{task}-{solver}", device=_device(device), weights=weights)


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
    policy: Policies = None,
    size: Size = "128",
    estimate_noise: EstimateNoise = False,
    batch: Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 512.", min=1)] = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    device: Device = "auto",
) -> None:
    """Reconstruction with different ways to set the parameters; starred rows stop each image at its best.

    The rows fixed-optimal and oracle search with the truth at hand: minutes on a GPU, hours on a CPU.
    """
    from .benchmark.policies import Bench
    from .denoisers import build_denoiser
    from .tasks import build_task

    where = _device(device)
    network = build_denoiser(denoiser, weights=weights).to(where)
    plan = Bench(build_task(task), solver, network, seed=seed, seeds=seeds, size=_size(size))
    plan.batch, plan.estimate_noise = batch or (512 if where.type == "cuda" else 8), estimate_noise
    _bench(plan, data, json, images, method, dataset, setting, policy)


@bench.command("phase")
def bench_phase(
    data: Data,
    json: Json = None,
    images: Images = None,
    method: Methods = None,
    setting: Settings = None,
    policy: Policies = None,
    estimate_noise: EstimateNoise = False,
    batch: Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 64.", min=1)] = None,
    seed: Seed = 0,
    seeds: Seeds = 3,
    device: Device = "auto",
) -> None:
    """Phase retrieval on the paper's twelve images, fresh masks for every image, beside the paper's numbers."""
    from .benchmark.policies import Bench
    from .denoisers import build_denoiser
    from .tasks import build_task

    where = _device(device)
    plan = Bench(build_task("phase"), "auto", build_denoiser("compact").to(where), seed=seed, seeds=seeds)
    plan.batch, plan.estimate_noise = batch or (64 if where.type == "cuda" else 8), estimate_noise
    _bench(plan, data, json, images, method or ["start", "schedule", "learned"], None, setting, policy)


@bench.command("speed")
def bench_speed(
    data: Data,
    json: Annotated[Path | None, typer.Option("--json", help="Write the numbers here.")] = None,
    task: Annotated[str, typer.Option(help="A task whose policy ships.")] = "csmri",
    dataset: Annotated[str | None, typer.Option(help="Test set; default the first of the task.")] = None,
    count: Annotated[int | None, typer.Option(help="Images; default four batches.", min=1)] = None,
    batch: Annotated[int, typer.Option(help="Images per batch.", min=1)] = 64,
    size: Size = "128",
    device: Device = "auto",
) -> None:
    """Images per second in batches and one by one, and the share of what the device can do at most."""
    from .benchmark.data import load_dataset
    from .benchmark.speed import ROUNDS, bench_speed
    from .io.files import writable_file, write_json
    from .model import PnPilot
    from .tasks import build_task

    if json is not None:
        writable_file(json)
    where, chosen = _device(device), build_task(task)
    model = PnPilot.from_pretrained(task, peak=1.0, real=True, device=where)
    _, truth = load_dataset(data, dataset or chosen.datasets[0], _size(size))
    wanted = count or 4 * batch
    truth = truth.repeat(-(-wanted // len(truth)), 1, 1, 1)[:wanted].to(where)
    with _bar(ROUNDS) as tick:
        numbers = bench_speed(model, chosen, truth, batch, tick)
    for name, value in numbers.items():
        typer.echo(f"{name.replace('_', ' ')}: {value}")
    if json is not None:
        write_json(json, numbers)


@bench.command("strength")
def bench_strength(
    data: Data,
    out: Annotated[Path, typer.Option(help="The picture.")] = Path("strength.png"),
    task: Annotated[str, typer.Option(help="A task whose policy ships.")] = "csmri",
    dataset: Annotated[str | None, typer.Option(help="Test set; default the last of the task.")] = None,
    setting: Annotated[str | None, typer.Option(help="A setting; default the middle one of the task.")] = None,
    images: Annotated[int, typer.Option(help="How many images.", min=1)] = 4,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """A picture: PSNR over the denoising strength, image by image, and what the learned policy chose and reached."""
    from .benchmark.data import load_dataset
    from .benchmark.policies import SIZE
    from .benchmark.strength import measure_strength
    from .denoisers import build_denoiser
    from .io.files import writable_file
    from .plots import plot_strength
    from .policies.learned import Learned
    from .problem import Hints
    from .tasks import build_task, open_problem

    writable_file(out)
    where, chosen = _device(device), build_task(task)
    policy = Learned.find(task)
    policy.network.to(where)
    condition = chosen.named(setting) if setting else chosen.settings[len(chosen.settings) // 2]
    names, truth = load_dataset(data, dataset or chosen.datasets[-1], SIZE, images)
    truth = truth.to(where)
    y, physics = chosen.simulate(truth, condition, seed)
    problem = open_problem(y, physics, Hints(peak=1.0, real=True))
    batch = 256 if where.type == "cuda" else 8
    found = measure_strength(problem, build_denoiser(policy.denoiser).to(where), policy, truth, batch)
    plot_strength(out, found, names, f"{task} {condition.label}")
    typer.echo(f"picture: {out}")


def _bench(
    plan: Any,
    data: Path,
    json: Path | None,
    images: int | None,
    method: list[str] | None,
    dataset: list[str] | None,
    setting: list[str] | None,
    folders: list[Path] | None,
) -> None:
    """Fill a table of policies, after a look at everything that was asked for."""
    import torch

    from .benchmark.data import check_datasets
    from .benchmark.policies import bench_policies, check_methods, choose_settings, learned_policies, method_names
    from .benchmark.results import Results
    from .problem import Hints
    from .solvers import build_solver
    from .tasks import open_problem

    sets, settings = _distinct(dataset or plan.task.datasets), choose_settings(plan.task, _distinct(setting or ()))
    y, physics = plan.task.simulate(torch.rand(1, 1, 32, 32), settings[0])
    problem = open_problem(y, physics, Hints(peak=1.0, real=True))
    solver = build_solver(plan.solver, problem.offers)
    plan.learned = learned_policies(plan.task.name, solver.name, plan.denoiser, folders or [])
    methods = _distinct(method or method_names(plan.task, plan.learned))
    check_methods(plan.task, methods, plan.learned)
    check_datasets(data, sets, images)
    results = Results(json, plan.seed, plan.seeds)
    with _progress(results, plan.seeds * len(sets) * len(settings) * len(methods)) as tick:
        bench_policies(plan, data, results, datasets=sets, methods=methods, settings=settings, images=images, tick=tick)


def _size(text: str) -> tuple[int, int]:
    """'128' or '230x180' as height and width."""
    from .errors import BadInput

    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) >= 16 for part in parts):
        raise BadInput(f"a size is a number from 16 on, or HEIGHTxWIDTH, got {text!r}")
    return int(parts[0]), int(parts[-1])


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


@contextmanager
def _progress(results: Any, total: int) -> Iterator[Any]:
    """A bar over the cells of a table; the table is printed at the end, even after Ctrl-C."""
    from rich.console import Console

    try:
        with _stoppable("stopped; finished rows are kept"), _bar(total) as tick:
            yield tick
    finally:
        results.show(Console())


@contextmanager
def _bar(total: int) -> Iterator[Any]:
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
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("…", total=total)
        yield lambda words: bar.update(task, advance=1, description=words)


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
