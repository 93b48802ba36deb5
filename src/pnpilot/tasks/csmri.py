"""Compressed-sensing MRI: a masked Fourier transform with complex Gaussian noise."""

from __future__ import annotations

import re

import torch
from deepinv.physics import MRI, GaussianNoise
from torch import Tensor

from ..errors import require
from ..types import to_two_channels
from ._masks import build_mask
from .base import TASKS, Setting, Task


@TASKS.register("csmri")
class CSMRI(Task):
    """Compressed-sensing MRI, single coil: y = M(Fx + noise)."""

    channels = (1,)
    start = "zero-filled"

    def __init__(self) -> None:
        self.settings = [self.setting(factor, sigma) for factor in (2, 4, 8) for sigma in (5, 10, 15)]

    @staticmethod
    def setting(acceleration: float = 4, sigma: float = 15, mask: str | Tensor = "radial") -> Setting:
        """Noise level sigma on the 0-255 scale, per real and imaginary part; a mask by name or centred (H, W)."""
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        named = mask if isinstance(mask, str) else "own mask"
        prefix = "" if named == "radial" else f"{named} "
        values = {"acceleration": acceleration, "sigma": sigma, "mask": mask}
        return Setting(f"{prefix}x{acceleration:g} sigma={sigma:g}", values)

    def named(self, label: str) -> Setting:
        """Any setting such as 'x3 sigma=7' or 'cartesian x4 sigma=15'."""
        found = re.fullmatch(r"(?:(\w+) )?x(\d+\.?\d*) sigma=(\d+\.?\d*)", label)
        return self.setting(float(found[2]), float(found[3]), found[1] or "radial") if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """Wider than the settings of the benchmark: all kinds of masks, more and less sampling and noise."""
        shares = torch.rand(count, 3, generator=generator).tolist()
        kinds = ("radial", "radial", "radial", "cartesian", "cartesian", "random")
        return [self.setting(1.5 * (10 / 1.5) ** a, 1 + 24 * s, kinds[int(6 * k)]) for k, a, s in shares]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> MRI:
        """deepinv's MRI with the mask of the setting."""
        _, height, width = shape
        mask = setting["mask"]
        if isinstance(mask, str):
            mask = build_mask(mask, height, width, setting["acceleration"], generator)
        mask = torch.as_tensor(mask).float()
        sizes = f"the mask is {tuple(mask.shape)}, the image {(height, width)}: they must agree"
        require(mask.shape == (height, width), sizes)
        return MRI(mask=mask, noise_model=GaussianNoise(setting["sigma"] / 255, rng=generator))

    def embed(self, image: Tensor) -> Tensor:
        """A zero imaginary part."""
        return to_two_channels(image)

    def extract(self, image: Tensor) -> Tensor:
        """The real part, as in the paper's scores."""
        return image[:, :1]
