"""A plain stack of convolutions (Zhang et al. 2017), in the version with a noise map."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import DENOISERS, Denoiser


@DENOISERS.register("dncnn")
class DnCNN(Denoiser):
    """DnCNN with noise map, 20 convolutions without normalisation: 0.67 M parameters, ships trained."""

    needs_weights = True

    def __init__(self, depth: int = 20, width: int = 64) -> None:
        super().__init__()
        self.inlet = nn.Conv2d(2, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth - 2))
        self.outlet = nn.Conv2d(width, 1, 3, padding=1)
        # torch's own start shrinks the signal by more than half in each layer: after 20 of them nothing is left.
        for conv in (self.inlet, *self.body):
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            nn.init.zeros_(conv.bias)
        self.to(memory_format=torch.channels_last)

    @classmethod
    def example(cls) -> DnCNN:
        """A small one."""
        return cls(depth=4, width=16)

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The negative of the noise it finds."""
        planes = torch.cat([x, sigma.expand_as(x)], 1).contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, enabled=False):  # bf16 would round the image itself
            features = F.relu(self.inlet(planes))
        for conv in self.body:
            features = F.relu(conv(features))
        return self.outlet(features)
