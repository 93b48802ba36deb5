"""DPIR, by deepinv."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from deepinv.models import Denoiser as DeepinvDenoiser
from deepinv.optim import DPIR as DeepinvDPIR
from deepinv.physics import MRI, Physics
from torch import Tensor

from ..denoisers import Denoiser, build_denoiser
from ..errors import Incompatible
from ..problems import Hints, open_problem
from ..problems._data import noise_of
from ..problems.masked_fourier import MaskedFourier
from ..types import one_each, to_two_channels
from .base import BASELINES, Baseline

FLOOR = 0.255 / 255
"""The lowest noise level it is told, as its schedule is logarithmic."""


class RealPart(DeepinvDenoiser):
    """A denoiser of deepinv's two channels that sets the imaginary one to zero."""

    def __init__(self, denoiser: Denoiser) -> None:
        super().__init__()
        self.denoiser = denoiser

    def forward(self, x: Tensor, sigma: Tensor, **_: object) -> Tensor:
        """Denoise."""
        return to_two_channels(self.denoiser(x[:, :1], sigma))


@BASELINES.register("dpir")
class DPIR(Baseline):
    """DPIR by deepinv: half-quadratic splitting, eight iterations with its own schedule; here with our denoiser."""

    reference = "Zhang, Li, Zuo, Zhang, Van Gool & Timofte, TPAMI 2021; deepinv.optim.DPIR"
    serves = frozenset({"csmri"})
    bounded = True
    iterations = 8

    @cached_property
    def denoiser(self) -> Denoiser:
        """The one that ships; deepinv's would have to be downloaded."""
        return build_denoiser("compact")

    def made_with(self) -> Any:
        """The denoiser."""
        return self.denoiser.sha256

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct the images of one noise level at a time: deepinv takes one schedule per batch."""
        sigma = noise_of(physics)
        if not MaskedFourier.accepts(physics) or sigma is None:
            raise Incompatible("dpir needs deepinv's single-coil MRI with a Gaussian noise level")
        open_problem(y, physics, Hints(peak=1.0, real=True))  # refuses what cannot be reconstructed
        levels, image = one_each(sigma, y, "noise levels").clamp_min(FLOOR), torch.zeros_like(y)
        prior, masks = RealPart(self.denoiser.to(y.device)), physics.mask.to(y).expand(len(y), -1, -1, -1)
        for level in levels.unique():
            index = (levels == level).nonzero().flatten()
            own = MRI(mask=masks[index], device=y.device)
            image[index] = DeepinvDPIR(sigma=level.item(), denoiser=prior, device=y.device)(y[index], own)
        return to_two_channels(image[:, :1].clamp(0, 1))
