"""The denoiser of the paper: a residual U-Net with a noise map."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import DENOISERS, Denoiser


def _three_convs(inputs: int, width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels in (inputs, width, width):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers)


@DENOISERS.register("unet")
class UNet(Denoiser):
    """The paper's residual U-Net with noise map: 11.8 M parameters, ships trained."""

    needs_weights = True

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256, 512)) -> None:
        super().__init__()
        self.multiple = 2 ** (len(widths) - 1)
        pairs = list(pairwise(widths))
        self.inlet = _three_convs(2, widths[0])
        self.downs = nn.ModuleList(_three_convs(above, below) for above, below in pairs)
        self.ups = nn.ModuleList(_three_convs(above + below, above) for above, below in pairs)
        self.outlet = nn.Conv2d(widths[0], 1, 1)
        self.to(memory_format=torch.channels_last)

    @classmethod
    def example(cls) -> UNet:
        """A small one."""
        return cls(widths=(16, 24, 32))

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The negative of the noise it finds."""
        planes = torch.cat([x, sigma.expand_as(x)], 1).contiguous(memory_format=torch.channels_last)
        first, *others = self.inlet
        with torch.autocast(x.device.type, enabled=False):  # bf16 would round the image itself
            features = first(planes)
        for layer in others:
            features = layer(features)
        skips = []
        for down in self.downs:
            skips.append(features)
            features = down(F.max_pool2d(features, 2))
        for up, skip in reversed(list(zip(self.ups, skips, strict=True))):
            larger = F.interpolate(features, scale_factor=2, mode="bilinear", align_corners=True)
            features = up(torch.cat([skip, larger], 1))
        return self.outlet(features)
