"""A slice of Cartesian k-space that is ready for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from deepinv.physics import MRI, MultiCoilMRI, Physics
from torch import Tensor

from ...physics import Sense
from ..prepared import Prepared, gaussian


@dataclass(frozen=True)
class Slice(Prepared):
    """One slice of Cartesian k-space."""

    number: int
    y: Tensor = field(repr=False)
    """Centred k-space (coils, H, W)."""
    mask: Tensor = field(repr=False)
    maps: Tensor | None = field(default=None, repr=False)
    """Coil maps (sets, coils, H, W); None: a single coil that sees everything."""
    held: float = 0.0
    turn: Tensor | None = field(default=None, repr=False)
    """The phase (sets, H, W) that was put into the maps, and belongs to the image."""
    calibration: str = ""
    """What the maps are from."""
    sigma: float | None = None
    """The noise level of each part of k-space, where a noise scan told it."""
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)

    @property
    def kept(self) -> float:
        """The share of k-space that was measured."""
        return float((self.mask != 0).float().mean())

    @property
    def kind(self) -> tuple[Any, ...]:
        """Sizes, and what the physics has to have."""
        sense = self.maps is not None and (len(self.maps) > 1 or self.held > 0)
        return tuple(self.y.shape), None if self.maps is None else len(self.maps), self.sigma is None, sense

    @staticmethod
    def batch(images: Sequence[Slice]) -> tuple[Tensor, Physics]:
        """MRI with one coil or several, and with what those of deepinv have no room for."""
        y = torch.stack([image.y for image in images])
        mask = torch.stack([image.mask for image in images])[:, None]
        size = (2, *mask.shape[-2:])
        noise = gaussian([image.sigma for image in images])
        if images[0].maps is None:
            return y, MRI(mask=mask, img_size=size, noise_model=noise)
        maps = torch.stack([image.maps for image in images if image.maps is not None])
        if images[0].kind[-1]:
            return y, Sense(mask, maps, torch.tensor([image.held for image in images]), noise_model=noise)
        return y, MultiCoilMRI(mask=mask, coil_maps=maps[:, 0], img_size=size, noise_model=noise)

    def finished(self, image: Tensor) -> np.ndarray:
        """One image from those behind each set of maps: the strength of all, and the phase of the first."""
        sets = torch.complex(*image.chunk(2, 0))
        if self.turn is not None:
            sets = sets * self.turn
        if len(sets) == 1:
            return sets[0].numpy()
        strength = sets.abs().square().sum(0).sqrt()
        return (strength * torch.sgn(sets.sum(0))).numpy()

    def nothing(self) -> np.ndarray:
        """Zeros."""
        return np.zeros(tuple(self.y.shape[-2:]), np.complex64)
