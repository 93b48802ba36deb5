"""The denoiser that ships: a bias-free residual U-shaped network at half resolution."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import DENOISERS, Denoiser

ROUNDS = ("cuda",)
"""Devices whose convolutions of single precision may keep no more than ten bits of a number."""


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(x))), without biases."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        return x + self.conv2(F.relu(self.conv1(x)))


def _blocks(width: int, count: int) -> nn.Sequential:
    return nn.Sequential(*(ResidualBlock(width) for _ in range(count)))


@DENOISERS.register("compact")
class Compact(Denoiser):
    """Bias-free residual U-shaped network behind a pixel-unshuffle: 7.8 M parameters, ships trained.

    No layer has a bias, so scaling the image and the noise level scales the result: D(c·x, c·σ) = c·D(x, σ).
    """

    needs_weights = True

    def __init__(self, widths: tuple[int, ...] = (64, 112, 160, 224), blocks: int = 3) -> None:
        super().__init__()
        self.multiple = 2 ** len(widths)
        *levels, bottom = widths
        steps = list(pairwise(widths))
        options: dict[str, Any] = {"kernel_size": 2, "stride": 2, "bias": False}
        self.head = nn.Conv2d(4 + 1, widths[0], 3, padding=1, bias=False)
        self.encoders = nn.ModuleList(_blocks(width, blocks) for width in levels)
        self.downs = nn.ModuleList(nn.Conv2d(wide, narrow, **options) for wide, narrow in steps)
        self.body = _blocks(bottom, blocks)
        self.ups = nn.ModuleList(nn.ConvTranspose2d(narrow, wide, **options) for wide, narrow in steps)
        self.decoders = nn.ModuleList(_blocks(width, blocks) for width in levels)
        self.tail = nn.Conv2d(widths[0], 4, 3, padding=1, bias=False)
        self.to(memory_format=torch.channels_last)

    @classmethod
    def example(cls) -> Compact:
        """A small one."""
        return cls(widths=(16, 24), blocks=1)

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The negative of the noise it finds."""
        quarters = F.pixel_unshuffle(x, 2)
        plane = sigma.expand(-1, 1, *quarters.shape[-2:])
        planes = torch.cat([quarters, plane], 1).contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, enabled=False):  # bf16 would round the image itself
            features = self.seen(planes)
        skips = []
        for encode, down in zip(self.encoders, self.downs, strict=True):
            skips.append(encode(features))
            features = down(skips[-1])
        features = self.body(features)
        for up, decode, skip in reversed(list(zip(self.ups, self.decoders, skips, strict=True))):
            features = decode(up(features) + skip)
        with torch.autocast(x.device.type, enabled=False):  # its rounding would add up where no data correct it
            return F.pixel_shuffle(self.tail(features.to(self.tail.weight.dtype)), 2)

    def seen(self, planes: Tensor) -> Tensor:
        """The first layer. Where it would round the image, what that takes off is seen by itself."""
        if planes.device.type not in ROUNDS:
            return self.head(planes)
        coarse = planes.to(torch.bfloat16).to(planes.dtype)
        return self.head(coarse) + self.head(planes - coarse)
