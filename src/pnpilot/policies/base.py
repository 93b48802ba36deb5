"""What a policy is: it looks at the problem and the solver's state and sets the parameters of the next iterations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from ..errors import BadInput, UnknownName
from ..problem import Problem
from ..registry import Registry
from ..solvers import Solver
from ..types import Action, Denoise


class Policy(ABC):
    """Base of all policies, made for one solver, whose parameters it sets."""

    name: str
    needs_truth: bool = False
    """Whether `fit` must have seen the true images."""
    stops: bool = False
    """Whether it may stop images before the last decision."""
    decisions: int
    """How many decisions it takes at most."""

    def __init__(self, solver: Solver, iterations: int = 30) -> None:
        self.solver = solver
        self.decisions = iterations

    @abstractmethod
    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The decision number t."""

    def fit(self, problem: Problem, denoise: Denoise, truth: Tensor) -> None:  # noqa: B027 (nothing to learn by default)
        """Look at the truth. Only policies that say so in `needs_truth` have something to learn from it."""

    def constant(self, problem: Problem, **values: Tensor | float) -> Action:
        """An action of one iteration that sets these parameters, leaves others at their default, and goes on."""
        chosen = {name: values.get(name, limits.default) for name, limits in self.solver.params.items()}
        params = {
            name: torch.as_tensor(v, device=problem.y.device).expand(len(problem))[:, None]
            for name, v in chosen.items()
        }
        return Action(params, stop=~problem.all_active())


POLICIES: Registry[Policy] = Registry("policy", __package__)


def build_policy(name: str, solver: Solver, **options: Any) -> Policy:
    """The policy of that name for a solver."""
    return POLICIES[name](solver, **options)


def checked_parameters(solver: Solver, values: dict[str, Any]) -> dict[str, Any]:
    """Refuse parameters the solver does not have, and numbers outside their range."""
    for name, value in values.items():
        if name not in solver.params:
            known = ", ".join(solver.params)
            raise UnknownName(f"the solver {solver.name!r} has no parameter {name!r}; it has: {known}")
        limits, numbers = solver.params[name], torch.as_tensor(value)
        if not bool((torch.isfinite(numbers) & (numbers >= limits.low)).all()):
            raise BadInput(f"{name} must be a number of at least {limits.low:g}, got {value}")
    return values
