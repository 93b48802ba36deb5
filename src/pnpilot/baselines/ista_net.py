"""ISTA-Net⁺."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..problems.masked_fourier import MaskedFourier
from ._unrolled import Unrolled, UnrolledNetwork
from .base import BASELINES

SYMMETRY = 0.01
"""Weight of the part of the loss that makes the learned transform invertible."""


class ShrinkageStage(nn.Module):
    """One iteration: a gradient step on the data, then shrinkage of a learned transform of the result."""

    def __init__(self, width: int) -> None:
        super().__init__()

        def conv(inputs: int, outputs: int) -> nn.Conv2d:
            layer = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
            nn.init.xavier_normal_(layer.weight)
            return layer

        self.step = nn.Parameter(torch.tensor(0.5))
        self.threshold = nn.Parameter(torch.tensor(0.01))
        self.spread = conv(1, width)
        self.forth = nn.ModuleList([conv(width, width), conv(width, width)])
        self.back = nn.ModuleList([conv(width, width), conv(width, width)])
        self.gather = conv(width, 1)

    def forward(self, x: Tensor, problem: MaskedFourier) -> tuple[Tensor, Tensor]:
        """The next image, and the squared error of the learned inverse of the transform."""
        r = x - self.step * problem.grad(x).real
        spread = self.spread(r)
        transformed = _pair(self.forth, spread)
        shrunk = transformed.sign() * F.relu(transformed.abs() - self.threshold)
        image = r + self.gather(_pair(self.back, shrunk))
        if not self.training:
            return image, image.new_zeros(())
        return image, (_pair(self.back, transformed) - spread).float().square().mean()


def _pair(layers: nn.ModuleList, x: Tensor) -> Tensor:
    first, second = layers
    return second(F.relu(first(x)))


class ISTANetwork(UnrolledNetwork):
    """Nine stages, each with its own weights: 336,978 parameters."""

    def __init__(self, stages: int = 9, width: int = 32) -> None:
        super().__init__()
        self.phases = nn.ModuleList(ShrinkageStage(width) for _ in range(stages))  # their name in saved weights
        self.to(memory_format=torch.channels_last)

    def forward(self, problem: MaskedFourier) -> Tensor:
        """Start from the zero-filled image."""
        return self._run(problem)[0]

    def loss(self, problem: MaskedFourier, truth: Tensor) -> Tensor:
        """Mean squared error, plus a little of the errors of the learned inverses."""
        image, asymmetry = self._run(problem)
        return F.mse_loss(image, truth) + SYMMETRY * asymmetry

    def _run(self, problem: MaskedFourier) -> tuple[Tensor, Tensor]:
        x = problem.x0().real
        total = x.new_zeros(())
        for stage in self.phases:
            x, asymmetry = stage(x, problem)
            total = total + asymmetry
        return x, total


@BASELINES.register("ista-net+")
class ISTANet(Unrolled):
    """ISTA-Net⁺: nine steps of iterative shrinkage with learned transforms, one network for all settings."""

    reference = "Zhang & Ghanem, CVPR 2018"
    iterations = 9
    network_class = ISTANetwork
    batch, rate = 32, 1.5e-3
