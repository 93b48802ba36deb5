"""MemNet (Tai et al. 2017): blocks of residual units, each gated together with all earlier results."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .base import DENOISERS, Denoiser


def _unit(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(inplace=True), conv)


class MemoryBlock(nn.Module):
    """A chain of residual units, and a gate that combines their results with those of all earlier blocks."""

    def __init__(self, width: int, units: int, earlier: int) -> None:
        super().__init__()
        self.units = nn.ModuleList(nn.Sequential(_unit(width, width, 3), _unit(width, width, 3)) for _ in range(units))
        self.gate = _unit((units + earlier) * width, width, 1)

    def forward(self, memories: list[Tensor]) -> Tensor:
        """The next memory."""
        found = memories[-1:]
        for unit in self.units:
            found.append(found[-1] + unit(found[-1]))
        return self.gate(torch.cat([*found[1:], *memories], 1))


@DENOISERS.register("memnet")
class MemNet(Denoiser):
    """MemNet with noise map, 6 memory blocks of 6 residual units: 2.91 M parameters, to be trained."""

    needs_weights = True

    def __init__(self, blocks: int = 6, units: int = 6, width: int = 64) -> None:
        super().__init__()
        # Not a unit like the others: ReLU would merge all values below zero, and with BatchNorm before it, all noise
        # levels below the average.
        self.inlet = nn.Conv2d(2, width, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList(MemoryBlock(width, units, earlier + 1) for earlier in range(blocks))
        self.outlet = _unit(width, 1, 3)
        self.to(memory_format=torch.channels_last)

    @classmethod
    def example(cls) -> MemNet:
        """A small one."""
        return cls(blocks=2, units=1, width=16)

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The negative of the noise it finds."""
        planes = torch.cat([x, sigma.expand_as(x)], 1).contiguous(memory_format=torch.channels_last)
        with torch.autocast(x.device.type, enabled=False):  # bf16 would round the image itself
            features = self.inlet(planes)
        if torch.is_autocast_enabled(x.device.type):  # or whatever it is added or joined to would become float32
            features = features.to(torch.get_autocast_dtype(x.device.type))
        memories = [features]
        for block in self.blocks:
            memories.append(block(memories))
        return self.outlet(memories[-1])
