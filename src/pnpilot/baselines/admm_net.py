"""ADMM-Net, in its authors' later and stronger form (ADMM-CSNet)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..problems.masked_fourier import MaskedFourier
from ._mri import fit, for_real_images
from ._unrolled import Unrolled, UnrolledNetwork
from .base import BASELINES

KNOTS = 101


class PiecewiseLinear(torch.autograd.Function):
    """A function per channel, given by its values at knots from −1 to 1: linear in between, and linear beyond."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor) -> Tensor:
        """For x (B, C, H, W) and values (C, knots)."""
        knots = values.shape[1]
        place = (_channels_last(x) + 1) * ((knots - 1) / 2)
        left = place.floor().clamp(0, knots - 2)
        share = place - left
        index = left.to(torch.int32) + knots * torch.arange(len(values), dtype=torch.int32, device=x.device)
        flat = values.flatten()
        low, high = flat[index], flat[index + 1]
        ctx.save_for_backward(index, share, high - low)
        ctx.shape = values.shape
        return (low + share * (high - low)).permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        """By histograms: scattered additions are slow when millions of numbers fall on a few thousand knots."""
        index, share, rise = ctx.saved_tensors
        channels, knots = ctx.shape
        gradient = _channels_last(gradients[0])
        places, right = index.flatten(), (gradient * share).flatten()
        to_left = torch.bincount(places, gradient.flatten() - right, channels * knots)
        to_right = torch.bincount(places + 1, right, channels * knots)
        onward = (gradient * rise * ((knots - 1) / 2)).permute(0, 3, 1, 2)
        return onward, (to_left + to_right).reshape(ctx.shape).to(gradient)


def _channels_last(x: Tensor) -> Tensor:
    """As (B, H, W, C), contiguous. Neighbours in memory then add to different knots, which is faster on a GPU."""
    return x.permute(0, 2, 3, 1).contiguous()


class Stage(nn.Module):
    """One iteration of ADMM: fit the data, denoise by two convolutions around learned functions, update the dual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rho = nn.Parameter(torch.tensor(0.1))
        self.eta = nn.Parameter(torch.tensor(1.0))
        self.spread = nn.Conv2d(1, width, 5, padding=2)
        self.gather = nn.Conv2d(width, 1, 5, padding=2)
        for layer in (self.spread, self.gather):
            nn.init.normal_(layer.weight, std=(2 / (25 * width)) ** 0.5)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
        self.values = nn.Parameter(torch.linspace(-1, 1, KNOTS).relu().repeat(width, 1))

    def forward(self, z: Tensor, dual: Tensor, measured: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """z and the dual of the next iteration."""
        x = fit(measured, z - dual, self.rho)
        s = x + dual
        z = s - self.gather(PiecewiseLinear.apply(self.spread(s), self.values))
        return z, dual + self.eta * (x - z)


class ADMMNetwork(UnrolledNetwork):
    """Ten stages, each with its own weights, and a last fit to the data: 194,591 parameters."""

    bf16 = False  # it would round positions between knots

    def __init__(self, stages: int = 10, width: int = 128) -> None:
        super().__init__()
        self.stages = nn.ModuleList(Stage(width) for _ in range(stages))
        self.rho = nn.Parameter(torch.tensor(0.1))

    def forward(self, problem: MaskedFourier) -> Tensor:
        """Start from zero."""
        measured = for_real_images(problem)
        z = dual = torch.zeros_like(problem.mask)
        for stage in self.stages:
            z, dual = stage(z, dual, measured)
        return fit(measured, z - dual, self.rho)

    def loss(self, problem: MaskedFourier, truth: Tensor) -> Tensor:
        """Norm of the error divided by the norm of the image."""
        error = (self(problem) - truth).flatten(1).norm(dim=1)
        return (error / truth.flatten(1).norm(dim=1).clamp_min(1e-3)).mean()


@BASELINES.register("admm-net")
class ADMMNet(Unrolled):
    """ADMM-Net (as ADMM-CSNet): ten stages of ADMM with learned filters and functions, one network for all settings."""

    reference = "Yang, Sun, Li & Xu, NeurIPS 2016 and TPAMI 2020"
    iterations = 10
    network_class = ADMMNetwork
    batch, rate = 16, 2e-3
