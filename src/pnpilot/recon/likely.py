"""Which axis of k-space is what, as the numbers themselves show."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import require
from ..io.raw import COIL, PART, SLICE, SPACE, Lazy
from .fourier import to_image

GATHERED = 0.5
"""Along an axis of k-space at least this share of the energy is in the middle eighth."""
SHORTEST = 16
"""Axes of space have at least so many samples, unless a format or the user names them."""
BLOCK = 24
"""Side of the middle of k-space in which coils are told from slices."""
CHANNELS = 8
"""At most so many of either are looked at."""
CORNER, FAINT = 4, 0.1
"""Side of a block in the corner of k-space, next to which its middle must not be as weak as this."""
FORETOLD = 0.1
"""Coils leave at most this share of each other unexplained."""
DOUBTFUL = 0.3
"""Up to here they may be coils with much noise; different slices leave more."""
ALIKE = 0.95
"""Images whose phases agree so well are slices, and whose magnitudes do are repeats or echoes: coils differ in both."""


def likely_names(data: Lazy, long: list[int], what: str) -> dict[int, str]:
    """Names for the axes of an array that are longer than one; refuses what could be one thing or another."""
    shape, names = data.shape, dict[int, str]()
    if not np.issubdtype(data.dtype, np.complexfloating):
        parts = [axis for axis in (long[-1], long[0]) if shape[axis] == 2]
        if parts:
            names[parts[0]] = PART
            long = [axis for axis in long if axis not in names]
    plane = _plane(data, long, what)
    for axis, name in zip(plane, SPACE[3 - len(plane) :], strict=True):
        names[axis] = name
    require(
        not _cornered(data, plane, names),
        f"the zero frequency of {what} seems to be in the corner: it belongs to the middle, n // 2 of each axis of "
        "space; move it with np.fft.fftshift, or are the data not Cartesian?",
    )
    others = [axis for axis in long if axis not in names]
    require(len(others) <= 2, f"{what} has shape {shape}: name its axes, as in --axes slice,coil,y,x")
    # In one plane of a volume, coils that lie across it look alike.
    pairs = list(itertools.combinations(plane, 2))
    strangeness = {axis: min(_unlike_coils(_channels(data, axis, pair, names)) for pair in pairs) for axis in others}
    coil = min(strangeness, key=lambda axis: strangeness[axis], default=None)
    both = len(others) > 1 and max(strangeness.values()) <= FORETOLD
    require(not both, f"{what} has shape {shape}, and two axes may be coils: name them, as in --axes slice,coil,y,x")
    doubtful = coil is not None and FORETOLD < strangeness[coil] < DOUBTFUL
    require(
        not doubtful, f"{what} has shape {shape}, and axis {coil} may be coils or not: name them, as in --axes coil,y,x"
    )
    for axis in others:
        names[axis] = COIL if axis == coil and strangeness[axis] <= FORETOLD else SLICE
    require(
        len(set(names.values())) == len(names),
        f"{what} has shape {shape}, and no axis looks like coils: name them, as in --axes slice,time,y,x",
    )
    return names


def _plane(data: Lazy, long: list[int], what: str) -> list[int]:
    """The axes of space: along them, the energy of k-space gathers in the middle. Else the two longest ones."""
    gathered = [axis for axis in long if data.shape[axis] >= SHORTEST and _gathered(data, axis, long) >= GATHERED]
    if 2 <= len(gathered) <= 3:
        return gathered
    longest = sorted(long, key=lambda axis: data.shape[axis])[-2:]
    shorter = max((data.shape[axis] for axis in long if axis not in longest), default=0)
    plain = min(data.shape[axis] for axis in longest) > shorter
    require(plain, f"{what} has shape {data.shape}: name its axes, as in --axes slice,coil,y,x")
    return sorted(longest)


def _gathered(data: Lazy, axis: int, long: list[int]) -> float:
    """The share of the energy along an axis that is within its middle eighth, near the middle of the others."""
    part = _complex(data, {other: (8 if other != axis else data.shape[axis]) for other in long})
    energy = np.abs(np.moveaxis(part, axis, 0).reshape(part.shape[axis], -1)) ** 2
    profile = energy.sum(1, dtype=float)
    length, half = len(profile), max(1, len(profile) // 16)
    return float(profile[length // 2 - half : length // 2 + half + 1].sum() / max(profile.sum(), 1e-300))


def _cornered(data: Lazy, plane: list[int], names: dict[int, str]) -> bool:
    """Whether k-space is much stronger in its corner than in its middle, or at the beginning of some of its axes."""
    lengths = {axis: 2 for axis, name in names.items() if name == PART} | {axis: 2 * CORNER for axis in plane}
    middle = np.square(np.abs(_complex(data, lengths))).mean()
    for count in range(1, len(plane) + 1):
        for some in itertools.combinations(plane, count):
            corner = _complex(data, lengths | dict.fromkeys(some, CORNER), dict.fromkeys(some, 0))
            if middle < FAINT * np.square(np.abs(corner)).mean():
                return True
    return False


def _channels(data: Lazy, axis: int, plane: tuple[int, ...], names: dict[int, str]) -> np.ndarray:
    """The middle of k-space of a few channels along an axis, (channels, rows, columns), where it is strongest."""
    wanted = {other: CHANNELS for other in range(len(data.shape)) if other not in (axis, *plane)}
    wanted |= {other: BLOCK for other in plane}
    # From all along the axis: coils that are neighbours of many see nearly the same.
    places = np.linspace(0, data.shape[axis] - 1, min(data.shape[axis], CHANNELS)).round().astype(int)
    part = np.concatenate([_complex(data, wanted, {axis: int(place)}) for place in places], axis)
    if PART in names.values():
        place = next(other for other, name in names.items() if name == PART)
        part = part.take([0], place) + 1j * part.take([1], place)
    moved = np.moveaxis(part, (axis, *plane), (0, -2, -1))
    moved = moved.reshape(len(moved), -1, *moved.shape[-2:])
    return moved[:, np.square(np.abs(moved)).sum((0, 2, 3)).argmax()]


def _unlike_coils(block: np.ndarray) -> float:
    """How much the neighbourhoods of other channels leave unexplained of each, or 1 where channels are too much alike.

    Coils see one object through smooth windows: a sample of one is a mixture of samples near it in the others.
    """
    block = block[np.abs(block).any((1, 2))]  # there may be empty slices
    if len(block) < 2:
        return 1.0
    images = to_image(block * np.outer(*(np.hanning(length + 2)[1:-1] for length in block.shape[1:])))
    pairs = [(one, other) for one in range(len(images)) for other in range(one)]
    phases = [_alike(images[one], images[other]) for one, other in pairs]
    bright = [_as_bright(images[one], images[other]) for one, other in pairs]
    if max(np.median(phases), np.median(bright)) > ALIKE:
        return 1.0
    near = np.lib.stride_tricks.sliding_window_view(block, (3, 3), axis=(1, 2)).reshape(len(block), -1, 9)
    left = []
    for channel, target in enumerate(near[:, :, 4]):
        others = np.concatenate([near[other] for other in range(len(block)) if other != channel], 1)
        residual = target - others @ np.linalg.lstsq(others, target, rcond=1e-3)[0]
        # So many unknowns explain noise, too.
        freedom = max(1 - others.shape[1] / len(target), 0.1)
        left.append(
            np.square(np.abs(residual)).sum() / freedom / max(np.square(np.abs(target)).sum(dtype=float), 1e-300)
        )
    return float(np.median(left))


def _alike(one: np.ndarray, other: np.ndarray) -> float:
    """How far two images have the same phase: one where they have it everywhere."""
    product = one.conj() * other
    return float(product.real.sum() / max(np.abs(product).sum(dtype=float), 1e-300))


def _as_bright(one: np.ndarray, other: np.ndarray) -> float:
    """How far two images have the same magnitude, but for a factor: one where they have it everywhere."""
    one, other = np.abs(one), np.abs(other)
    size = np.linalg.norm(one) * np.linalg.norm(other)
    return float((one * other).sum() / max(size, 1e-300))


def _complex(data: Lazy, lengths: Mapping[int, int], begin: Mapping[int, int] | None = None) -> np.ndarray:
    """The middle of an array: so many entries of these axes, one of all others, which stay as axes of one.

    Along some axes they `begin` elsewhere.
    """
    index = []
    for axis, size in enumerate(data.shape):
        length = min(lengths.get(axis, 1), size)
        first = (begin or {}).get(axis, size // 2 - length // 2)
        index.append(slice(first, first + length))
    part: Any = np.asarray(data[tuple(index)])
    return np.nan_to_num(part.astype(np.complex128), posinf=0, neginf=0)
