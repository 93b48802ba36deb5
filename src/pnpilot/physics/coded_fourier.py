"""Fourier samples behind a phase mask, with their phases."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.physics import LinearPhysics
from torch import Tensor

from ..errors import require


class CodedFourier(LinearPhysics):
    """y = M·F(D·x) for a real image x, a phase mask D of modulus one, and samples M that are 0 or 1.

    `code` is complex (B or 1, 1, H, W), `mask` is (B or 1, 1, H, W). Data have the real and the imaginary part as
    channels (B, 2, H, W); noise is in what is sampled alone.
    """

    def __init__(self, code: Tensor, mask: Tensor, **others: Any) -> None:
        super().__init__(**others)
        what = f"code and mask must be (B, 1, H, W), got {tuple(code.shape)} and {tuple(mask.shape)}"
        require(code.ndim == mask.ndim == 4 and code.shape[-2:] == mask.shape[-2:], what)
        self.register_buffer("code", code)
        self.register_buffer("mask", mask)

    def A(self, x: Tensor, **_: Any) -> Tensor:
        """The samples (B, 2, H, W) of an image (B, 1, H, W)."""
        field = torch.fft.fft2(self.code * x, norm="ortho")
        return self.mask * torch.cat([field.real, field.imag], 1)

    def A_adjoint(self, y: Tensor, **_: Any) -> Tensor:
        """The real image (B, 1, H, W)."""
        real, imaginary = (self.mask * y).chunk(2, 1)
        field = torch.fft.ifft2(torch.complex(real, imaginary), norm="ortho")
        return (self.code.conj() * field).real

    def noise(self, x: Tensor, **others: Any) -> Tensor:
        """What is not sampled stays zero."""
        return self.mask * super().noise(x, **others)
