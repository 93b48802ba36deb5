"""Options and habits that the commands share."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput, Terminated, first_line, require

if TYPE_CHECKING:
    import torch

    from ..tasks import Task

SMALLEST_SIDE, LARGEST_SIDE = 16, 4096
"""Limits of the size that images may be resized to."""
LARGEST_BATCH = 4096

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
Batch = Annotated[int | None, typer.Option(help="Images per batch; default 8, on a GPU 512.", min=1, max=LARGEST_BATCH)]
Size = Annotated[str, typer.Option(help="Images are resized to this: 128, or HEIGHTxWIDTH.")]
Seeds = Annotated[int, typer.Option(help="Average over this many seeds, starting from --seed.", min=1)]
Colour = Annotated[bool, typer.Option("--colour", help="Read images in colour; the default is grey.")]
EstimateNoise = Annotated[bool, typer.Option("--estimate-noise", help="Policies are not told the noise level.")]


def parsed_size(text: str) -> tuple[int, int]:
    """'128' or '230x180' as height and width."""
    parts = text.lower().split("x")
    # Not isdigit(), which takes digits that int() does not; and no more of them than a size can have.
    numbers = [int(part) for part in parts if re.fullmatch("[0-9]{1,6}", part)]
    fitting = len(numbers) == len(parts) <= 2 and all(SMALLEST_SIDE <= n <= LARGEST_SIDE for n in numbers)
    require(
        fitting,
        f"a size is a number from {SMALLEST_SIDE} on, at most {LARGEST_SIDE}, or HEIGHTxWIDTH of such numbers, "
        f"got {text!r}",
    )
    return numbers[0], numbers[-1]


def channels_of(task: Task, colour: bool) -> int:
    """How many channels images are read with; refused if the task does not take them."""
    from ..errors import require

    channels = 3 if colour else 1
    require(channels in task.channels, f"the task {task.name!r} takes no {'colour' if colour else 'grey'} images")
    return channels


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
        results.show(Console(markup=False, emoji=False))  # names may hold brackets and colons


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
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("…", total=total)
        yield lambda words: bar.update(task, advance=1, description=words)


@contextmanager
def stoppable(message: str | None = None) -> Iterator[None]:
    """Turn Ctrl-C or SIGTERM into the usual exit code and, if there is a message, one line."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if message is not None:
            typer.echo(f"pnpilot: {message}", err=True)
        number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        raise typer.Exit(128 + number) from None


@contextmanager
def terminable() -> Iterator[None]:
    """Make SIGTERM raise `Terminated`, so that whatever handles Ctrl-C handles it too."""
    process = os.getpid()

    def terminate(number: int, _: FrameType | None) -> None:
        if os.getpid() == process:
            raise Terminated
        # A forked child ends silently.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def chosen_device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise BadInput(f"the device {name!r} cannot be used: {first_line(error)}") from error
    return device
