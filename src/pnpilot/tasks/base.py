"""What a task is: an operator for a setting, simulated data, and the Problem its physics becomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from deepinv.physics import LinearPhysics, Physics
from torch import Tensor

from ..errors import BadInput, Incompatible, UnknownName
from ..problem import Hints, Problem
from ..registry import Registry
from ._linear import LinearProblem

OPERATORS = 2**60
"""Seeds from here on are those of operators drawn apart from the noise: none is a seed of noise as well."""


@dataclass(frozen=True)
class Setting:
    """One condition of a task, with the label it has in tables."""

    label: str
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


class Task(ABC):
    """Base of all tasks. Images are (B, 1, H, W) in [0, 1]; `settings` become benchmark rows."""

    name: str
    settings: Sequence[Setting]
    datasets: Sequence[str] = ("set12",)
    """The test sets of its benchmark."""
    start: str = "start"
    """What tables call the image that solvers start from."""

    def named(self, label: str) -> Setting:
        """The setting of that label: one of the benchmark's, or another where a task knows how to read it."""
        known = {setting.label: setting for setting in self.settings}
        if label not in known:
            raise UnknownName(f"unknown setting {label!r}; known: {', '.join(map(repr, known))}")
        return known[label]

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Random settings to train on, one per image; the default serves operators that do not differ between them."""
        chosen = int(torch.randint(len(self.settings), (), generator=generator))
        return [self.settings[chosen]] * count

    @abstractmethod
    def physics(self, setting: Setting, height: int, width: int, generator: torch.Generator) -> Physics:
        """The deepinv physics for images of that size, with its noise model drawing from the generator."""

    def merge(self, physics: Sequence[Physics]) -> Physics:
        """One physics for a batch. The default serves operators that do not differ between images."""
        return physics[0]

    def select(self, physics: Physics, index: Tensor) -> Physics:  # noqa: ARG002
        """The physics of the images at these positions; the default serves operators that are the same for all."""
        return physics

    def embed(self, image: Tensor) -> Tensor:
        """The image in the layout of the physics."""
        return image

    def simulate(
        self, image: Tensor, setting: Setting | Sequence[Setting], seed: int = 0, draw: int | None = None
    ) -> tuple[Tensor, Physics]:
        """Data for a batch; what is drawn for an image depends on the seed and its place in the batch alone.

        With a `draw`, that decides what the operator draws, such as random masks, and the seed the noise alone. Images
        may have a setting each, as far as `merge` can join their operators.
        """
        if image.ndim != 4 or image.shape[1] != 1:
            raise BadInput(f"images must be (batch, 1, height, width), got shape {tuple(image.shape)}")
        settings = [setting] * len(image) if isinstance(setting, Setting) else setting
        data, operators = [], []
        for index, (one, own) in enumerate(zip(image.cpu().split(1), settings, strict=True)):
            for_noise = 100_003 * seed + index
            for_operator = for_noise if draw is None else OPERATORS + 100_003 * draw + index
            generator = torch.Generator().manual_seed(for_operator)
            physics = self.physics(own, image.shape[-2], image.shape[-1], generator)
            if draw is not None:
                generator.manual_seed(for_noise)
            data.append(physics(self.embed(one)))
            operators.append(physics)
        return torch.cat(data).to(image.device), self.merge(operators).to(image.device)

    def accepts(self, physics: Physics) -> bool:  # noqa: ARG002
        """Whether this task has a Problem of its own for such a physics."""
        return False

    def problem(self, y: Tensor, physics: Physics, hints: Hints) -> Problem:
        """The Problem for data of a physics it accepts."""
        raise NotImplementedError


TASKS: Registry[Task] = Registry("task", __package__)


def build_task(name: str) -> Task:
    """The task of that name."""
    return TASKS[name]()


def open_problem(y: Tensor, physics: Physics, hints: Hints | None = None) -> Problem:
    """The door: data and a deepinv physics become a Problem."""
    hints = hints or Hints()
    for task in map(build_task, TASKS):
        if task.accepts(physics):
            problem = task.problem(y, physics, hints)
            break
    else:
        problem = _linear(y, physics, hints)
    problem.know_noise()
    return problem


def simulated(
    task: Task, image: Tensor, setting: Setting | Sequence[Setting], seed: int = 0, *, peak: float | None = 1.0
) -> Problem:
    """The Problem of data simulated from real images in [0, 1]."""
    y, physics = task.simulate(image, setting, seed)
    return open_problem(y, physics, Hints(peak=peak, real=True))


def _linear(y: Tensor, physics: Physics, hints: Hints) -> Problem:
    if isinstance(physics, LinearPhysics):
        return LinearProblem.of(y, physics, hints)
    raise Incompatible(
        f"no way to reconstruct from a {type(physics).__name__}: any deepinv LinearPhysics is accepted, "
        f"and the physics of the tasks {', '.join(TASKS)}"
    )
