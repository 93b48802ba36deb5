"""Arrays of coded diffraction by their names: amplitudes or intensities, and the phase masks behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..raw import MASK_AXIS, SLICE, Raw, Stored

AMPLITUDES, INTENSITIES, MASKS, ALPHA = "amplitudes", "intensities", "masks", "alpha"
"""What they are called in `Raw.beside`."""
NAMES = {
    AMPLITUDES: ("amplitudes", "amplitude", "magnitudes"),
    INTENSITIES: ("intensities", "intensity"),
    MASKS: ("masks", "phase_masks"),
    ALPHA: ("alpha",),
}
EITHER = ("y", "data", "measurements")
"""Names that do not tell which of the two is in it."""
FIRST, LAST = (MASK_AXIS, "y", "x"), ("y", "x", MASK_AXIS)


@dataclass(frozen=True)
class Found:
    """The names of such arrays in a file, and their axes."""

    measured: str
    masks: str
    alpha: str | None
    quantity: str | None
    """Amplitudes or intensities, if the name tells."""
    measured_axes: tuple[str, ...]
    mask_axes: tuple[str, ...]

    def raw(self, raw: Raw, measured: Stored, masks: Stored, alpha: Stored | None) -> Raw:
        """What the file holds, put where it belongs."""
        raw.kind, raw.measured = "diffraction", Stored(measured.data, self.measured_axes)
        raw.beside[MASKS] = Stored(masks.data, self.mask_axes)
        if alpha is not None:
            raw.beside[ALPHA] = alpha
        if self.quantity is not None:
            raw.beside[self.quantity] = raw.measured
        return raw


def diffraction(
    shapes: Mapping[str, tuple[int, ...]], dtype: Callable[[str], np.dtype], key: str | None = None
) -> Found | None:
    """The arrays of coded diffraction among those of a file, or None; `key` names the measured one.

    What is complex is k-space, and masks of whole numbers are those of something else.
    """
    lower = {name.lower(): name for name in shapes}

    def named(wanted: tuple[str, ...]) -> str | None:
        return next((lower[name] for name in wanted if name in lower), None)

    masks, alpha = named(NAMES[MASKS]), named(NAMES[ALPHA])
    measured = key if key in shapes else named((*NAMES[AMPLITUDES], *NAMES[INTENSITIES], *EITHER))
    if masks is None or measured is None or masks == measured:
        return None
    axes = mask_axes(shapes[masks])
    whole = axes and measured_axes(shapes[measured], shapes[masks], axes)
    if not axes or not whole or dtype(measured).kind not in "fiu" or dtype(masks).kind not in "cf":
        return None
    quantity = next((kind for kind in (AMPLITUDES, INTENSITIES) if measured.lower() in NAMES[kind]), None)
    return Found(measured, masks, alpha, quantity, whole, axes)


def mask_axes(shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """Masks are (mask, y, x), or (y, x, mask) as MATLAB's users have it: there are fewer masks than pixels a side."""
    if len(shape) != 3:
        return None
    return LAST if shape[2] < shape[0] else FIRST


def measured_axes(shape: tuple[int, ...], masks: tuple[int, ...], axes: tuple[str, ...]) -> tuple[str, ...] | None:
    """Those of the masks, and perhaps one of slices on the same side; None if the lengths do not agree."""
    if shape == masks:
        return axes
    if len(shape) != 4:
        return None
    if axes == LAST:
        return (*axes, SLICE) if shape[:3] == masks else None
    return (SLICE, *axes) if shape[1:] == masks else None
