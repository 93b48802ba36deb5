"""An image that is ready for the model, and batches of such."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from deepinv.physics import GaussianNoise, NoiseModel, Physics, ZeroNoise
from torch import Tensor


class Prepared(ABC):
    """One image, ready for the model."""

    number: int
    y: Tensor
    """Its data, without the axis of the batch."""
    said: dict[str, tuple[bool, str]]
    """What was done on the way, or left out, and why: a sentence for each step."""
    calibration: str = ""
    """What the operator was estimated from, where it was."""

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Images of one kind can be in one batch."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to reconstruct from: all data are zero."""
        return not bool(self.y.any())

    @property
    def kept(self) -> float | None:
        """The share of a full measurement that there is, where that means something."""
        return None

    @staticmethod
    @abstractmethod
    def batch(images: Sequence[Any]) -> tuple[Tensor, Physics]:
        """Data and physics of images of one kind."""

    @abstractmethod
    def finished(self, image: Tensor) -> np.ndarray:
        """(H, W), or (3, H, W) in colour, of a reconstructed image in the layout of the physics (C, H, W)."""

    @abstractmethod
    def nothing(self) -> np.ndarray:
        """The same where nothing was measured."""


def gaussian(levels: Sequence[float | None]) -> NoiseModel:
    """Noise of these levels, one for each image; a noise model that declares nothing where none is known."""
    known = [level for level in levels if level is not None]
    return GaussianNoise(torch.tensor(known)) if len(known) == len(levels) else ZeroNoise()


def batch(images: Sequence[Prepared]) -> tuple[Tensor, Physics]:
    """Data and physics of images of one kind."""
    return images[0].batch(images)
