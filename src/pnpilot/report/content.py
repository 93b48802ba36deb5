"""What a report tells: the JSON that is written, and that the page is made of."""

from __future__ import annotations

import math
from typing import Any, TypedDict


class Read(TypedDict):
    """How the file was understood."""

    reader: str
    axes: dict[str, int]
    """Their lengths, in the order of the file."""
    notes: list[str]


class Prepared(TypedDict):
    """A step between the file and the reconstruction."""

    step: str
    done: bool
    said: str
    """What was done, or why it was left out."""


class ImageReport(TypedDict):
    """One image of the file. Its solver, iterations and parameters make it a trace, as `plots` draws them."""

    index: int
    name: str
    noise: float | None
    """The noise level, in units of the peak."""
    peak: float | None
    """In the units of the file."""
    kept: float | None
    """The share of a full measurement that there is, where that means something."""
    iterations: int
    stopped: str
    distance: float | None
    """From the data, in units of their noise."""
    calibration: str
    """What the coil maps were estimated from."""
    warnings: list[str]
    parameters: dict[str, list[float]]
    solver: str
    policy: str
    empty: bool
    """Whether there was nothing to reconstruct."""


class Content(TypedDict):
    """A run on one file."""

    file: str
    command: str
    created: str
    versions: dict[str, str]
    device: str
    read: Read
    prepared: list[Prepared]
    images: list[ImageReport]
    warnings: list[str]
    """What concerns the whole file."""
    seconds: dict[str, float]
    written: list[str]
    order: dict[str, Any]
    """What the run depends on: files with their sizes and times, and options."""


def plain(value: Any) -> Any:
    """The same in what JSON can say: no NaN or infinity, and no bytes of file names that are no text."""
    if isinstance(value, dict):
        return {plain(key): plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return None if isinstance(value, float) and not math.isfinite(value) else value
