"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ._shared import Device, chosen_device, stoppable
from .bench import bench
from .train import train

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(train, name="train")
app.add_typer(bench, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

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
    from ..demo import run_demo

    with stoppable("stopped"):
        run_demo(out, chosen_device(device))


@app.command("list")
def list_registered(
    kind: Annotated[str | None, typer.Argument(help="Only tasks, solvers, denoisers, policies or baselines.")] = None,
) -> None:
    """Show what is registered: tasks, solvers, denoisers, policies, baselines."""
    from rich.console import Console
    from rich.table import Table

    from ..baselines import BASELINES
    from ..denoisers import DENOISERS
    from ..errors import UnknownName
    from ..policies import POLICIES
    from ..solvers import SOLVERS
    from ..tasks import TASKS

    rooms: dict[str, Any] = {
        "tasks": TASKS,
        "solvers": SOLVERS,
        "denoisers": DENOISERS,
        "policies": POLICIES,
        "baselines": BASELINES,
    }
    if kind not in (None, *rooms):
        raise UnknownName(f"unknown kind {kind!r}; known: {', '.join(rooms)}")
    columns = {None: ("kind", "name", "what it is"), "baselines": ("name", "what it is", "reference")}
    table = Table(*columns.get(kind, ("name", "what it is")), box=None, header_style="bold", show_edge=False)
    for room, registry in rooms.items():
        if kind not in (None, room):
            continue
        for index, name in enumerate(registry):
            row = [name, registry.summary(name)]
            if kind is None:
                row = [room if index == 0 else "", *row]
            elif room == "baselines":
                obstacle = BASELINES[name].obstacle()
                row = [*row, BASELINES[name].reference + (f" ({obstacle})" if obstacle else "")]
            table.add_row(*row)
        table.add_section()
    Console().print(table)


def main() -> None:
    """Entry point: errors a user can mend are one line and exit code 2."""
    from ..errors import PnPilotError

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
