"""Constant parameters."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from ..problems import Problem
from ..solvers import Solver
from ..types import Action
from .base import POLICIES, Policy, checked_parameters, chosen_values


@POLICIES.register("fixed")
class Fixed(Policy):
    """The same parameters at every iteration; by default those of the paper's fixed policy, σ = 15/255 and μ = 0.1."""

    def __init__(self, solver: Solver, iterations: int = 30, **values: float | Tensor) -> None:
        super().__init__(solver, iterations)
        self.values = checked_parameters(solver, values)

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:  # noqa: ARG002
        """Always the same."""
        return self.constant(problem, **self.values)

    def select(self, index: Tensor) -> Fixed:
        """Values per image follow their images."""
        chosen = copy.copy(self)
        chosen.values = chosen_values(self.values, index)
        return chosen
