"""The networks of the learned policy: a residual encoder, the two-headed actor, and the critic."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..types import Range

SMALLEST = 1e-3
"""Lower bound of the size of a plane, before its logarithm."""
LEAST_SPREAD = 0.05
"""Lower bound of the spread that a summary is divided by."""


class Block(nn.Module):
    """Two 3×3 convolutions with group normalisation around a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(8, outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(8, outside)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(inner + self.shortcut(x))


class Encoder(nn.Module):
    """ResNet-18 as in the paper, where every stage halves the size and nothing is max-pooled; its width is free.

    Mean and logarithmic size of every plane join the features. What is constant over the image (progress, noise level)
    and how large residuals are reach the heads directly, and in the form they need: a small σ_k = high · sigmoid(h) is
    nearly high · exp(h), so that a power law of the noise level is a linear function for its head. They are
    standardised (`calibrate`): otherwise a head would need thousands of steps to tell similar settings apart.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.stem = nn.Sequential(nn.Conv2d(channels, width, 3, 2, padding=1, bias=False), nn.GroupNorm(8, width))
        widths = (width, width, 2 * width, 4 * width, 8 * width)
        self.stages = nn.Sequential(
            *(
                nn.Sequential(Block(inside, outside, 2), Block(outside, outside, 1))
                for inside, outside in pairwise(widths)
            )
        )
        self.mix = nn.Linear(8 * width + 2 * channels, 8 * width)
        self.features = 8 * width + 2 * channels
        self.register_buffer("centre", torch.zeros(2 * channels))
        self.register_buffer("spread", torch.ones(2 * channels))
        self.to(memory_format=torch.channels_last)

    def forward(self, planes: Tensor) -> Tensor:
        """Features (B, F)."""
        planes = planes.contiguous(memory_format=torch.channels_last)
        deep = self.stages(F.relu(self.stem(planes))).mean((2, 3))
        plain = (self.summary(planes) - self.centre) / self.spread
        return torch.cat([F.silu(self.mix(torch.cat([deep, plain], 1))), plain], 1)

    @staticmethod
    def summary(planes: Tensor) -> Tensor:
        """Mean and logarithmic size of every plane (B, 2C)."""
        size = planes.square().mean((2, 3)).clamp_min(SMALLEST**2).log()
        return torch.cat([planes.mean((2, 3)), size], 1)

    @torch.no_grad()
    def calibrate(self, planes: Tensor) -> None:
        """Standardise the summary by what it is for these planes."""
        found = self.summary(planes)
        self.centre.copy_(found.mean(0))
        self.spread.copy_(found.std(0).clamp_min(LEAST_SPREAD))


class Choice(NamedTuple):
    """What the actor chooses."""

    logit: Tensor
    """Log-odds of stopping after this decision (B,)."""
    onward: Tensor
    """Every parameter for m iterations, in [0, 1] (B, P, m), for images that go on after them."""
    last: Tensor
    """The same for images that stop after them: the best end is not the best way to go on."""

    @property
    def stop(self) -> Tensor:
        """Probability of stopping (B,)."""
        return torch.sigmoid(self.logit)

    def knobs(self, stopping: Tensor) -> Tensor:
        """The knobs for stopping or for going on, whichever each image (B,) does."""
        return torch.where(stopping[:, None, None], self.last, self.onward)


class Actor(nn.Module):
    """π: planes → a stop probability (stochastic head) and the solver's parameters (deterministic head).

    Of `params`, it sets those that networks learn to set; the others keep their defaults.
    """

    def __init__(self, params: Mapping[str, Range], channels: int, *, width: int = 32, iterations: int = 5) -> None:
        super().__init__()
        self.params = {name: limits for name, limits in params.items() if limits.learned}
        self.others = {name: limits.default for name, limits in params.items() if not limits.learned}
        self.iterations = iterations
        self.encoder = Encoder(channels, width)
        self.stop = nn.Linear(self.encoder.features, 1)
        # One output shared by all iterations of a decision, and one for each iteration.
        self.common = nn.Linear(self.encoder.features, 2 * len(self.params))
        self.each = nn.Linear(self.encoder.features, 2 * len(self.params) * iterations)
        # Untrained, it goes on, with the solver's defaults.
        for head in (self.stop, self.common, self.each):
            nn.init.normal_(head.weight, std=1e-3)
            nn.init.zeros_(head.bias)
        nn.init.constant_(self.stop.bias, -1.0)
        shares = [(limits.default - limits.low) / (limits.high - limits.low) for limits in self.params.values()]
        self.common.bias.data = torch.logit(torch.tensor(shares), eps=0.01).repeat(2)  # a default may be an end

    def forward(self, planes: Tensor) -> Choice:
        """The choice for every image."""
        features = self.encoder(planes)
        each = self.each(features).reshape(len(planes), -1, self.iterations)
        onward, last = torch.sigmoid(self.common(features)[:, :, None] + each).chunk(2, 1)
        return Choice(self.stop(features)[:, 0], onward, last)

    def scaled(self, knobs: Tensor) -> dict[str, Tensor]:
        """Knobs in [0, 1] as solver parameters within their ranges, each (B, m)."""
        chosen = {
            name: limits.low + (limits.high - limits.low) * knobs[:, row].float()
            for row, (name, limits) in enumerate(self.params.items())
        }
        like = knobs[:, 0].float()
        return {**chosen, **{name: torch.full_like(like, value) for name, value in self.others.items()}}


class Critic(nn.Module):
    """Planes → the value of a state in dB (B,), as its learner defines it, or several values (B, number)."""

    def __init__(self, channels: int, *, width: int = 32, number: int = 1) -> None:
        super().__init__()
        self.encoder = Encoder(channels, width)
        self.value = nn.Linear(self.encoder.features, number)

    def forward(self, planes: Tensor) -> Tensor:
        """The value of every state."""
        return self.value(self.encoder(planes)).squeeze(1)
