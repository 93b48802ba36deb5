"""Readout oversampling: what was read out in excess is cut off."""

from __future__ import annotations

import numpy as np

from .fourier import to_image, to_kspace
from .options import Options

Said = tuple[bool, str]
"""Whether a step was done, and a sentence on it."""


def without_excess(
    k: np.ndarray,
    mask: np.ndarray,
    calibration: np.ndarray | None,
    axis: tuple[int, str],
    wanted: int,
    options: Options,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Said]:
    """K-space (coils, H, W), mask and calibration scan with fewer samples along one axis, if that can be done.

    That axis is told by its place, 0 for rows and 1 for columns, and its name.
    """
    place, name = axis
    words = f"of {k.shape[1 + place]} samples along {name}, {wanted} are kept"
    if options.skips("oversampling"):
        return k, mask, calibration, (False, f"switched off: {words} by default")
    cut = cropped_readout(k, mask, place, wanted)
    if cut is None:
        return k, mask, calibration, (False, f"left as it is: k-space is undersampled along {name}")
    if calibration is not None:
        again = cropped_readout(calibration, np.abs(calibration).max(0) > 0, place, wanted)
        calibration = None if again is None else again[0]
    return *cut, calibration, (True, f"readout oversampling removed: {words}")


def cropped_readout(
    kspace: np.ndarray, mask: np.ndarray, axis: int, wanted: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """K-space (coils, H, W) and mask of the middle of the field of view along one axis, or None if that was skipped in.

    What was left out at one end of all lines (an asymmetric echo) stays left out.
    """
    lines, along = np.asarray(mask.any(axis)), np.asarray(mask.any(1 - axis))
    used = along.nonzero()[0]
    if not len(used) or used[-1] - used[0] + 1 != len(used) or not np.array_equal(mask, _outer(lines, along, axis)):
        return None
    length = mask.shape[axis]
    image = to_image(kspace, (1 + axis,))
    first = length // 2 - wanted // 2
    cut = to_kspace(image.take(range(first, first + wanted), 1 + axis), (1 + axis,))
    # Samples that are `length / wanted` apart remain, those that were measured among them.
    places = length // 2 + np.round((np.arange(wanted) - wanted // 2) * length / wanted).astype(int)
    fewer = _outer(lines, along[places.clip(0, length - 1)], axis)
    return (cut * fewer).astype(np.complex64), fewer


def _outer(lines: np.ndarray, along: np.ndarray, axis: int) -> np.ndarray:
    return np.outer(along, lines) if axis == 0 else np.outer(lines, along)
