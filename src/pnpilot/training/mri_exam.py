"""Simulated CS-MRI in all settings of the benchmark: what unrolled networks are trained and examined on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..baselines._unrolled import UnrolledNetwork
from ..metrics import psnr
from ..problems import Units
from ..problems.masked_fourier import MaskedFourier
from ..tasks.csmri import CSMRI
from .exam import plain_and_altered


class Simulator:
    """Measurements of the benchmark's settings, simulated on the device."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.settings = CSMRI().settings
        unused = torch.Generator()
        masks = [CSMRI().physics(setting, (1, size, size), unused).mask[0, :1] for setting in self.settings]
        self.masks = torch.fft.ifftshift(torch.stack(masks), dim=(-2, -1)).to(device)
        self.levels = torch.tensor([setting["sigma"] / 255 for setting in self.settings], device=device)

    def measure(self, truth: Tensor, generator: torch.Generator, settings: Tensor | None = None) -> MaskedFourier:
        """Data of images (B, 1, H, W) in settings (B,), drawn at random unless given."""
        if settings is None:
            settings = torch.randint(len(self.settings), (len(truth),), generator=generator, device=truth.device)
        mask, sigma = self.masks[settings], self.levels[settings]
        parts = torch.randn(2, *truth.shape, generator=generator, device=truth.device)
        noise = torch.complex(*parts) * sigma[:, None, None, None]
        y = mask * (torch.fft.fft2(truth, norm="ortho") + noise)
        units = Units(torch.ones_like(sigma), True, sigma, torch.ones(len(truth), dtype=torch.bool))
        return MaskedFourier(y, units, mask)


class MRIExam:
    """Held-out images, as they are and altered, in every setting."""

    def __init__(self, images: Sequence[np.ndarray], simulator: Simulator) -> None:
        size, device = simulator.masks.shape[-1], simulator.masks.device
        self.truth = plain_and_altered(images, size).to(device)
        generator = torch.Generator(device).manual_seed(1)
        self.problems = {
            setting.label: simulator.measure(
                self.truth, generator, torch.full((len(self.truth),), index, device=device)
            )
            for index, setting in enumerate(simulator.settings)
        }

    @torch.inference_mode()
    def take(self, network: UnrolledNetwork) -> dict[str, float]:
        """Mean PSNR per setting."""
        return {
            label: round(psnr(network(problem), self.truth).mean().item(), 3)
            for label, problem in self.problems.items()
        }
