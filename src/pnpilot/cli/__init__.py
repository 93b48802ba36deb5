"""The command line. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import PnPilotError, UnknownName, first_line, require
from ._shared import Device, chosen_device, stoppable, terminable
from .bench import bench
from .reconstruct import reconstruct
from .train import train


class Commands(TyperGroup):
    """Any command may be stopped; those that keep their progress say so themselves."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        with stoppable("stopped"):
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(reconstruct)
app.add_typer(train, name="train")
app.add_typer(bench, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[  # noqa: ARG001 (its callback does the work)
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
    own: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="FILE", help="A Python file, or module, with things of your own to register."),
    ] = None,
) -> None:
    """Plug-and-play image reconstruction."""
    from ..plugins import use

    for name in own or ():
        use(name)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and JSON.")] = Path("demo"),
    device: Device = "auto",
) -> None:
    """Reconstruct a real brain scan in two settings, and compare with simpler methods."""
    from ..demo import run_demo

    with stoppable("stopped"):
        run_demo(out, chosen_device(device))


@app.command("list")
def list_registered(
    kind: Annotated[str | None, typer.Argument(help="Only one kind: problems, tasks, solvers, …")] = None,
) -> None:
    """Show what is registered: problems, tasks, solvers, denoisers, policies, baselines, oracles."""
    from rich.console import Console
    from rich.table import Table

    from ..benchmark.oracles import ORACLES
    from ..registry import summary
    from ..rooms import rooms

    registries: dict[str, Any] = {**rooms(), "oracles": ORACLES}
    if kind not in (None, *registries):
        raise UnknownName(f"unknown kind {kind!r}; known: {', '.join(registries)}")
    cited = kind is not None and any(hasattr(registries[kind][name], "reference") for name in registries[kind])
    columns = ("kind", "name", "what it is") if kind is None else ("name", "what it is", *["reference"] * cited)
    table = Table(*columns, box=None, header_style="bold", show_edge=False)
    for room, registry in registries.items():
        if kind not in (None, room):
            continue
        for index, name in enumerate(registry):
            row = [name, summary(registry[name])]
            if kind is None:
                row = [room if index == 0 else "", *row]
            elif cited:
                obstacle = getattr(registry[name], "obstacle", lambda: None)()
                row = [*row, registry[name].reference + (f" ({obstacle})" if obstacle else "")]
            table.add_row(*row)
        table.add_section()
    Console(markup=False, emoji=False).print(table)


def _own_things_first(arguments: list[str]) -> list[str]:
    """Move `--with FILE` to the front: it may stand anywhere, but is an option of the program, not of a command."""
    first, rest, words = [], [], iter(arguments)
    for word in words:
        if word == "--with":
            value = next(words, None)
            require(value is not None, "--with needs a Python file or module")
            first += [word, str(value)]
        elif word.startswith("--with="):
            first.append(word)
        else:
            rest.append(word)
    return [*first, *rest]


def main() -> None:
    """Entry point: errors a user can fix become one line and exit code 2."""
    try:
        with terminable():
            sys.exit(app(_own_things_first(sys.argv[1:]), standalone_mode=False))
    except Exception as error:
        message = _mendable(error)
        if message is None:
            raise
        if message:  # empty where the help was shown
            typer.echo(f"pnpilot: {' '.join(message.splitlines())}", err=True)
        sys.exit(2)


def _mendable(error: Exception) -> str | None:
    """The message of an error that a user can fix; None for a fault of ours."""
    if isinstance(error, PnPilotError):
        return str(error)
    # torch reports it in three ways, and importing it here only to ask for its class would be slow.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error):
        return f"not enough memory, smaller batches or images need less: {first_line(error)}"
    # What the command-line library refuses; its classes have moved from one release to another.
    explain = getattr(error, "format_message", None)
    return None if explain is None else explain()
