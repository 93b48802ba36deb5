"""FASTA: forward-backward splitting with adaptive steps. Each image has its own step and stops by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..types import per_sample

MEMORY = 10
"""A step is accepted if it ends below the highest of this many values before it."""
SHRINK, TRIES = 0.2, 20
"""A step that is not accepted is multiplied by SHRINK, at most TRIES times."""


class Objective(NamedTuple):
    """f + g: f smooth, g with a proximal operator."""

    value: Callable[[Tensor], Tensor]
    """f(x), (B,)."""
    gradient: Callable[[Tensor], Tensor]
    """∇f(x)."""
    prox: Callable[[Tensor, Tensor], Tensor]
    """The proximal operator of g at v with steps (B,)."""


class Found(NamedTuple):
    """The result of a minimisation."""

    x: Tensor
    """For each image, the iterate with the smallest residual."""
    iterations: Tensor
    """How many each image took (B,)."""


def fasta(objective: Objective, x: Tensor, iterations: int, tolerance: float) -> Found:
    """Minimise from x (B, ...). An image stops when the gradients of f and g cancel up to the relative tolerance."""
    step = 0.2 / _curvature(objective, x)
    gradient = objective.gradient(x)
    history = objective.value(x)[None]
    best, least = x, torch.full_like(step, torch.inf)
    running = torch.ones_like(step, dtype=torch.bool)
    taken = torch.zeros_like(step, dtype=torch.long)
    for _ in range(iterations):
        forward, new, value, step = _accepted(objective, x, gradient, step, history.amax(0), running)
        moved = new - x
        residual = _norm(moved) / step
        scale = torch.maximum(_norm(gradient), _norm(new - forward) / step)
        slope = objective.gradient(new)
        step_next = _next_step(moved, slope + per_sample(1 / step, x) * (forward - x), step)
        better = running & (residual < least)
        best, least = _where(better, new, best), torch.where(better, residual, least)
        x, gradient = _where(running, new, x), _where(running, slope, gradient)
        step = torch.where(running, step_next, step)
        history = torch.cat([history, torch.where(running, value, history[-1])[None]])[-MEMORY:]
        taken = taken + running
        running = running & (residual > tolerance * scale)
        if not running.any():
            break
    return Found(best, taken)


def _accepted(
    objective: Objective, x: Tensor, gradient: Tensor, step: Tensor, highest: Tensor, running: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One step for every image, shortened until accepted: after f alone, after f and g, its value, its length."""
    for attempt in range(TRIES + 1):
        forward = x - per_sample(step, x) * gradient
        new = objective.prox(forward, step)
        moved, value = new - x, objective.value(new)
        bound = highest + _inner(moved, gradient) + _inner(moved, moved) / (2 * step)
        too_long = running & ~(value <= bound + 1e-6 * bound.abs())
        if attempt == TRIES or not too_long.any():
            break
        step = torch.where(too_long, SHRINK * step, step)
    return forward, new, value, step


def _next_step(moved: Tensor, bend: Tensor, step: Tensor) -> Tensor:
    """The adaptive Barzilai-Borwein step, or 1.5 times the last step where that is no positive number."""
    along = _inner(moved, bend)
    long, short = _inner(moved, moved) / along, along / _inner(bend, bend)
    chosen = torch.where(2 * short > long, short, long - short / 2)
    return torch.where(torch.isfinite(chosen) & (chosen > 0), chosen, 1.5 * step)


def _curvature(objective: Objective, x: Tensor) -> Tensor:
    """Change of the gradient between two random points, divided by their distance (B,)."""
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randn(x.shape[1:], generator=generator).to(x).expand_as(x) for _ in range(2))
    change = objective.gradient(one) - objective.gradient(other)
    return (_norm(change) / _norm(one - other)).clamp_min(1e-12)


def _where(chosen: Tensor, one: Tensor, other: Tensor) -> Tensor:
    return torch.where(per_sample(chosen, one), one, other)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    return (a.conj() * b).real.flatten(1).sum(1)


def _norm(a: Tensor) -> Tensor:
    return a.flatten(1).norm(dim=1)
