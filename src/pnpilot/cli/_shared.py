"""Options and habits that the commands share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import torch

Data = Annotated[Path, typer.Option(help="Folder that holds the test sets, as NAME/ or test/NAME/.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write rows and per-image values here.")]
Images = Annotated[int | None, typer.Option(help="Only the first N images of each set.", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of noise and random masks.", min=0, max=2**31)]
Weights = Annotated[
    Path | None, typer.Option(help="Folder that `pnpilot train denoiser` wrote, in place of shipped weights.")
]
Device = Annotated[str, typer.Option(help="cuda, cpu, or auto.")]
Methods = Annotated[
    list[str] | None, typer.Option("--method", "--methods", help="Only these methods; repeat, or separate by commas.")
]
Datasets = Annotated[list[str] | None, typer.Option("--dataset", help="Only this test set; repeat for several.")]
Settings = Annotated[
    list[str] | None, typer.Option("--setting", help="Only this setting, e.g. 'x4 sigma=15'; repeat for several.")
]

Policies = Annotated[
    list[Path] | None, typer.Option("--policy", help="Folder that `pnpilot train policy` wrote; repeat for several.")
]
Batch = Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 512.", min=1)]
Size = Annotated[str, typer.Option(help="Images are resized to this: 128, or HEIGHTxWIDTH.")]
Seeds = Annotated[int, typer.Option(help="Average over this many seeds, from the first on.", min=1)]
EstimateNoise = Annotated[bool, typer.Option("--estimate-noise", help="Policies are not told the noise level.")]


def parsed_size(text: str) -> tuple[int, int]:
    """'128' or '230x180' as height and width."""
    from ..errors import BadInput

    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.isdigit() and int(part) >= 16 for part in parts):
        raise BadInput(f"a size is a number from 16 on, or HEIGHTxWIDTH, got {text!r}")
    return int(parts[0]), int(parts[-1])


def listed(values: Iterable[str] | None) -> list[str]:
    """What was given by repeating an option, or separated by commas, once each."""
    return distinct(name.strip() for value in values or () for name in value.split(",") if name.strip())


def distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


@contextmanager
def table_progress(results: Any, total: int) -> Iterator[Any]:
    """A bar over the cells of a table; the table is printed at the end, even after Ctrl-C."""
    from rich.console import Console

    try:
        with stoppable("stopped; finished rows are kept"), progress_bar(total) as tick:
            yield tick
    finally:
        results.show(Console())


@contextmanager
def progress_bar(total: int) -> Iterator[Any]:
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
def stoppable(message: str) -> Iterator[None]:
    """Ctrl-C is a line and the customary exit code, not a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"pnpilot: {message}", err=True)
        raise typer.Exit(130) from None


def chosen_device(name: str) -> torch.device:
    import torch

    from ..errors import BadInput, first_line

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(f"the device {name!r} cannot be used: {first_line(error)}") from error
    return device
