"""Coded diffraction: amplitudes of Fourier transforms behind phase masks, with shot noise."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.physics import NoiseModel, Physics
from torch import Tensor

from ..errors import require
from ..types import per_sample


class CodedDiffraction(Physics):
    """y_j = |F(D_j x)| for phase masks D_j of unit modulus (J, H, W), or (B, J, H, W) when images have their own."""

    def __init__(self, masks: Tensor, noise_model: NoiseModel | None = None, **kwargs: Any) -> None:
        super().__init__(noise_model=noise_model, **kwargs) if noise_model else super().__init__(**kwargs)
        what = f"masks must be complex (J, H, W) or (B, J, H, W), got {masks.dtype} {tuple(masks.shape)}"
        require(masks.ndim in (3, 4) and masks.is_complex(), what)
        require(bool(((masks.abs() - 1).abs() < 1e-3).all()), "masks must have modulus one everywhere")
        self.register_buffer("masks", (masks if masks.ndim == 4 else masks[None]).to(torch.complex64))

    def A(self, x: Tensor, **_: Any) -> Tensor:
        """Amplitudes (B, J, H, W) of an image (B, 1, H, W)."""
        return fields(self.masks, x).abs()


class ShotNoise(NoiseModel):
    """y² = |Ax|² + (α/255)·|Ax|·n with n ~ N(0, 1), for images in [0, 1]."""

    def __init__(self, alpha: float | Tensor, rng: torch.Generator | None = None) -> None:
        super().__init__(rng=rng)
        self.register_buffer("alpha", torch.as_tensor(alpha, dtype=torch.float32).reshape(-1))

    @property
    def sigma(self) -> Tensor:
        """Noise level of the amplitude of strong samples: d√v = dv / 2√v."""
        return self.alpha / (2 * 255)

    def forward(self, amplitude: Tensor, **_: Any) -> Tensor:
        """Noisy amplitudes."""
        noise = torch.randn(amplitude.shape, generator=self.rng, device=amplitude.device, dtype=amplitude.dtype)
        noisy = amplitude.square() + per_sample(self.alpha, amplitude) / 255 * amplitude * noise
        return noisy.clamp_min(0).sqrt()


def fields(masks: Tensor, x: Tensor) -> Tensor:
    """The complex fields F(D_j x), (B, J, H, W), of an image (B, 1, H, W)."""
    return torch.fft.fft2(masks * x, norm="ortho")


def back(masks: Tensor, field: Tensor) -> Tensor:
    """The pseudo-inverse of `fields`: the mean over j of D_j* F⁻¹ field_j."""
    return (masks.conj() * torch.fft.ifft2(field, norm="ortho")).mean(1, keepdim=True)
