"""What a task is: settings, the operator for a setting, and data simulated with it. Nothing about reconstruction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import BadInput, UnknownName, require
from ..physics import joined
from ..registry import Registry

OPERATOR_SEEDS = 2**60
"""Seeds from here on are for operators drawn apart from the noise, so that the two never share a seed."""


@dataclass(frozen=True)
class Setting:
    """One condition of a task, with the label it has in tables."""

    label: str
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


class Task(ABC):
    """Base of all tasks. Images are (B, C, H, W) in [0, 1]; `settings` are the conditions of its benchmark."""

    name: str
    settings: Sequence[Setting]
    channels: tuple[int, ...] = (1, 3)
    """How many channels its images may have: grey and colour, unless it says otherwise."""
    start: str = "start"
    """What tables call the image that solvers start from."""

    def named(self, label: str) -> Setting:
        """The setting with that label: one of the benchmark's, or another that the task can parse."""
        known = {setting.label: setting for setting in self.settings}
        if label not in known:
            raise UnknownName(f"unknown setting {label!r}; known: {', '.join(map(repr, known))}")
        return known[label]

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Random settings to train on, one per image; by default the same one for all images of a batch."""
        chosen = int(torch.randint(len(self.settings), (), generator=generator))
        return [self.settings[chosen]] * count

    @abstractmethod
    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Physics:
        """The deepinv physics for one image (C, H, W), with its noise model drawing from the generator."""

    def embed(self, image: Tensor) -> Tensor:
        """A plain image in the layout of the physics."""
        return image

    def extract(self, image: Tensor) -> Tensor:
        """The plain image in the layout of the physics: the inverse of `embed`."""
        return image

    def simulate(
        self, image: Tensor, setting: Setting | Sequence[Setting], seed: int = 0, draw: int | None = None
    ) -> tuple[Tensor, Physics]:
        """Data for a batch; what is drawn for an image depends only on the seed and its place in the batch.

        If `draw` is given, it decides what the operator draws, such as random masks, and the seed only the noise. Each
        image may have its own setting, if the operators can be joined into one; otherwise they are refused.
        """
        if image.ndim != 4 or image.shape[1] not in self.channels:
            wanted = " or ".join(map(str, self.channels))
            raise BadInput(f"images must be (batch, {wanted}, height, width), got shape {tuple(image.shape)}")
        settings = [setting] * len(image) if isinstance(setting, Setting) else setting
        require(
            len(settings) == len(image) > 0, f"{len(settings)} settings for {len(image)} images: give one, or one each"
        )
        embedded = self.embed(image.cpu())
        data, clean, operators = [], [], []
        for index, (one, own) in enumerate(zip(embedded.split(1), settings, strict=True)):
            for_noise = 100_003 * seed + index
            for_operator = for_noise if draw is None else OPERATOR_SEEDS + 100_003 * draw + index
            generator = torch.Generator().manual_seed(for_operator)
            physics = self.physics(own, (image.shape[1], image.shape[2], image.shape[3]), generator)
            if draw is not None:
                generator.manual_seed(for_noise)
            clean.append(physics.A(one))
            data.append(physics.sensor(physics.noise(clean[-1])))
            operators.append(physics)
        physics = joined(operators, embedded, clean)
        return torch.cat(data).to(image.device), physics.to(image.device)


TASKS: Registry[Task] = Registry("task", __package__)


def build_task(name: str) -> Task:
    """The task of that name."""
    return TASKS[name]()
