"""`pnpilot bench operators`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._shared import LARGEST_BATCH, Data, Device, Images, Methods, Weights, chosen_device, listed, table_progress


def bench_operators(
    data: Data,
    out: Annotated[
        Path, typer.Option(help="Folder for all output; results already there are not computed again.")
    ] = Path("runs/operators"),
    operator: Annotated[
        list[str] | None,
        typer.Option("--operator", "--operators", help="Only these operators; repeat, or separate by commas."),
    ] = None,
    method: Methods = None,
    images: Images = None,
    denoiser: Annotated[str, typer.Option(help="A registered denoiser, for the rows that search.")] = "compact",
    weights: Weights = None,
    policy: Annotated[
        list[Path] | None,
        typer.Option("--policy", help="Folder that `pnpilot train policy` wrote, a column of its own; repeat."),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Images of 128×128 per batch; default 8, on a GPU 512.", min=1, max=LARGEST_BATCH),
    ] = None,
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw the wall of pictures.")] = True,
    device: Device = "auto",
) -> None:
    """Every operator with every method that applies: PSNR, SSIM, iterations and seconds; and a wall of pictures.

    Each operator is one file of `benchmark/operators` that says exactly what it is. The columns fixed-optimal, oracle
    and tv-best search with the truth at hand: minutes on a GPU, hours on a CPU; leave them out with --method. What a
    method cannot do is a dash, with the reason in the JSON.
    """
    from ..benchmark.cells import Cells
    from ..benchmark.operator_results import OperatorResults
    from ..benchmark.operator_table import OperatorTable
    from ..benchmark.operator_wall import draw_wall
    from ..benchmark.operators import in_order
    from ..denoisers import build_denoiser

    where = chosen_device(device)
    network = build_denoiser(denoiser, weights=weights).to(where)
    table = OperatorTable(data, listed(operator) or in_order(), network, where, listed(method), images)
    table.batch = batch or (512 if where.type == "cuda" else 8)
    table.policies = {folder.name: folder for folder in policy or ()}
    table.check()
    cells, results = Cells(out / "cells"), OperatorResults(out / "operators.json", table.columns)
    typer.echo(f"about {table.calls():,} calls of the denoiser for an image of 128×128", err=True)
    with table_progress(results, len(table)) as tick:
        table.run(results, cells, tick, lambda words: typer.echo(words, err=True))
    files = [out / "operators.json"]
    if figure:
        files.append(out / "operators.png")
        draw_wall(files[-1], table.shown)
    typer.echo("written: " + ", ".join(map(str, files)))
