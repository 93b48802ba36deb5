"""Finished images measured anew: their k-space, undersampled and noisy. What comes of it says nothing of a scanner."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch

from ..errors import BadInput, require
from ..io.raw import NOT_IMAGES, SLICE, SPACE, Lazy, Raw, Stored
from ..tasks._masks import MASKS, build_mask
from .axes import named
from .fourier import to_kspace
from .grey import TOLD, grey

FORM = r"(\w+)\s+x(\d+\.?\d*)(?:\s+sigma=(\d+\.?\d*))?"
GIVEN = "for example 'radial x4' or 'cartesian x4 sigma=5'"


def simulated(raw: Raw, order: str, seed: int, axes: tuple[str, ...] | None = None) -> tuple[Raw, str]:
    """The same file as if it held k-space, and a sentence that says so. `axes` are what a user calls those it has."""
    assert raw.measured is not None
    require(raw.pictures, "--simulate is for finished images; this file holds a measurement")
    found = re.fullmatch(FORM, order.strip())
    if found is None or found[1] not in MASKS:
        raise BadInput(
            f"--simulate takes one of {', '.join(sorted(MASKS))} with an acceleration, {GIVEN}; got {order!r}"
        )
    factor, sigma = float(found[2]), float(found[3] or 0)
    require(1 <= factor <= 100, f"an acceleration is from 1 to 100, got {factor:g}")
    require(0 <= sigma <= 255, f"sigma is from 0 to 255, got {sigma:g}")
    whole = with_plane(raw.measured, axes)
    pictures = grey(whole)
    raw.notes += [TOLD] if pictures is not whole else []
    raw.measured = Stored(
        Measured(pictures.data, pictures.axes or (), found[1], factor, sigma / 255, seed), pictures.axes
    )
    noise = f", with noise of {sigma:g}/255 of its largest value" if sigma else ", without noise"
    return raw, (
        f"SIMULATED: the file holds finished images; each was measured anew by its k-space, {found[1]} ×{factor:g}"
        f"{noise}. This is no reconstruction of what a scanner measured"
    )


def with_plane(stored: Stored, given: tuple[str, ...] | None = None) -> Stored:
    """Pictures with names for their axes: rows and columns last, as most programs have them."""
    if given is not None:
        return named(stored, given, "the file")[0]
    if stored.axes is not None:
        return stored
    count = len(stored.data.shape)
    require(count in (2, 3), f"pictures of shape {stored.data.shape}: name the axes, as in --axes slice,y,x")
    return Stored(stored.data, (SLICE, "y", "x")[3 - count :])


class Measured:
    """The k-space of pictures in a file, made when it is asked for; whole images alone can be."""

    dtype = np.dtype(np.complex64)

    def __init__(
        self, pictures: Lazy, axes: tuple[str, ...], kind: str, factor: float, sigma: float, seed: int
    ) -> None:
        wrong = [name for name in axes if name in NOT_IMAGES - {"y", "x"}]
        require(not wrong, f"finished images have rows and columns, y and x, and no axis {', '.join(wrong)}")
        self.pictures, self.axes = pictures, axes
        self.sigma, self.seed = sigma, seed
        self.shape = tuple(map(int, pictures.shape))
        height, width = (length for name, length in zip(axes, self.shape, strict=True) if name in SPACE)
        self.mask = build_mask(kind, height, width, factor, torch.Generator().manual_seed(seed)).numpy()

    def __getitem__(self, index: Any) -> np.ndarray:
        """K-space of one image."""
        image = np.asarray(self.pictures[index], np.float32)
        require(bool(np.isfinite(image).all()), "a picture holds NaN or infinite values")
        rng = np.random.default_rng([self.seed, *(part for part in index if isinstance(part, int))])
        noise = rng.standard_normal((2, *self.mask.shape)) * self.sigma * float(np.abs(image).max())
        kspace = to_kspace(image.reshape(self.mask.shape)) + noise[0] + 1j * noise[1]
        return (self.mask * kspace).astype(np.complex64).reshape(image.shape)

    def truth(self, where: dict[str, int]) -> np.ndarray:
        """The picture behind the image at this place along the axes that count images."""
        part = self.pictures[tuple(where.get(name, slice(None)) for name in self.axes)]
        return np.asarray(part, np.float32).reshape(self.mask.shape)
