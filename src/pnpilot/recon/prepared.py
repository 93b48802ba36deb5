"""An image that is ready for the model, and batches of such."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from deepinv.physics import Physics
from torch import Tensor


class Prepared(ABC):
    """One image, ready for the model."""

    number: int
    said: dict[str, tuple[bool, str]]
    """What was done on the way, or left out, and why: a sentence for each step."""
    calibration: str = ""
    """What the operator was estimated from, where it was."""

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Images of one kind can be in one batch."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether there is nothing to reconstruct from."""

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


def batch(images: Sequence[Prepared]) -> tuple[Tensor, Physics]:
    """Data and physics of images of one kind."""
    return images[0].batch(images)
