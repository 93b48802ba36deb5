"""What a baseline is: a function from data and physics to an image, in deepinv's layout."""

from __future__ import annotations

from abc import ABC, abstractmethod

from deepinv.physics import Physics
from torch import Tensor

from ..registry import Registry


class Baseline(ABC):
    """Base of all baselines."""

    name: str
    iterations: int = 0
    """How many iterations it takes, for tables."""

    @abstractmethod
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct."""


BASELINES: Registry[Baseline] = Registry("baseline", __package__)


def build_baseline(name: str) -> Baseline:
    """The baseline of that name."""
    return BASELINES[name]()
