"""`pnpilot bench`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ._shared import (
    LARGEST_BATCH,
    Batch,
    Colour,
    Data,
    Datasets,
    Device,
    EstimateNoise,
    Images,
    Json,
    Methods,
    Policies,
    Seed,
    Seeds,
    Settings,
    Size,
    Weights,
    channels_of,
    chosen_device,
    distinct,
    listed,
    parsed_size,
    progress_bar,
    table_progress,
)
from .compare import bench_compare
from .operators import bench_operators
from .scan import bench_scan

bench = typer.Typer(no_args_is_help=True, help="Measure, and write the numbers as JSON.")
bench.command("compare")(bench_compare)
bench.command("scan")(bench_scan)
bench.command("operators")(bench_operators)


@bench.command("denoisers")
def bench_denoisers(
    data: Data,
    json: Json = None,
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FOLDER",
            help="Folder that `pnpilot train denoiser NAME` wrote; repeat for several; NAME= is optional for one.",
        ),
    ] = None,
    no_pnp: Annotated[
        bool, typer.Option("--no-pnp", help="Denoising alone, without the search for the best parameters.")
    ] = False,
    batch: Batch = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Denoisers by themselves on Set12 and BSD68, plugged in with the best parameters, and what they cost.

    The parameters are searched with the truth at hand, which is work for a GPU; --no-pnp leaves that out.
    """
    from ..benchmark.denoisers import DATASETS, DenoiserResults, DenoiserTable, left_out, ready
    from ..denoisers import build_denoiser

    chosen, where = listed(method), chosen_device(device)
    folders = _weight_folders(weights or (), chosen)
    names = chosen or distinct([*ready(), *folders])
    denoisers = {name: build_denoiser(name, weights=folders.get(name)).to(where) for name in names}
    plan = DenoiserTable(denoisers, data, listed(dataset) or DATASETS, not no_pnp, images=images, seed=seed)
    plan.batch = batch or (512 if where.type == "cuda" else 8)
    plan.check()
    results = DenoiserResults(json, seed)
    if missing := [] if chosen else left_out(names):
        typer.echo(
            f"left out, as their weights do not ship: {', '.join(missing)}; "
            "train one with `pnpilot train denoiser NAME` and add --weights NAME=FOLDER",
            err=True,
        )
    with table_progress(results, len(plan)) as tick:
        plan.run(results, tick)


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
    colour: Colour = False,
    estimate_noise: EstimateNoise = False,
    batch: Batch = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    device: Device = "auto",
) -> None:
    """Reconstruct with different ways to set the parameters; starred rows stop each image at its best.

    The rows fixed-optimal and oracle search with the truth at hand: minutes on a GPU, hours on a CPU.
    """
    from ..benchmark.comparison import Comparison
    from ..benchmark.data import choose_datasets, choose_settings
    from ..benchmark.learned import learned_policies
    from ..benchmark.policy_methods import policy_methods
    from ..benchmark.policy_runs import Rig
    from ..benchmark.results import Results
    from ..denoisers import build_denoiser
    from ..tasks import build_task

    where, chosen = chosen_device(device), build_task(task)
    network = build_denoiser(denoiser, weights=weights).to(where)
    rig = Rig(solver, network, batch or (512 if where.type == "cuda" else 8), estimate_noise)
    channels, sides = channels_of(chosen, colour), parsed_size(size)
    settings = choose_settings(chosen, setting or ())
    sets = choose_datasets(chosen, data, listed(dataset), images)
    fitting = rig.solver_for(chosen, settings[0], (channels, *sides))
    learned = learned_policies(chosen.name, fitting, network, policy or ())
    methods = policy_methods(chosen, rig, learned, listed(method))
    plan = Comparison(chosen, data, sets, settings, methods, where, sides, images, seed, seeds)
    plan.batch, plan.channels = rig.batch, channels
    results = Results(json, seed, seeds)
    with table_progress(results, len(plan)) as tick:
        plan.run(results, tick=tick)


@bench.command("speed")
def bench_speed(
    data: Data,
    json: Annotated[Path | None, typer.Option("--json", help="Write the numbers here.")] = None,
    task: Annotated[str, typer.Option(help="A task whose policy ships.")] = "csmri",
    policy: Annotated[
        Path | None, typer.Option(help="Folder that `pnpilot train policy` wrote, in place of the shipped policy.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Test set; default the first of the task.")] = None,
    count: Annotated[int | None, typer.Option(help="Images; default four batches.", min=1)] = None,
    batch: Annotated[int, typer.Option(help="Images per batch.", min=1, max=LARGEST_BATCH)] = 64,
    size: Size = "128",
    device: Device = "auto",
) -> None:
    """Images per second in batches and one by one, and the share of the device's peak."""
    from ..benchmark.data import load_dataset
    from ..benchmark.learned import learned_policy
    from ..benchmark.speed import ROUNDS, bench_speed
    from ..benchmark.tables import table_of
    from ..io.files import writable_json, write_json
    from ..model import PnPilot
    from ..provenance import header
    from ..tasks import build_task

    if json is not None:
        writable_json(json)
    where, chosen = chosen_device(device), build_task(task)
    found = learned_policy(task, policy)
    model = PnPilot(found.denoiser, policy=found, peak=1.0, real=True, device=where)
    _, truth = load_dataset(data, dataset or table_of(chosen).datasets[0], parsed_size(size))
    wanted = count or 4 * batch
    truth = truth.repeat(-(-wanted // len(truth)), 1, 1, 1)[:wanted].to(where)
    with progress_bar(ROUNDS) as tick:
        numbers = bench_speed(model, chosen, truth, batch, tick)
    for name, value in numbers.items():
        typer.echo(f"{name.replace('_', ' ')}: {value}")
    if json is not None:
        write_json(json, {**header(), **numbers})


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
    from ..benchmark.data import SIZE, load_dataset
    from ..benchmark.strength import measure_strength
    from ..benchmark.tables import table_of
    from ..denoisers import build_denoiser
    from ..io.files import writable_picture
    from ..plots import plot_strength
    from ..policies.learned import Learned
    from ..tasks import build_task

    writable_picture(out)
    where, chosen = chosen_device(device), build_task(task)
    policy = Learned.find(task)
    policy.network.to(where)
    condition = chosen.named(setting) if setting else chosen.settings[len(chosen.settings) // 2]
    names, truth = load_dataset(data, dataset or table_of(chosen).datasets[-1], SIZE, images)
    batch = 256 if where.type == "cuda" else 8
    denoiser = build_denoiser(policy.denoiser).to(where)
    found = measure_strength(chosen, condition, truth.to(where), denoiser, policy, batch=batch, seed=seed)
    plot_strength(out, found, names, f"{task} {condition.label}")
    typer.echo(f"picture: {out}")


def _weight_folders(values: Iterable[str], methods: Sequence[str]) -> dict[str, Path]:
    """Folders of weights by denoiser, from NAME=FOLDER, or from FOLDER where only one denoiser can be meant."""
    from ..benchmark.denoisers import ready
    from ..denoisers import DENOISERS
    from ..errors import BadInput

    found: dict[str, Path] = {}
    candidates = methods or ready()
    for value in values:
        name, equals, folder = value.partition("=")
        if not equals or Path(value).is_dir():  # a folder may have = in its name
            if len(candidates) > 1:
                raise BadInput(f"--weights {value}: say of which denoiser, as NAME={value}, or choose it by --method")
            name, folder = candidates[0], value
        elif not folder:
            raise BadInput(f"--weights {value}: expected FOLDER or NAME=FOLDER")
        elif name not in DENOISERS:
            raise BadInput(f"--weights {value}: unknown denoiser {name!r}; known: {', '.join(DENOISERS)}")
        elif methods and name not in methods:
            raise BadInput(f"--weights {value}: {name!r} is not among the methods: {', '.join(candidates)}")
        if name in found:
            raise BadInput(f"--weights {value}: there is a folder for {name!r} already, {found[name]}")
        found[name] = Path(folder)
    return found
