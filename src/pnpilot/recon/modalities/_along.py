"""An image measured along a trajectory, ready for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from deepinv.physics import GaussianNoise, Physics, ZeroNoise
from torch import Tensor

from ...physics import NonCartesian
from ..prepared import Prepared


@dataclass(frozen=True)
class Along(Prepared):
    """Samples of one image at any places in k-space."""

    number: int
    y: Tensor = field(repr=False)
    """(coils, samples)."""
    trajectory: Tensor = field(repr=False)
    """(samples, 2)."""
    weights: Tensor = field(repr=False)
    """(samples,)."""
    maps: Tensor = field(repr=False)
    """(coils, H, W)."""
    kept: float | None = None
    calibration: str = ""
    sigma: float | None = None
    """The noise level of each part of the samples, where a noise scan told it."""
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether no sample differs from zero."""
        return not bool(self.y.any())

    @property
    def kind(self) -> tuple[Any, ...]:
        """Sizes, and whether the noise is known."""
        return tuple(self.y.shape), tuple(self.maps.shape), self.sigma is None

    @staticmethod
    def batch(images: Sequence[Along]) -> tuple[Tensor, Physics]:
        """Each with a trajectory and weights of its own."""
        y, trajectory, weights, maps = (
            torch.stack([getattr(image, name) for image in images]) for name in ("y", "trajectory", "weights", "maps")
        )
        levels = torch.tensor([image.sigma or 0.0 for image in images])
        noise = ZeroNoise() if images[0].sigma is None else GaussianNoise(levels)  # the first declares nothing
        return y, NonCartesian(trajectory[:, None], maps, weights[:, None, None], noise_model=noise)

    def finished(self, image: Tensor) -> np.ndarray:
        """Complex."""
        return torch.complex(image[0], image[1]).numpy()

    def nothing(self) -> np.ndarray:
        """Zeros."""
        return np.zeros(tuple(self.maps.shape[1:]), np.complex64)
