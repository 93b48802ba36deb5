"""Methods with constants: those that did best on other images, setting by setting, kept as data."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..errors import BadWeights
from ..tasks.csmri import MaskedFourier
from ._mri import MRIBaseline


def parameters_file(name: str) -> Path:
    """Where the constants of a method are kept."""
    return Path(__file__).parent / "parameters" / f"{name}.json"


class Searched(MRIBaseline):
    """A method whose constants `pnpilot train baseline NAME` searched for every setting of the benchmark.

    Other accelerations and noise levels get the constants of the nearest of these settings.
    """

    grid: ClassVar[Mapping[str, tuple[float, ...]]]
    """Constants, and the values that the search begins with."""

    def __init__(self, constants: Mapping[str, float] | None = None) -> None:
        self.constants = constants
        """The same for all data, or None for those that were searched."""

    @abstractmethod
    def solve(self, problem: MaskedFourier, *_: Any, **constants: Any) -> Tensor:
        """Real images (B, 1, H, W); each constant of the grid arrives by name."""

    def reconstruct(self, problem: MaskedFourier) -> Tensor:
        """Each image with the constants of its setting."""
        if self.constants is not None:
            return self.solve(problem, **self.constants)
        settings = self.table()["settings"]
        nearest = _nearest(problem, settings)
        image = torch.zeros_like(problem.mask)
        for label in dict.fromkeys(nearest):
            index = torch.tensor([i for i, other in enumerate(nearest) if other == label], device=image.device)
            part = problem.select(index)
            assert isinstance(part, MaskedFourier)
            image[index] = self.solve(part, **settings[label]["constants"])
        return image

    def made_with(self) -> Any:
        """The constants."""
        return self.constants or {label: own["constants"] for label, own in self.table()["settings"].items()}

    @classmethod
    def obstacle(cls) -> str | None:
        """Nobody has searched its constants yet."""
        unsearched = f"has no constants yet: pnpilot train baseline {cls.name} --data DIR"
        return cls.uninstalled() or (None if parameters_file(cls.name).is_file() else unsearched)

    @classmethod
    def table(cls) -> dict[str, Any]:
        """What was searched, with the command that found it."""
        try:
            return json.loads(parameters_file(cls.name).read_text())
        except (OSError, ValueError) as error:
            raise BadWeights(
                f"{parameters_file(cls.name)} does not hold the constants of {cls.name!r}; search them with "
                f"`pnpilot train baseline {cls.name}`"
            ) from error


def _nearest(problem: MaskedFourier, settings: Mapping[str, Any]) -> list[str]:
    """The label of the nearest setting for each image, by ratios of acceleration and of noise."""
    pixels = problem.mask[0].numel()
    levels = problem.units.sigma_n
    assert levels is not None

    def distance(label: str, acceleration: float, sigma: float) -> float:
        own = settings[label]
        noise = (own["sigma"] + 1) / (sigma + 1)
        return abs(math.log(own["acceleration"] / acceleration)) + abs(math.log(noise))

    found = zip((pixels / problem.measurements).tolist(), (255 * levels).tolist(), strict=True)
    return [min(settings, key=lambda label: distance(label, *own)) for own in found]
