"""An image measured along a trajectory, ready for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from deepinv.physics import Physics
from torch import Tensor

from ...physics import NonCartesian
from ..prepared import Prepared, gaussian


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
    def kind(self) -> tuple[Any, ...]:
        """Sizes, and whether the noise is known."""
        return tuple(self.y.shape), tuple(self.maps.shape), self.sigma is None

    @staticmethod
    def batch(images: Sequence[Along]) -> tuple[Tensor, Physics]:
        """Each with a trajectory and weights of its own."""
        y, trajectory, weights, maps = (
            torch.stack([getattr(image, name) for image in images]) for name in ("y", "trajectory", "weights", "maps")
        )
        noise = gaussian([image.sigma for image in images])
        return y, NonCartesian(trajectory[:, None], maps, weights[:, None, None], noise_model=noise)

    def finished(self, image: Tensor) -> np.ndarray:
        """Complex."""
        return torch.complex(image[0], image[1]).numpy()

    def nothing(self) -> np.ndarray:
        """Zeros."""
        return np.zeros(tuple(self.maps.shape[1:]), np.complex64)
