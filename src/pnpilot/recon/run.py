"""One file from end to end: read, prepare, reconstruct in batches, write, report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadInput, PnPilotError, require
from ..io.files import writable_folder
from ..io.raw import Raw
from ..io.readers import open_raw
from ..io.writers import Volume, save, writer_named
from ..model import PnPilot
from ..provenance import header
from ..report import write_report
from .fourier import resized
from .grey import grey
from .journal import Journal
from .modalities import understood
from .options import Options
from .order import all_there, check_targets, earlier_report, order_of, stem
from .outcome import Outcome, Watch
from .prepared import Prepared
from .room import room_for
from .simulate import simulated
from .stream import Finished, stream
from .telling import pictures, told


def reconstruct_file(
    file: str | Path,
    out: str | Path,
    *,
    formats: Sequence[str] = (),
    options: Options | None = None,
    model: PnPilot | None = None,
    room: int | None = None,
    again: bool = False,
    name: str | None = None,
    watch: Watch | None = None,
) -> Outcome:
    """Reconstruct all images of a file into the folder `out`, with a report beside them.

    `formats` are names of writers; by default the family of the input. At most `room` images are in memory at a time.
    What a run that was stopped had finished is not done again, and nothing is, if all is there, unless `again`.
    """
    file, out, options, watch = Path(file), Path(out), options or Options(), watch or Watch()
    formats = [writer_named(form) for form in formats]
    writable_folder(out)
    name = name or stem(file)
    model = model or PnPilot()
    order = order_of(file, formats, options, model)
    report = out / f"{name}.json"
    known = earlier_report(report)
    if not again and known is not None and known.get("order") == order and all_there(out, known):
        return Outcome(file, [out / own for own in known["written"]], known, again=True)
    unfinished = out / f".{name}.unfinished"
    journal = Journal(unfinished, order)
    ours = again or journal.begun
    try:
        with contextlib.ExitStack() as files:
            run = Run(file, options, journal, files)
            targets = formats or (run.raw.family,)
            check_targets(out, name, targets, (len(run.scan), run.scan.channels), file, options, ours)
            run.reconstruct(model, room or room_for(run.scan, model.denoiser.device), watch)
            written = run.write(out, name, targets)
            content = told(run, model, order, [*(path.name for path in written), f"{name}.json", f"{name}.html"])
            for sentence in content["read"]["notes"][len(run.scan.notes) :]:
                watch.say(sentence)
            written += write_report(out, name, content, pictures(run))
    except PnPilotError as error:
        message = str(error)
        raise BadInput(message if message.startswith(str(file)) else f"{file}: {message}") from error
    finally:
        journal.rest()
    journal.close()
    return Outcome(file, written, content)


class Run:
    """A file on its way."""

    def __init__(self, file: Path, options: Options, journal: Journal, files: contextlib.ExitStack) -> None:
        self.file, self.options, self.journal = file, options, journal
        self.seconds: dict[str, float] = {}
        self.warnings: list[str] = []
        with self._timed("reading"):
            self.raw = files.enter_context(open_raw(file, journal.scratch, options.key))
            others = {
                kind: files.enter_context(open_raw(path, journal.scratch)) for kind, path in options.files.items()
            }
            require(self.raw.measured is not None, "it holds no measurement")
            if options.simulate is not None:
                self.raw, sentence = simulated(self.raw, options.simulate, options.seed, options.names)
                self.warnings.append(sentence)
            for kind, other in others.items():
                self._complete(kind, other)
            self.scan = understood(self.raw, options, journal.scratch)

    def _complete(self, kind: str, other: Raw) -> None:
        """Put what another file brings to what is measured."""
        fields = {"maps": other.maps, "noise": other.noise, "mask": other.mask}
        listed = other.mask if kind == "angles" else None  # as lists of numbers are read
        own = fields.get(kind, other.beside.get(kind)) or other.measured or listed
        if own is None:
            raise BadInput(f"{self.options.files[kind]}: it holds no {kind}")
        own = own if kind == "psf" else grey(own)
        if kind in fields:
            setattr(self.raw, kind, own)
        else:
            self.raw.beside[kind] = own

    def reconstruct(self, model: PnPilot, room: int, watch: Watch) -> None:
        """All images that are not there yet."""
        missing = [number for number in range(len(self.scan)) if number not in self.journal.done]
        watch.begin(self.file, len(self.scan), len(self.journal.done))
        for sentence in (*self.warnings, *self.scan.notes):
            watch.say(sentence)
        told: set[str] = set()
        said: dict[int, dict[str, Any]] = {}

        def prepared() -> Iterator[Prepared]:
            for number in missing:
                with self._timed("preparing"):
                    image = self.scan[number]
                said[number] = {step: list(words) for step, words in image.said.items()}
                yield image

        started, before = time.perf_counter(), self.seconds.get("preparing", 0.0)
        for finished in stream(model, prepared(), room, watch.tick):
            steps = said.pop(finished.number)
            for step, (_, sentence) in steps.items():
                if step not in told:
                    watch.say(sentence)
                    told.add(step)
            self.journal.keep(self._cut(finished, steps))
        seen = any(not self.journal.record(number)["empty"] for number in range(len(self.scan)))
        if not seen:
            self.journal.done.clear()
            raise BadInput("the measurement is zero everywhere: there is nothing to reconstruct from")
        spent = time.perf_counter() - started - (self.seconds.get("preparing", 0.0) - before)
        self.seconds["reconstruction"] = spent

    def _cut(self, finished: Finished, steps: dict[str, Any]) -> Finished:
        image, start, objection = (
            resized(part, self.scan.sizes) for part in (finished.image, finished.start, finished.objection)
        )
        record = {**finished.record, "said": steps, **self._scores(finished.number, image)}
        return replace(finished, record=record, image=image, start=start, objection=objection)

    def _scores(self, number: int, image: np.ndarray) -> dict[str, float]:
        """Of simulated data the truth is known."""
        found = self.scan.truth(number)
        if found is None:
            return {}
        truth = np.abs(found)
        error = float(np.square(np.abs(image) - truth).mean())
        return {"truth_psnr": float(10 * np.log10(max(float(truth.max()), 1e-30) ** 2 / max(error, 1e-30)))}

    def write(self, out: Path, name: str, formats: Sequence[str]) -> list[Path]:
        """The results, in each of the formats."""
        scan, simulating = self.scan, self.options.simulate is not None
        origin = "SIMULATED measurement, reconstructed anew from" if simulating else "reconstructed from"
        volume = Volume(
            (*scan.shape, *scan.sizes),
            (*(axis.removesuffix("-slice") for axis in scan.counting), *scan.plane),
            self.journal.image,
            self.raw.geometry,
            self.raw.header,
            about=f"{origin} {self.file.name} by pnpilot {header()['versions']['pnpilot']}",
            simulated=simulating,
            colours=scan.channels == 3,
            pixels=scan.pixels,
        )
        with self._timed("writing"):
            return [path for form in formats for path in save(form, out, name, volume, self.journal.folder)]

    @contextlib.contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - started
