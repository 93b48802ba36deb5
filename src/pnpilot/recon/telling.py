"""What is told of a run on a file: the content of its report, and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..devices import device_name
from ..model import PnPilot
from ..provenance import header
from ..report import Content, ImageReport, panels

if TYPE_CHECKING:
    from .run import Run

SHOWN = (0.25, 0.5, 0.75)
"""The images of a file that its report shows, as shares of the way through it."""


def told(run: Run, model: PnPilot, order: dict[str, Any], written: Sequence[str]) -> Content:
    """The report of a finished run."""
    records = [run.journal.record(number) for number in range(len(run.scan))]
    steps: dict[str, list[Any]] = {}
    for record in records:
        for step, said in record.get("said", {}).items():
            steps.setdefault(step, said)
    notes = [*run.scan.notes]
    if scores := [record["truth_psnr"] for record in records if "truth_psnr" in record]:
        notes.append(f"against the images of the file: PSNR {np.mean(scores):.2f} dB in the mean")
    return {
        "file": str(run.file),
        "command": header()["command"],
        "versions": header()["versions"],
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": device_name(model.denoiser.device),
        "read": {"reader": run.raw.reader, "axes": dict(run.scan.lengths), "notes": notes},
        "prepared": [{"step": step, "done": done, "said": words} for step, (done, words) in steps.items()],
        "images": [_image(run, number, record) for number, record in enumerate(records)],
        "warnings": run.warnings,
        "seconds": {step: round(seconds, 3) for step, seconds in run.seconds.items()},
        "written": list(written),
        "order": order,
    }


def pictures(run: Run) -> list[tuple[str, bytes]]:
    """A few images to look at, upright where that is known."""
    total, drawn = len(run.scan), []
    for number in sorted({min(int(share * total), total - 1) for share in SHOWN}):
        record = run.journal.record(number)
        if not record["empty"]:
            shown = [_upright(run, picture) for picture in run.journal.pictures(number)]
            drawn.append((_image(run, number, record)["name"], panels(*shown)))
    return drawn


def _image(run: Run, number: int, record: dict[str, Any]) -> ImageReport:
    place = run.scan.place(number)
    name = ", ".join(f"{axis.removesuffix('-slice')} {at}" for axis, at in place.items()) or "image"
    known = {key: value for key, value in record.items() if key not in ("said", "index", "name")}
    return cast(ImageReport, dict(known, index=number, name=name))


def _upright(run: Run, picture: np.ndarray) -> np.ndarray:
    geometry = run.raw.geometry
    return picture if geometry is None else geometry.upright(picture, run.scan.plane)
