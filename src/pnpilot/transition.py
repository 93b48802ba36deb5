"""The environment of the paper: p(s, a), a pure and differentiable function, and the reward of a move."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .metrics import psnr
from .problem import Problem
from .solvers import Solver
from .types import Action, Denoise


def transition(solver: Solver, denoise: Denoise, problem: Problem, state: Any, action: Action) -> Any:
    """The state after the m iterations whose parameters the action holds; gradients reach all of them."""
    for k in range(action.iterations):
        state = solver.step(state, problem, denoise, **{name: value[:, k] for name, value in action.params.items()})
    return state


def reward(before: Tensor, after: Tensor, truth: Tensor, penalty: float = 0.05) -> Tensor:
    """PSNR gained by one decision, less the price of taking it, per image (B,)."""
    return psnr(after, truth) - psnr(before, truth) - penalty
