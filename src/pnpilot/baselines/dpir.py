"""DPIR, by deepinv."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from deepinv.models import Denoiser as DeepinvDenoiser
from deepinv.optim import DPIR as DeepinvDPIR
from deepinv.physics import LinearPhysics, Physics
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..denoisers import Denoiser, build_denoiser
from ..errors import Incompatible
from ..physics import copied, divided, selected
from ..problems import Hints, open_problem
from ..problems._data import noise_of
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


class OurDenoiser(Baseline):
    """A method by others with the denoiser that ships; theirs would have to be downloaded."""

    bounded = True

    @cached_property
    def denoiser(self) -> Denoiser:
        """The one that ships."""
        return build_denoiser("compact")

    def made_with(self) -> Any:
        """The denoiser."""
        return self.denoiser.sha256


@BASELINES.register("dpir")
class DPIR(OurDenoiser):
    """DPIR by deepinv: half-quadratic splitting, eight iterations with its own schedule; here with our denoiser."""

    reference = "Zhang, Li, Zuo, Zhang, Van Gool & Timofte, TPAMI 2021; deepinv.optim.DPIR"
    serves = frozenset({"csmri"})
    iterations = 8

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Reconstruct the images of one noise level at a time: deepinv takes one schedule per batch."""
        sigma = noise_of(physics)
        if not isinstance(physics, LinearPhysics) or sigma is None:
            raise Incompatible("dpir needs a linear physics with a Gaussian noise level")
        open_problem(y, physics, Hints(peak=1.0, real=True))  # refuses what cannot be reconstructed
        levels, image = one_each(sigma, y.real, "noise levels").clamp_min(FLOOR), physics.A_adjoint(y)
        complex_images = isinstance(physics, MRIMixin)
        denoiser = self.denoiser.to(y.device)
        prior = RealPart(denoiser) if complex_images else denoiser
        own_parts = len(levels.unique()) > 1 and divided(physics, image)
        for level in levels.unique():
            index = (levels == level).nonzero().flatten()
            # Its data steps leave their settings in the physics.
            part = copied(selected(physics, index, len(y)) if own_parts else physics)
            solver = DeepinvDPIR(sigma=level.item(), denoiser=prior, device=y.device)
            image[index] = solver(y[index], part)
        return to_two_channels(image[:, :1].clamp(0, 1)) if complex_images else image.clamp(0, 1)
