"""`pnpilot bench csmri` and `pnpilot bench phase`: ours against everyone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._shared import (
    Data,
    Datasets,
    Device,
    Images,
    Methods,
    Seed,
    Seeds,
    Settings,
    Size,
    chosen_device,
    listed,
    parsed_size,
    progress_bar,
    stoppable,
)

if TYPE_CHECKING:
    from ..benchmark.comparison import Comparison

Out = Annotated[Path, typer.Option(help="Folder for all it writes; what is there already is not done again.")]
SmallBatch = Annotated[int | None, typer.Option("--batch", help="Images per batch; default 8, on a GPU 64.", min=1)]
Policy = Annotated[Path | None, typer.Option(help="Folder that `pnpilot train policy` wrote, instead of the shipped.")]
Figure = Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the visual comparison.")]


def bench_csmri(
    data: Data,
    out: Out = Path("runs/csmri"),
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    setting: Settings = None,
    policy: Policy = None,
    size: Size = "128",
    batch: SmallBatch = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    figure: Figure = True,
    device: Device = "auto",
) -> None:
    """CS-MRI against everyone: PSNR, SSIM, iterations and seconds of every method, beside the paper's numbers.

    Results are kept cell by cell in OUT/cells: a run that was stopped, or asked for more, does what is missing, and
    several runs may share the work, each with other methods, settings or seeds.
    """
    plan = _planned("csmri", data, dataset, setting, method, images, size, batch, policy, device)
    plan.seed, plan.seeds = seed, seeds
    _compare(plan, "CS-MRI", out, figure=figure)


def bench_phase(
    data: Data,
    out: Out = Path("runs/phase"),
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Only this setting, e.g. 'alpha=27' or '6 masks alpha=40'; repeat for several."),
    ] = None,
    policy: Policy = None,
    size: Size = "128",
    batch: SmallBatch = None,
    seed: Annotated[int, typer.Option(help="First seed of noise; masks are drawn apart.", min=0, max=2**31)] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds of noise.", min=1)] = 3,
    masks: Annotated[
        int, typer.Option(help="Draws of masks, each with every seed. (How many masks: see --setting.)", min=1)
    ] = 1,
    figure: Figure = True,
    device: Device = "auto",
) -> None:
    """Phase retrieval against everyone: PSNR, SSIM, iterations and seconds, beside the paper's numbers.

    Every image has masks of its own. Results are kept cell by cell in OUT/cells: a run that was stopped, or asked for
    more, does what is missing, and several runs may share the work, each with other methods, settings or seeds.
    """
    plan = _planned("phase", data, dataset, setting, method, images, size, batch, policy, device)
    plan.seed, plan.seeds, plan.draws = seed, seeds, masks
    _compare(plan, "Phase retrieval", out, figure=figure)


def _planned(
    task_name: str,
    data: Path,
    dataset: list[str] | None,
    setting: list[str] | None,
    method: list[str] | None,
    images: int | None,
    size: str,
    batch: int | None,
    policy: Path | None,
    device: str,
) -> Comparison:
    """What was asked for, refused if anything is wrong with it, before anything is measured."""
    from ..benchmark.comparison import OURS, Comparison, choose_methods
    from ..benchmark.data import check_datasets
    from ..benchmark.policies import choose_settings
    from ..errors import require
    from ..tasks import build_task

    methods, left_out = choose_methods(task_name, listed(method))
    require(policy is None or OURS in methods, f"--policy is for the method {OURS!r}, which is not among the methods")
    where, task = chosen_device(device), build_task(task_name)
    sets, settings = listed(dataset) or list(task.datasets), choose_settings(task, setting or ())
    check_datasets(data, sets, images)
    plan = Comparison(task, data, sets, settings, methods, where, parsed_size(size), images, policy=policy)
    plan.batch = batch or (64 if where.type == "cuda" else 8)
    for name, why in left_out.items():
        typer.echo(f"left out: {name} {why}", err=True)
    return plan


def _compare(plan: Comparison, title: str, out: Path, *, figure: bool) -> None:
    """Measure, and write table, numbers and picture."""
    from rich.console import Console

    from ..benchmark.cells import Cells
    from ..benchmark.report import markdown, show
    from ..io.files import write_atomically, write_json
    from ..plots import compare_crops

    cells, name = Cells(out / "cells"), plan.task.name
    with stoppable("stopped; what is finished is kept, and the same command goes on from it"):
        with progress_bar(len(plan)) as tick:
            rows = plan.run(cells, tick)
        measured = {"command": cells.command, "seed": plan.seed, "seeds": plan.seeds, "draws": plan.draws, "rows": rows}
        write_json(out / f"{name}.json", measured)
        write_atomically(out / f"{name}.md", markdown(title, rows, cells.command).encode())
        show(rows, Console())
        written = [out / f"{name}.md", out / f"{name}.json"]
        if figure:
            with progress_bar(plan.pictures) as tick:
                compare_crops(out / f"{name}.png", plan.examples(tick))
            written.append(out / f"{name}.png")
    typer.echo("written: " + ", ".join(map(str, written)))
