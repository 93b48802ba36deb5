"""Single-photon imaging: sensors whose many tiny pixels (jots) say only whether any photon came."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.physics import NoiseModel, Physics
from torch import Tensor

from ..errors import require
from ..types import per_sample


class SinglePhoton(Physics):
    """y is the share of ones among the K×K jots of each pixel; a jot is one with probability 1 − e^(−x).

    Images are in photons per jot and exposure, and cannot be negative.
    """

    def __init__(self, K: int, rng: torch.Generator | None = None) -> None:
        super().__init__(noise_model=JotNoise(K, rng))

    @property
    def jots(self) -> Tensor:
        """How many jots a pixel has: one number, or one per image."""
        return self.noise_model.jots

    def A(self, x: Tensor, **_: Any) -> Tensor:
        """The share of ones that is expected of an image (B, C, H, W)."""
        return -torch.expm1(-x.clamp_min(0))


class JotNoise(NoiseModel):
    """The share of ones among K² jots, each of which is one with the probability given."""

    def __init__(self, K: int, rng: torch.Generator | None = None) -> None:
        super().__init__(rng=rng)
        require(isinstance(K, int) and K >= 1, f"a pixel has K×K jots for a whole number K from 1 on, got {K}")
        self.register_buffer("jots", torch.tensor([float(K * K)]))

    def forward(self, share: Tensor, **_: Any) -> Tensor:
        """Ones over jots."""
        jots = per_sample(self.jots, share)
        return torch.binomial(jots.expand_as(share).contiguous(), share, generator=self.rng) / jots
