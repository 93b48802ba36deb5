"""Images that were guessed to be real and non-negative: whether their data object."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .problems import Problem
from .problems._least_squares import noise_like
from .types import per_sample

WINDOW = 5
"""Side of the square that objections are averaged over."""
CLEAN = 2.55 / 255
"""A noise level under which no data object: their denoiser keeps images that far away."""
OBJECTED = 8.0
"""Right guesses met with at most 6.4 in all that was tried (`examples/doubt_the_guess.py`)."""


def level(problem: Problem) -> Tensor:
    """The noise level (B,), or the least that counts: images come no nearer than that to data without noise."""
    return problem.noise_unit().clamp_min(CLEAN)


def doubtful(problem: Problem, image: Tensor) -> Tensor:
    """Which images (B,) were guessed to be real and non-negative, and their data object."""
    if not problem.units.guessed:
        return ~problem.all_active()
    # What is worse than nothing has other troubles.
    somewhere = problem.fidelity(image) < problem.fidelity(torch.zeros_like(image))
    return problem.units.flags & somewhere & (objection(problem, image) > OBJECTED)


def objection(problem: Problem, image: Tensor) -> Tensor:
    """The strongest objection of the data (B,) that no real and non-negative image can meet, in units of the noise.

    −∇D asks for an imaginary part, or for less. One missing vessel weighs little in the distance from all data, and
    much here.
    """
    white = noise_like(problem.y) * (2**0.5 if problem.y.is_complex() else 1)
    noise = problem.A_adjoint(white * per_sample(level(problem), white))
    strongest = []
    for index, (asked, chance) in enumerate(zip(_parts(-problem.grad(image)), _parts(noise), strict=True)):
        smooth, usual = _smooth(asked), _smooth(chance)
        # Fine grain is noise: where there is more than was declared, it objects to nothing.
        more = (_size(asked - smooth) / _size(chance - usual)).clamp_min(1)
        against = smooth.abs() if index else -smooth
        strongest.append(against.flatten(1).amax(1) / (more * usual.square().flatten(1).mean(1).sqrt()))
    return torch.stack(strongest).amax(0)


def _parts(image: Tensor) -> tuple[Tensor, ...]:
    return (image.real, image.imag) if image.is_complex() else (image,)


def _smooth(part: Tensor) -> Tensor:
    return F.avg_pool2d(part, WINDOW, stride=1, padding=WINDOW // 2)


def _size(grain: Tensor) -> Tensor:
    return grain.abs().flatten(1).median(1).values
