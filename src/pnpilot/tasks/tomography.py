"""Sparse-view tomography."""

from __future__ import annotations

import torch
from deepinv.physics import GaussianNoise, Tomography

from ..errors import require
from .base import TASKS, Setting, Task


@TASKS.register("tomography")
class TomographyTask(Task):
    """Sparse-view parallel-beam tomography (deepinv's Tomography)."""

    def __init__(self) -> None:
        self.settings = [self.setting(60, 2.55), self.setting(30, 2.55)]

    @staticmethod
    def setting(views: int = 60, sigma: float = 2.55) -> Setting:
        """Number of angles; noise level on the 0-255 scale of the normalised sinogram."""
        require(views >= 1, f"at least one view is needed, got {views}")
        require(sigma >= 0, f"the noise level must be zero or more, got {sigma}")
        return Setting(f"views={views} sigma={sigma:g}", {"views": views, "sigma": sigma})

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> Tomography:
        """Angles evenly over half a turn."""
        _, height, width = shape
        require(height == width, f"tomography needs square images, got {height}×{width}")
        angles = torch.arange(setting["views"]) * 180.0 / setting["views"]
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        with torch.random.fork_rng(devices=[]):  # deepinv measures the norm from a start drawn with the global seed
            torch.manual_seed(0)
            return Tomography(angles=angles, img_width=width, circle=False, normalize=True, noise_model=noise)
