"""The environment of the paper: p(s, a), a pure and differentiable function."""

from __future__ import annotations

from typing import Any

from .problems import Problem
from .solvers import Solver
from .types import Action, Denoise


def transition(solver: Solver, denoise: Denoise, problem: Problem, state: Any, action: Action) -> Any:
    """The state after the m iterations whose parameters the action holds; gradients reach all of them."""
    for k in range(action.iterations):
        state = solver.step(state, problem, denoise, **{name: value[:, k] for name, value in action.params.items()})
    return state
