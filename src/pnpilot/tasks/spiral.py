"""Non-Cartesian MRI: spirals and spokes behind simulated coils."""

from __future__ import annotations

import math

import torch
from deepinv.physics import GaussianNoise
from torch import Tensor

from ..errors import require
from ..physics import NonCartesian
from ..types import to_two_channels
from .base import TASKS, Setting, Task
from .multi_coil import simulated_maps


@TASKS.register("spiral")
class Spiral(Task):
    """Non-Cartesian MRI: spirals or spokes through k-space, behind simulated coils."""

    channels = (1,)

    def __init__(self) -> None:
        self.settings = [self.setting("spiral", 3, 5), self.setting("radial", 3, 5)]

    @staticmethod
    def setting(way: str = "spiral", acceleration: float = 3, sigma: float = 5, coils: int = 8) -> Setting:
        """`acceleration` is how many times fewer samples there are than pixels; sigma as for Cartesian coils."""
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        require(coils >= 1, f"at least one coil is needed, got {coils}")
        require(way in WAYS, f"the trajectory is one of {', '.join(WAYS)}, not {way!r}")
        values = {"way": way, "acceleration": acceleration, "sigma": sigma, "coils": coils}
        return Setting(f"{coils} coils {way} x{acceleration:g} sigma={sigma:g}", values)

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> NonCartesian:
        """As many arms as make that acceleration, turned by an angle of chance."""
        _, height, width = shape
        side = max(height, width)
        trajectory = WAYS[setting["way"]](side, setting["acceleration"], float(torch.rand((), generator=generator)))
        maps = simulated_maps(setting["coils"], height, width, generator)
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return NonCartesian(trajectory[None, None], maps[None], noise_model=noise)

    def embed(self, image: Tensor) -> Tensor:
        """A zero imaginary part."""
        return to_two_channels(image)

    def extract(self, image: Tensor) -> Tensor:
        """The magnitude."""
        return image.square().sum(1, keepdim=True).sqrt()


TURNS = 4
"""Of each arm of a spiral."""


def spiral(side: int, acceleration: float, turn: float) -> Tensor:
    """Arms that fill a disc evenly as they wind outwards (samples, 2)."""
    arms = max(2, round(side / (2 * TURNS * acceleration)))
    # An arm is about π/2 · TURNS · side cells long; two samples to each.
    along = torch.linspace(0, 1, round(math.pi * TURNS * side))
    return _arms(0.5 * along.sqrt(), 2 * math.pi * TURNS * along.sqrt(), arms, turn, 2 * math.pi)


def radial(side: int, acceleration: float, turn: float) -> Tensor:
    """Spokes through the centre, with two samples to a cell (samples, 2)."""
    spokes = max(2, round(side / acceleration))
    along = torch.linspace(-0.5, 0.5, 2 * side + 1)[:-1]
    return _arms(along, torch.zeros_like(along), spokes, turn, math.pi)


def _arms(radius: Tensor, angle: Tensor, arms: int, turn: float, range_: float) -> Tensor:
    turned = angle + range_ * (torch.arange(arms)[:, None] + turn) / arms
    return torch.stack([radius * turned.sin(), radius * turned.cos()], -1).reshape(-1, 2)


WAYS = {"spiral": spiral, "radial": radial}
"""How trajectories run, by the word in settings."""
