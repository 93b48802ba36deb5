"""The mask of each image: as it was given, or read from the zeros of its data."""

from __future__ import annotations

import numpy as np

from ..errors import require
from ..io.raw import SPACE, Stored
from .axes import nameless
from .kspace import Kspace
from .sampling import sampled


class Masks:
    """Which samples of an image were measured."""

    def __init__(self, given: Stored | None, kspace: Kspace) -> None:
        self.kspace = kspace
        self.plane = tuple(kspace.lengths[name] for name in kspace.plane)
        self.given: np.ndarray | None = None
        self.named: Kspace | None = None
        if given is None:
            return
        if given.axes is not None and set(kspace.plane) <= set(given.axes):
            self.named = self._by_names(given, given.axes)
            return
        shape = given.data.shape
        self._fits(bool(np.prod(shape) <= len(kspace) * np.prod(self.plane)), shape)
        self.given = self._laid_out(np.squeeze(np.asarray(given.data[tuple(slice(None) for _ in shape)]) != 0))

    def __call__(self, number: int, kspace: np.ndarray) -> np.ndarray:
        """Flags (H, W) for an image with k-space (coils, H, W)."""
        if self.named is not None:
            own = self.named[self.named.beside(self.kspace, number) if len(self.named) > 1 else 0]
            return np.asarray((own != 0).any((0, 1)))
        if self.given is None:
            return sampled(kspace)
        return self.given[number] if self.given.ndim == 3 else self.given

    @property
    def known(self) -> bool:
        """Whether they were given."""
        return self.given is not None or self.named is not None

    def _by_names(self, given: Stored, axes: tuple[str, ...]) -> Kspace:
        """A mask whose axes are known: those of the image, and perhaps some that count images."""
        shape = given.data.shape
        axes = tuple(
            name if shape[at] > 1 or name in self.kspace.plane else nameless(at) for at, name in enumerate(axes)
        )
        self._fits(sum(name in SPACE for name in axes) == 2, shape)
        mask = Kspace(given.data, axes, self.kspace.plane)
        lengths = tuple(mask.lengths[name] for name in mask.plane)
        self._fits(lengths == self.plane and (len(mask) == 1 or mask.goes_with(self.kspace)), shape)
        return mask

    def _fits(self, condition: bool, shape: tuple[int, ...]) -> None:
        height, width = self.plane
        require(condition, f"a mask of {shape} does not fit {len(self.kspace)} images of {height}×{width} samples")

    def _laid_out(self, mask: np.ndarray) -> np.ndarray:
        height, width = self.plane
        if mask.ndim == 1 and mask.shape in ((width,), (height,)):
            # Lines along the last axis, as in fastMRI, unless only the other one fits.
            line = mask[None] if len(mask) == width else mask[:, None]
            return np.broadcast_to(line, self.plane)
        if mask.shape in (self.plane, (len(self.kspace), *self.plane)):
            return mask
        self._fits(mask.shape == (width, height), mask.shape)
        return mask.T
