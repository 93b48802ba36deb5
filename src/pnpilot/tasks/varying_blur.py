"""Blur that varies over the image, as behind a lens or in a microscope."""

from __future__ import annotations

import re

import torch
from deepinv.physics import GaussianNoise, SpaceVaryingBlur
from deepinv.physics.functional import gaussian_blur
from torch import Tensor
from torch.nn import functional as F

from ..errors import require
from .base import TASKS, Setting, Task

KERNELS = 4
"""How many kernels are blended from the middle to the corners."""


@TASKS.register("varying-blur")
class VaryingBlur(Task):
    """Varying blur: Gaussian kernels that widen from the middle to the corners (deepinv's SpaceVaryingBlur)."""

    def __init__(self) -> None:
        self.settings = [self.setting()]

    @staticmethod
    def setting(inner: float = 0.5, outer: float = 3.0, sigma: float = 2.55) -> Setting:
        """Widths of the kernel in the middle and in the corners, in pixels; noise level on the 0-255 scale."""
        require(inner > 0 < outer, f"kernels must have positive widths, got {inner} and {outer}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        values = {"inner": inner, "outer": outer, "sigma": sigma}
        return Setting(f"width={inner:g}-{outer:g} sigma={sigma:g}", values)

    def named(self, label: str) -> Setting:
        """Any setting such as 'width=0.5-2 sigma=5'."""
        found = re.fullmatch(r"width=(\d*\.?\d+)-(\d*\.?\d+) sigma=(\d+\.?\d*)", label)
        return self.setting(*map(float, found.groups())) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """The same blur for all images of a batch, as kernels are cut to their size; noise of its own for each."""
        inner, outer = (0.4 + torch.rand(2, generator=generator) * torch.tensor([1.0, 3.0])).tolist()
        return [self.setting(inner, outer, 1 + 9 * share) for share in torch.rand(count, generator=generator).tolist()]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> SpaceVaryingBlur:
        """Each pixel is spread by a blend of the two kernels whose distances from the middle are next to its own."""
        _, height, width = shape
        widths = torch.linspace(setting["inner"], setting["outer"], KERNELS).tolist()
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        kernels, shares = _stacked([gaussian_blur(sigma=(own, own)) for own in widths]), _rings(height, width)
        parts = {"filters": kernels[None, None], "multipliers": shares[None, None]}
        return SpaceVaryingBlur(**parts, padding="circular", use_fft=True, noise_model=noise)


def _stacked(kernels: list[Tensor]) -> Tensor:
    """Kernels (1, 1, h, w) with odd sides, padded to one size (K, h, w)."""
    largest = max(kernel.shape[-1] for kernel in kernels)
    padded = [F.pad(kernel, [(largest - kernel.shape[-1]) // 2] * 4) for kernel in kernels]
    return torch.cat(padded)[:, 0]


def _rings(height: int, width: int) -> Tensor:
    """The share (K, H, W) that each kernel has at a pixel: linear in the distance from the middle, of sum one."""
    rows, columns = (torch.linspace(-1, 1, length) for length in (height, width))
    place = torch.hypot(rows[:, None], columns) / 2**0.5 * (KERNELS - 1)
    return (1 - (place - torch.arange(KERNELS)[:, None, None]).abs()).clamp_min(0)
