"""The mask of each image: as it was given, or read from the zeros of its data."""

from __future__ import annotations

import numpy as np

from ..errors import require
from ..io.raw import Stored
from .kspace import Kspace
from .sampling import sampled


class Masks:
    """Which samples of an image were measured."""

    def __init__(self, given: Stored | None, kspace: Kspace) -> None:
        self.plane = tuple(kspace.lengths[name] for name in kspace.plane)
        self.count = len(kspace)
        self.given: np.ndarray | None = None
        if given is not None:
            shape = given.data.shape
            fits = np.prod(shape) <= max(self.count, 1) * np.prod(self.plane)
            require(bool(fits), f"a mask of {shape} does not fit {self.count} images of {self.plane} samples")
            mask = np.asarray(given.data[tuple(slice(None) for _ in shape)])
            self.given = self._laid_out(np.squeeze(mask != 0))

    def __call__(self, number: int, kspace: np.ndarray) -> np.ndarray:
        """Flags (H, W) for an image with k-space (coils, H, W)."""
        if self.given is None:
            return sampled(kspace)
        return self.given[number] if self.given.ndim == 3 else self.given

    def _laid_out(self, mask: np.ndarray) -> np.ndarray:
        height, width = self.plane
        if mask.ndim == 1 and mask.shape in ((width,), (height,)):
            # Lines along the last axis, as in fastMRI, unless only the other one fits.
            line = mask[None] if len(mask) == width else mask[:, None]
            return np.broadcast_to(line, self.plane)
        if mask.shape in (self.plane, (self.count, *self.plane)):
            return mask
        require(
            mask.shape == (width, height),
            f"a mask of {mask.shape} does not fit {self.count} images of {height}×{width} samples",
        )
        return mask.T
