"""`pnpilot reconstruct`: files in, images out."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._shared import chosen_device, listed, stoppable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recon import Outcome


def reconstruct(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Any of the formats above.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", show_default=False, help="Folder for results; else ./reconstructed.")
    ] = Path("reconstructed"),
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="NAMES", help="h5, nii, cfl, npy, mat, png, tif, dcm; else as read."),
    ] = None,
    axes: Annotated[str | None, typer.Option(metavar="NAMES", help="As in slice,coil,y,x; else found.")] = None,
    key: Annotated[str | None, typer.Option(metavar="NAME", help="Which array of a file; else found.")] = None,
    maps: Annotated[Path | None, typer.Option(metavar="FILE", help="Coil maps; else estimated.")] = None,
    mask: Annotated[Path | None, typer.Option(metavar="FILE", help="Mask; else what is not zero.")] = None,
    noise: Annotated[Path | None, typer.Option(metavar="FILE", help="Noise scan (coil, sample).")] = None,
    psf: Annotated[Path | None, typer.Option(metavar="FILE", help="Point-spread function of a picture.")] = None,
    trajectory: Annotated[Path | None, typer.Option(metavar="FILE", help="Where in k-space samples lie.")] = None,
    density: Annotated[Path | None, typer.Option(metavar="FILE", help="Their weights; else estimated.")] = None,
    angles: Annotated[Path | None, typer.Option(metavar="FILE", help="Of the views of a tomogram.")] = None,
    centre: Annotated[
        float | None, typer.Option(metavar="PIXEL", help="Where a tomogram's axis falls; else found.")
    ] = None,
    matrix: Annotated[int | None, typer.Option(metavar="N", help="Pixels a side behind a trajectory.")] = None,
    simulate: Annotated[
        str | None, typer.Option(metavar="HOW", help="Measure finished images anew: 'radial x4'.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="STEP", help="Leave out a step of those that are told.")
    ] = None,
    always: Annotated[list[str] | None, typer.Option(metavar="STEP", help="whitening: do it in any case.")] = None,
    batch: Annotated[int | None, typer.Option(metavar="N", help="Images in work at a time.", min=1)] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what is there already.")] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="cuda, cpu, or auto.")] = "auto",
) -> None:
    """Reconstruct images from files of measurements: nothing needs to be set.

    fastMRI, ISMRMRD, BART, DataExchange, MATLAB, NumPy; TIFF, PNG, JPEG with --psf; any pictures with --simulate.
    NAME.html, beside the images, shows what was done; NAME.json tells it. Stopped runs go on where they were.
    """
    from ..errors import BadInput
    from ..io.files import writable_folder
    from ..io.writers import writer_named
    from ..model import PnPilot
    from ..recon import Options, reconstruct_files

    formats = listed([form] if form else None)
    for name in formats:
        writer_named(name)
    left_out, forced = frozenset(listed(without)), frozenset(listed(always))
    given = (axes, key, mask, maps, noise, psf, trajectory, density, angles, centre, matrix)
    options = Options(*given, simulate, without=left_out, always=forced)
    writable_folder(out)
    model = PnPilot(device=chosen_device(device))
    with stoppable("stopped; the same command goes on from here"), _watching(len(files) > 1) as watch:
        outcomes = reconstruct_files(
            files, out, formats=formats, options=options, model=model, room=batch, again=again, watch=watch
        )
        done = [watch.ended(outcome) for outcome in outcomes]
    failed = [outcome for outcome in done if outcome.error]
    if len(done) == 1 and failed:
        raise BadInput(failed[0].error)
    if len(done) > 1:
        typer.echo(f"{len(done) - len(failed)} of {len(done)} files reconstructed, {len(failed)} failed", err=True)
    if failed:
        raise typer.Exit(1)


@contextmanager
def _watching(several: bool) -> Iterator[Any]:
    """A bar over the images of a file, and sentences above it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from ..recon import Watch

    console = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )

    class Bar(Watch):
        def __init__(self, bar: Progress) -> None:
            self.bar, self.task = bar, bar.add_task("reading", total=None, count="")
            self.done, self.total, self.told = 0.0, 0, 0

        def begin(self, file: Path, images: int, done: int) -> None:
            self.done, self.total, self.told = done, images, int(10 * done / images)
            self.bar.update(self.task, description=file.name, total=images)
            self.tick(0.0)
            console.print(f"{file}: {images} image{'s' * (images != 1)}" + f", {done} there from before" * bool(done))

        def tick(self, images: float) -> None:
            self.done += images
            words = f"{int(self.done + 1e-6)}/{self.total} images"
            self.bar.update(self.task, completed=self.done, count=words)
            # A log has no bar: whole images are told, and no more than ten times.
            tenth = int(10 * int(self.done + 1e-6) / self.total) if self.total else 0
            if not console.is_terminal and tenth > self.told:
                self.told = tenth
                console.print(f"  {words}")

        def say(self, sentence: str) -> None:
            console.print(f"  {sentence}")

        def ended(self, outcome: Outcome) -> Outcome:
            if outcome.error and several:
                console.print(f"skipped: {outcome.error}")
            elif outcome.error:
                pass  # it ends the command
            elif outcome.again:
                console.print(f"{outcome.file}: done before, nothing to do; --again does it anew")
            else:
                assert outcome.report is not None
                warnings = {line for image in outcome.report["images"] for line in image["warnings"]}
                for line in sorted(warnings)[:5]:
                    console.print(f"  warning: {line}")
                if len(warnings) > 5:
                    console.print(f"  {len(warnings) - 5} more warnings are in the report")
                typer.echo("written: " + ", ".join(map(str, outcome.written)))
            self.bar.reset(self.task, description="reading", total=None, count="")
            return outcome

    with Progress(*columns, console=console, transient=True) as bar:
        yield Bar(bar)
