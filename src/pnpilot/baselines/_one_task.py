"""What the methods for a single task share. They reconstruct real images in [0, 1]."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar, cast

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import Incompatible
from ..problems import Hints, Problem, open_problem
from ..tasks import Task
from .base import Baseline

P = TypeVar("P", bound=Problem)


class OneTask(Baseline, Generic[P]):
    """A method for the problems of one task, with real images in [0, 1]."""

    bounded = True
    task: ClassVar[type[Task]]
    problem: ClassVar[type[Problem]]
    """The kind of problem it solves."""
    physics_name: ClassVar[str]
    """The physics it takes, as error messages call it."""

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct. If the layout has an imaginary channel, it is zero."""
        problem = self.open(y, physics)
        return problem.export(self.reconstruct(problem).clamp(0, 1))

    def open(self, y: Tensor, physics: Physics) -> P:
        """The problem behind the data, after checking both."""
        if not self.problem.accepts(physics):
            raise Incompatible(f"{self.name} needs {self.physics_name}, got a {type(physics).__name__}")
        return cast(P, open_problem(y, physics, Hints(peak=1.0, real=True)))

    @abstractmethod
    def reconstruct(self, problem: P) -> Tensor:
        """Real images (B, 1, H, W)."""

    @staticmethod
    @abstractmethod
    def conditions(problem: P) -> list[dict[str, float]]:
        """For each image, the numbers that tell the settings of the task apart, named as in `Setting`."""


def noise_level(problem: Problem) -> Tensor:
    """Noise level of the data (B,), known or estimated."""
    level = problem.units.sigma_n
    assert level is not None
    return level


def image_by_image(problem: P, solve: Callable[[P], Tensor]) -> Tensor:
    """Solve image after image, for methods that cannot take a batch."""
    places = torch.arange(len(problem), device=problem.y.device).split(1)
    return torch.cat([solve(cast(P, problem.select(place))) for place in places])
