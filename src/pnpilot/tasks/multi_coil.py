"""Multi-coil MRI: Cartesian sampling behind simulated coils."""

from __future__ import annotations

import math

import torch
from deepinv.physics import GaussianNoise, MultiCoilMRI
from torch import Tensor

from ..errors import require
from ..types import to_two_channels
from ._masks import build_mask
from .base import TASKS, Setting, Task

REACH = 0.6
"""How far a coil sees, in units of the side."""


@TASKS.register("multi-coil")
class MultiCoilTask(Task):
    """Multi-coil MRI: y_c = M(F(S_c x) + noise), with coils around the image, each with a phase of its own."""

    channels = (1,)

    def __init__(self) -> None:
        self.settings = [self.setting(4, 5), self.setting(6, 5, "random")]

    @staticmethod
    def setting(acceleration: float = 4, sigma: float = 5, mask: str = "cartesian", coils: int = 8) -> Setting:
        """Noise level sigma of each coil on the 0-255 scale, per real and imaginary part."""
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        require(coils >= 1, f"at least one coil is needed, got {coils}")
        values = {"acceleration": acceleration, "sigma": sigma, "mask": mask, "coils": coils}
        return Setting(f"{coils} coils {mask} x{acceleration:g} sigma={sigma:g}", values)

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> MultiCoilMRI:
        """deepinv's MultiCoilMRI; the sum of the squared maps is one everywhere."""
        _, height, width = shape
        mask = build_mask(setting["mask"], height, width, setting["acceleration"], generator)
        maps = simulated_maps(setting["coils"], height, width, generator)
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return MultiCoilMRI(mask=mask, coil_maps=maps, noise_model=noise)

    def embed(self, image: Tensor) -> Tensor:
        """A zero imaginary part."""
        return to_two_channels(image)

    def extract(self, image: Tensor) -> Tensor:
        """The magnitude."""
        return image.square().sum(1, keepdim=True).sqrt()


def simulated_maps(coils: int, height: int, width: int, generator: torch.Generator) -> Tensor:
    """Smooth complex maps (coils, H, W) of coils on a circle around the image, with random linear phases."""
    rows = torch.linspace(-0.5, 0.5, height)[:, None]
    columns = torch.linspace(-0.5, 0.5, width)[None]
    turn, *ramp = torch.rand(3, coils, 1, 1, generator=generator) * 2 * math.pi
    place = 2 * math.pi * torch.arange(coils)[:, None, None] / coils
    distance = (rows - 0.7 * place.sin()).square() + (columns - 0.7 * place.cos()).square()
    phase = turn + (ramp[0] - math.pi) * rows + (ramp[1] - math.pi) * columns
    maps = torch.polar(torch.exp(-distance / (2 * REACH**2)), phase)
    return maps / maps.abs().square().sum(0).sqrt()
