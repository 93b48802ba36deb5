"""`pnpilot bench compare`: ours against everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._shared import (
    LARGEST_BATCH,
    Colour,
    Data,
    Datasets,
    Device,
    Images,
    Methods,
    Seed,
    Settings,
    Size,
    channels_of,
    chosen_device,
    listed,
    parsed_size,
    progress_bar,
    stoppable,
)


def bench_compare(
    data: Data,
    task: Annotated[str, typer.Option(help="A registered task; its own test sets and settings are the default.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for all output; results already there are not computed again. Default: runs/TASK."),
    ] = None,
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    setting: Settings = None,
    policy: Annotated[
        Path | None, typer.Option(help="Folder that `pnpilot train policy` wrote, in place of the shipped policy.")
    ] = None,
    size: Size = "128",
    colour: Colour = False,
    batch: Annotated[
        int | None, typer.Option(help="Images per batch; default 8, on a GPU 64.", min=1, max=LARGEST_BATCH)
    ] = None,
    seed: Seed = 0,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Average over this many seeds, starting from --seed. Default: as in the task's table.", min=1
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            help="Draw operators, such as random masks, apart from the noise, this often for each seed. "
            "Default: as in the task's table.",
            min=1,
        ),
    ] = None,
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the visual comparison.")] = True,
    device: Device = "auto",
) -> None:
    """Ours against everyone on a task: PSNR, SSIM, iterations and seconds of every method, beside the paper's numbers.

    Results are kept cell by cell in OUT/cells: the same command resumes a stopped run, one that asks for more computes
    only what is missing, and several runs may share the work, each with other methods, settings or seeds.
    """
    from rich.console import Console

    from ..benchmark.cells import Cells
    from ..benchmark.comparison import Comparison
    from ..benchmark.data import choose_datasets, choose_settings
    from ..benchmark.examples import examples, shown_settings
    from ..benchmark.methods import comparison_methods
    from ..benchmark.report import markdown
    from ..benchmark.results import Results
    from ..benchmark.tables import table_of
    from ..io.files import write_atomically
    from ..plots import compare_crops
    from ..tasks import build_task

    # Refuse anything wrong before the first measurement.
    chosen, where = build_task(task), chosen_device(device)
    table, settings = table_of(chosen), choose_settings(chosen, setting or ())
    sets = choose_datasets(chosen, data, listed(dataset), images)
    methods, left_out = comparison_methods(chosen, where, listed(method), policy)
    plan = Comparison(chosen, data, sets, settings, methods, where, parsed_size(size), images, seed)
    plan.seeds, plan.draws = seeds or table.seeds, draws or table.draws
    plan.batch, plan.channels = batch or (64 if where.type == "cuda" else 8), channels_of(chosen, colour)
    for name, why in left_out.items():
        typer.echo(f"left out: {name} {why}", err=True)

    folder = Path("runs", task) if out is None else out
    cells, files = Cells(folder / "cells"), [folder / f"{task}.{ending}" for ending in ("md", "json", "png")]
    results = Results(files[1], seed, plan.seeds, plan.draws)
    with stoppable("stopped; what is finished is kept, and the same command goes on from it"):
        with progress_bar(len(plan)) as tick:
            plan.run(results, cells, tick)
        report = markdown(table.title, results.rows, results.content["command"], table.notes)
        write_atomically(files[0], report.encode())
        results.show(Console())
        if figure:
            with progress_bar(len(sets) * len(shown_settings(plan)) * len(methods)) as tick:
                compare_crops(files[2], examples(plan, cells, tick))
    typer.echo("written: " + ", ".join(str(file) for file in (files if figure else files[:2])))
