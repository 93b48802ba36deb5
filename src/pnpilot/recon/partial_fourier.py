"""Partial Fourier: k-space that was measured on one side, and images held to the phase that its middle shows."""

from __future__ import annotations

import numpy as np

from .fourier import to_image
from .options import Options
from .sampling import Lopsided, calibration_block, lopsided

HELD = 0.003
"""λ of the constraint, in units of the data term (`docs/reconstruct/partial-fourier.md` has others)."""
FEWEST = 4
"""At least so many samples on either side of the zero frequency show the phase."""
Said = tuple[bool, str]
"""Whether a step was done, and a sentence on it."""


def held_phase(
    k: np.ndarray, mask: np.ndarray, maps: np.ndarray | None, plane: tuple[str, str], options: Options
) -> tuple[np.ndarray | None, Said | None]:
    """The phase (sets, 1, H, W) that an image is held to, where k-space (coils, H, W) was measured on one side."""
    side = lopsided(mask)
    if side is None:
        return None, None
    words = f"partial Fourier along {plane[side.axis]}: {100 * side.share:.0f} % of the range was measured"
    if options.skips("phase"):
        return None, (False, f"{words}; the phase constraint is switched off")
    block = calibration_block(mask)
    reach = min(side.symmetric, block[side.axis] // 2)
    if reach < FEWEST:
        return None, (False, f"{words}; too little is measured whole around the middle to know the phase from")
    behind = np.ones((1, *k.shape), np.complex64) if maps is None else maps
    told = f"{words}; images are held to the phase of {2 * reach} symmetric samples"
    return low_phase(k, behind, side, reach, block), (True, told)


def low_phase(kspace: np.ndarray, maps: np.ndarray, side: Lopsided, reach: int, block: tuple[int, int]) -> np.ndarray:
    """The phase factors (sets, 1, H, W) of the image behind the middle of k-space, which was measured whole."""
    windows = []
    for axis, length in enumerate(kspace.shape[1:]):
        own = reach if axis == side.axis else min(2 * reach, block[axis] // 2)
        away = np.abs(np.arange(length) - length // 2) / (own + 1)
        windows.append(np.cos(np.pi / 2 * away.clip(0, 1)) ** 2)
    images = to_image(kspace * np.outer(*windows))
    together = (maps.conj() * images).sum(1, keepdims=True)
    return np.exp(1j * np.angle(together)).astype(np.complex64)
