"""The phase of complex images: a gauge in which most of an image is real and positive."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

SIDE = 32
"""Side of the middle of k-space that the phase is read from."""
FAINT = 0.05
"""Where the image is fainter than this share of its largest value, the phase is drawn to that of the whole image."""


def gauge(image: Tensor) -> Tensor:
    """The phase factors (B, C, H, W), of modulus one, of the image at low resolution.

    It turns with the image, gauge(e^{iθ}x) = e^{iθ}gauge(x), and costs two Fourier transforms. In air there is no phase
    to follow: one that is read from nothing jumps from iteration to iteration, and what it denoises with it.
    """
    low = torch.fft.ifft2(_window(*image.shape[-2:], image.device) * torch.fft.fft2(image.detach()))
    strength = low.abs()
    whole = torch.sgn((strength * low).sum((-2, -1), keepdim=True))
    steady = low + FAINT * strength.amax((-2, -1), keepdim=True) * whole
    return torch.polar(torch.ones_like(strength), steady.angle())


@lru_cache(maxsize=8)
def _window(height: int, width: int, device: torch.device) -> Tensor:
    """Un-shifted, and made once: copying it to a GPU at every iteration would wait for it."""
    return torch.fft.ifftshift(middle(height, width)).to(device)


def middle(height: int, width: int, side: int = SIDE) -> Tensor:
    """A Hann window over the middle of centred k-space (H, W): one at the zero frequency, zero from side/2 on."""
    rows, columns = (
        torch.cos(torch.pi * ((torch.arange(length) - length // 2) / side).clamp(-0.5, 0.5)).square()
        for length in (height, width)
    )
    return rows[:, None] * columns
