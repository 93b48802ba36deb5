"""A slice of a tomogram that is ready for the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from deepinv.physics import Physics
from torch import Tensor

from ...physics import ParallelBeam
from ..prepared import Prepared, gaussian
from ..rays import Rays


@dataclass(frozen=True)
class Sinogram(Prepared):
    """The line integrals of one slice."""

    number: int
    rays: Rays = field(repr=False)
    angles: np.ndarray = field(repr=False)
    """In degrees."""
    centre: float
    size: int
    """Rows and columns of the image."""
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)

    @property
    def y(self) -> Tensor:  # type: ignore[override]
        """Weighted line integrals (1, angles, detector pixels)."""
        return torch.from_numpy(self.weights * self.rays.integrals).float()[None]

    @property
    def empty(self) -> bool:
        """Whether all rays are lost, or met nothing."""
        return bool(self.rays.lost.all()) or not bool(self.rays.integrals.any())

    @property
    def kept(self) -> float:
        """The share of the angles that would leave nothing open: π/2 for every pixel across."""
        return min(1.0, len(self.angles) / (math.pi / 2 * self.rays.integrals.shape[1]))

    @property
    def kind(self) -> tuple[Any, ...]:
        """Sizes, and whether the noise level is known; a file has one set of angles."""
        return self.rays.integrals.shape, self.rays.known

    @property
    def level(self) -> float:
        """The noise level of the rays that weights bring all others to."""
        return float(np.sqrt(np.median(self.rays.variance[~self.rays.lost])))

    @property
    def weights(self) -> np.ndarray:
        """One over the noise level of every ray, in units of that level."""
        return np.where(self.rays.lost, 0, self.level / np.sqrt(self.rays.variance)).astype(np.float32)

    @staticmethod
    def batch(images: Sequence[Sinogram]) -> tuple[Tensor, Physics]:
        """Line integrals with weights that make their noise white, and parallel rays."""
        first = images[0]
        weights = torch.from_numpy(np.stack([image.weights for image in images]))[:, None]
        noise = gaussian([image.level if image.rays.known else None for image in images])
        angles = torch.from_numpy(np.array(first.angles, np.float64))
        y = torch.stack([image.y for image in images])
        return y, ParallelBeam(angles, y.shape[-1], first.size, first.centre, weights, noise_model=noise)

    def finished(self, image: Tensor) -> np.ndarray:
        """Attenuation per pixel; what no ray met is zero."""
        return np.where(self._met(), image[0].numpy(), np.float32(0))

    def _met(self) -> np.ndarray:
        """The disk (size, size) of pixels that some angle sees."""
        reach = max(self.centre, self.rays.integrals.shape[1] - 1 - self.centre) + 0.5
        along = np.arange(self.size) - (self.size - 1) / 2
        return np.hypot(along, along[:, None]) <= reach

    def nothing(self) -> np.ndarray:
        """Zeros."""
        return np.zeros((self.size, self.size), np.float32)
