"""`pnpilot bench csmri`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


def bench_csmri(
    data: Data,
    out: Annotated[
        Path, typer.Option(help="Folder for all it writes; what is there already is not done again.")
    ] = Path("runs/csmri"),
    images: Images = None,
    method: Methods = None,
    dataset: Datasets = None,
    setting: Settings = None,
    size: Size = "128",
    batch: Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 64.", min=1)] = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the visual comparison.")] = True,
    device: Device = "auto",
) -> None:
    """CS-MRI against everyone: PSNR, SSIM, iterations and seconds of every method, beside the paper's numbers.

    Results are kept cell by cell in OUT/cells: a run that was stopped, or asked for more, does what is missing, and
    several runs may share the work, each with other methods, settings or seeds.
    """
    from rich.console import Console

    from ..benchmark.cells import Cells
    from ..benchmark.csmri import CSMRIBench, choose_methods
    from ..benchmark.data import check_datasets
    from ..benchmark.policies import choose_settings
    from ..benchmark.report import markdown, show
    from ..io.files import write_atomically, write_json
    from ..plots import compare_crops
    from ..tasks.csmri import CSMRI

    methods, left_out = choose_methods(listed(method))
    where, task = chosen_device(device), CSMRI()
    sets, settings = listed(dataset) or list(task.datasets), choose_settings(task, setting or ())
    check_datasets(data, sets, images)
    plan = CSMRIBench(data, sets, settings, methods, where, parsed_size(size), images, seed, seeds)
    plan.batch = batch or (64 if where.type == "cuda" else 8)
    cells = Cells(out / "cells")
    for name, why in left_out.items():
        typer.echo(f"left out: {name} {why}", err=True)
    with stoppable("stopped; what is finished is kept, and the same command goes on from it"):
        with progress_bar(len(plan)) as tick:
            rows = plan.run(cells, tick)
        write_json(out / "csmri.json", {"command": cells.command, "seed": seed, "seeds": seeds, "rows": rows})
        write_atomically(out / "csmri.md", markdown(rows, cells.command).encode())
        show(rows, Console())
        written = [out / "csmri.md", out / "csmri.json"]
        if figure:
            with progress_bar(len(sets) * len(methods)) as tick:
                compare_crops(out / "csmri.png", plan.examples(tick))
            written.append(out / "csmri.png")
    typer.echo("written: " + ", ".join(map(str, written)))
