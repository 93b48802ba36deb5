"""What a learned policy sees: planes (B, C, H, W) of one kind for every problem, or the paper's channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..problems import Problem
from ..solvers import Solver
from ..solvers.base import noise_pattern
from ..types import per_sample
from .base import known_noise

GAIN = 10.0
"""Lifts small planes (the gradient of the data term, the noise level) to the size of the others."""

PROBE = 0.1
"""Size of the noise pattern that probes the operator, in units of the image's peak."""

Observe = Callable[[Problem, Solver, Any, Tensor], Tensor]


def universal(problem: Problem, solver: Solver, state: Any, progress: Tensor) -> Tensor:
    """The solver's variables, the gradient of the data term, progress and noise level.

    Nothing in it belongs to one kind of measurement: it exists for every operator that has a gradient.
    """
    images = [*solver.planes(state, problem), -GAIN * problem.grad(solver.output(state))]
    return _stacked(problem, images, progress, GAIN)


def probed(problem: Problem, solver: Solver, state: Any, progress: Tensor) -> Tensor:
    """The universal planes, and the operator's response to a fixed noise pattern: how much it measures, and of what.

    ∇D(x + n) − ∇D(x) is AᴴAn for a linear operator. A start may fit its data whatever was measured; this shows it.
    """
    objection, answer, _ = _probe(problem, solver.output(state))
    return _stacked(problem, [*solver.planes(state, problem), -GAIN * objection, answer], progress, GAIN)


def watched(problem: Problem, solver: Solver, state: Any, progress: Tensor) -> Tensor:
    """The probed planes, and how far the run has come: how far apart the solver's first two variables still are, and
    how much larger the gradient of the data term is than their noise explains.
    """
    objection, answer, pattern = _probe(problem, solver.output(state))
    variables = solver.planes(state, problem)
    apart = GAIN * (variables[0] - variables[1 if len(variables) > 1 else 0])
    planes = _stacked(problem, [*variables, -GAIN * objection, answer, apart], progress, GAIN)
    # Noise of level σ gives the gradient the power σ²·mean(diag AᴴA), and nᵀAᴴAn / pixels estimates that mean.
    explained = known_noise(problem).square() * (pattern * _plane(answer, problem)).mean((1, 2, 3))
    found = _plane(objection, problem).square().mean((1, 2, 3))
    excess = (found / explained.clamp_min(1e-12)).clamp_min(1e-6).log() / 2
    return torch.cat([planes, _constant(excess.clamp(-2, 2).nan_to_num(0.0), planes[:, :1])], 1)


def paper(problem: Problem, solver: Solver, state: Any, progress: Tensor) -> Tensor:
    """The solver's variables, measurements and masks as they are, progress and noise level."""
    return _stacked(problem, [*solver.planes(state, problem), *problem.measured()], progress, 1.0)


EXTRA_PLANES = {"watched": 6, "probed": 4, "universal": 3}
"""How many planes there are besides the solver's variables, where that number is fixed."""
OBSERVATIONS: dict[str, Observe] = {"watched": watched, "probed": probed, "universal": universal, "paper": paper}


def _probe(problem: Problem, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of the data term, the operator's response to a noise pattern, and that pattern."""
    objection = problem.grad(image)
    pattern = noise_pattern(tuple(image.shape[-2:]), image.device)
    return objection, (problem.grad(image + PROBE * pattern) - objection) / PROBE, pattern


def _stacked(problem: Problem, images: list[Tensor], progress: Tensor, gain: float) -> Tensor:
    planes = [_plane(image, problem) for image in images]
    values = (progress, gain * known_noise(problem))
    constants = [_constant(value, planes[0]) for value in values]
    # Values that are not finite become zero, or they would spread to all weights.
    return torch.cat([*planes, *constants], 1).float().nan_to_num(0.0, 0.0, 0.0)


def _constant(values: Tensor, like: Tensor) -> Tensor:
    return per_sample(values, like).expand_as(like)


def _plane(image: Tensor, problem: Problem) -> Tensor:
    """An image as one real channel: colours averaged; of images with a phase, the modulus."""
    image = image.mean(1, keepdim=True)
    if not image.is_complex():
        return image
    units = problem.units
    return image.real if units.real.all() else torch.where(per_sample(units.flags, image), image.real, image.abs())
