"""The phase of complex images: a gauge in which most of an image is real and positive."""

from __future__ import annotations

import torch
from torch import Tensor

SIDE = 32
"""Side of the middle of k-space that the phase is read from."""


def gauge(image: Tensor) -> Tensor:
    """The phase factors (B, C, H, W), of modulus one, of the image at low resolution.

    It turns with the image, gauge(e^{iθ}x) = e^{iθ}gauge(x), and costs two Fourier transforms.
    """
    window = torch.fft.ifftshift(middle(*image.shape[-2:]).to(image.real))
    low = torch.fft.ifft2(window * torch.fft.fft2(image.detach()))
    return torch.polar(torch.ones_like(low.real), low.angle())


def middle(height: int, width: int, side: int = SIDE) -> Tensor:
    """A Hann window over the middle of centred k-space (H, W): one at the zero frequency, zero from side/2 on."""
    rows, columns = (
        torch.cos(torch.pi * ((torch.arange(length) - length // 2) / side).clamp(-0.5, 0.5)).square()
        for length in (height, width)
    )
    return rows[:, None] * columns
