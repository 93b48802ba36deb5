"""What the methods for one task share: data of real images in [0, 1], and nothing else, go in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar, cast

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import Incompatible
from ..problem import Hints, Problem
from ..tasks import Task, open_problem
from .base import Baseline

P = TypeVar("P", bound=Problem)


class OneTask(Baseline, Generic[P]):
    """A method for the problems of one task, with real images in [0, 1]."""

    task: ClassVar[type[Task]]
    physics_name: ClassVar[str]
    """What it takes, for those who bring something else."""

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct; in layouts with an imaginary part, that is zero."""
        problem = self.open(y, physics)
        return problem.export(self.reconstruct(problem).clamp(0, 1))

    def open(self, y: Tensor, physics: Physics) -> P:
        """The problem, or what is wrong with it."""
        if not self.task().accepts(physics):
            raise Incompatible(f"{self.name} needs {self.physics_name}, got a {type(physics).__name__}")
        return cast(P, open_problem(y, physics, Hints(peak=1.0, real=True)))

    @abstractmethod
    def reconstruct(self, problem: P) -> Tensor:
        """Real images (B, 1, H, W)."""

    @staticmethod
    @abstractmethod
    def conditions(problem: P) -> list[dict[str, float]]:
        """What the settings of the task differ in, image by image, by the names that settings use."""


def noise_level(problem: Problem) -> Tensor:
    """Of the data (B,), which these tasks know or estimate."""
    level = problem.units.sigma_n
    assert level is not None
    return level


def image_by_image(problem: P, solve: Callable[[P], Tensor]) -> Tensor:
    """Images one after the other, for methods that cannot take a batch."""
    places = torch.arange(len(problem), device=problem.y.device).split(1)
    return torch.cat([solve(cast(P, problem.select(place))) for place in places])
