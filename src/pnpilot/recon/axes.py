"""Which axis of an array is what: as the format says, as the user says, or as the numbers show."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import require
from ..io.raw import COIL, PART, SLICE, Lazy, Stored
from .likely import likely_names

ONE = "one"
"""What users call axes of length one that mean nothing."""


def named(stored: Stored, given: Sequence[str] | None, what: str = "the array") -> tuple[Stored, list[str]]:
    """The array with a name for every axis longer than one, and sentences on what was found."""
    shape = stored.data.shape
    if given is not None:
        return _as_told(stored.data, tuple(given), what), []
    if stored.axes is not None:
        return stored, []
    long = [axis for axis, length in enumerate(shape) if length > 1]
    require(len(long) >= 2, f"{what} has shape {shape}: an image needs two axes that are longer than one")
    names = [nameless(axis) for axis in range(len(shape))]
    found = likely_names(stored.data, long, what)
    for axis, name in found.items():
        names[axis] = name
    told = [f"axis {axis} for {_words(name, shape[axis])}" for axis, name in sorted(found.items())]
    return Stored(stored.data, tuple(names)), [f"took {', '.join(told)}; --axes names them otherwise"]


def _as_told(data: Lazy, given: tuple[str, ...], what: str) -> Stored:
    shape = data.shape
    if len(given) != len(shape) and len(given) == sum(length > 1 for length in shape):
        left = list(given)
        given = tuple(left.pop(0) if length > 1 else ONE for length in shape)
    require(len(given) == len(shape), f"{what} has {len(shape)} axes, {shape}: --axes names {len(given)}")
    twice = [name for name in set(given) if given.count(name) > 1 and name != ONE]
    require(not twice, f"--axes names {', '.join(twice)} twice")
    for axis in ("y", "x"):
        require(axis in given, f"--axes must name an axis {axis!r}: rows and columns are y and x, in either order")
    for name, length in zip(given, shape, strict=True):
        require(name != ONE or length == 1, f"--axes calls an axis of {length} {ONE!r}")
        require(name != PART or length == 2, f"an axis of real and imaginary part has length two, not {length}")
    return Stored(data, tuple(nameless(axis) if name == ONE else name for axis, name in enumerate(given)))


def nameless(axis: int) -> str:
    """What an axis of length one that means nothing is called: no two axes have one name."""
    return f"{ONE}{axis}"


def _words(name: str, length: int) -> str:
    kinds = {COIL: "coils", SLICE: "slices", PART: "real and imaginary part"}
    if name == PART:
        return kinds[name]
    return f"{length} {kinds[name]}" if name in kinds else f"{name}, {length} samples"
