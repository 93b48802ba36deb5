"""Methods with constants. For each setting, those that did best on other images are kept as data."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from ..errors import BadWeights
from ._one_task import OneTask, P
from .base import BASELINES


def parameters_file(name: str) -> Path:
    """Where the constants of a method are kept: in `parameters`, beside the file that defines it."""
    return BASELINES[name].home() / "parameters" / f"{name}.json"


class Searched(OneTask[P]):
    """A method whose constants `pnpilot train baseline NAME` searches for every setting of the benchmark.

    Data of other settings get the constants of the nearest setting.
    """

    grid: ClassVar[Mapping[str, tuple[float, ...]]]
    """The constants by name, with the values that the search begins with."""

    def __init__(self, constants: Mapping[str, float] | None = None) -> None:
        self.constants = constants
        """Constants for all data, or None for the searched ones."""

    @abstractmethod
    def solve(self, problem: P, *_: Any, **constants: Any) -> Tensor:
        """Real images (B, 1, H, W); each constant of the grid arrives by name."""

    def reconstruct(self, problem: P) -> Tensor:
        """Each image with the constants of its setting."""
        if self.constants is not None:
            return self.solve(problem, **self.constants)
        settings = self.table()["settings"]
        nearest = [_nearest(own, settings) for own in self.conditions(problem)]
        images = torch.zeros_like(problem.x0().real)
        for label in dict.fromkeys(nearest):
            index = torch.tensor([i for i, other in enumerate(nearest) if other == label], device=images.device)
            images[index] = self.solve(cast(P, problem.select(index)), **settings[label]["constants"])
        return images

    def made_with(self) -> Any:
        """The constants."""
        return self.constants or {label: own["constants"] for label, own in self.table()["settings"].items()}

    @classmethod
    def obstacle(cls) -> str | None:
        """Missing modules, or constants that have not been searched yet."""
        path = parameters_file(cls.name)
        unsearched = (
            f"has no constants yet: pnpilot train baseline {cls.name} --data DIR searches them; "
            f"then move {path.name} to {path.parent}"
        )
        return cls.uninstalled() or (None if path.is_file() else unsearched)

    @classmethod
    def table(cls) -> dict[str, Any]:
        """The searched constants by setting, with the command that found them."""
        try:
            return json.loads(parameters_file(cls.name).read_text())
        except (OSError, ValueError) as error:
            raise BadWeights(
                f"{parameters_file(cls.name)} does not hold the constants of {cls.name!r}; search them with "
                f"`pnpilot train baseline {cls.name}`"
            ) from error


def _nearest(conditions: Mapping[str, float], settings: Mapping[str, Any]) -> str:
    """The label of the setting with the nearest numbers, by ratio; one is added, as noise levels may be zero."""

    def distance(label: str) -> float:
        own = settings[label]
        return sum(abs(math.log((own[name] + 1) / (value + 1))) for name, value in conditions.items())

    return min(settings, key=distance)
