"""What a policy is: it looks at the problem and the solver's state and sets the parameters of the next iterations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from ..denoisers import Denoiser
from ..errors import BadInput, Incompatible, UnknownName, require
from ..problems import Problem
from ..registry import Registry
from ..solvers import Solver
from ..types import Action, one_each


class Policy(ABC):
    """Base of all policies, made for one solver, whose parameters it sets."""

    name: str = "unnamed"
    """What traces and warnings call it; registering sets it."""
    needs_truth: bool = False
    """Whether `fit` must have seen the true images."""
    needs_weights: bool = False
    """Whether it must be trained before use."""
    stops: bool = False
    """Whether it may stop images before the last decision."""
    decisions: int
    """How many decisions it takes at most."""
    network: nn.Module | None = None
    """Its trained network, if it has one."""

    def __init__(self, solver: Solver, iterations: int = 30) -> None:
        require(iterations >= 1, f"a policy takes at least one iteration, got {iterations}")
        self.solver = solver
        self.decisions = iterations

    @abstractmethod
    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The decision number t."""

    def select(self, index: Tensor) -> Policy:  # noqa: ARG002
        """The policy for the images at these positions. One that holds values per image must select them here."""
        return self

    def knows(self, problem: Problem) -> Tensor:
        """Which images (B,) it may be used on; others are left to a schedule."""
        return problem.all_active()

    def refusal(self, problem: Problem) -> str:  # noqa: ARG002
        """Why it does not know some of these images: the end of a sentence."""
        return "does not know them"

    def mismatch(self, denoiser: Denoiser) -> str | None:  # noqa: ARG002
        """Why it cannot be used with this denoiser, if there is a reason."""
        return None

    def fit(self, problem: Problem, denoiser: Denoiser, truth: Tensor) -> None:  # noqa: B027 (nothing to learn by default)
        """Look at the truth. Only policies with `needs_truth` learn from it."""

    def constant(self, problem: Problem, **values: Tensor | float) -> Action:
        """An action of one iteration that sets these parameters, leaves others at their default, and goes on."""
        like = problem.units.peak
        chosen = {n: one_each(values.get(n, limits.default), like, n) for n, limits in self.solver.params.items()}
        return Action({name: value[:, None] for name, value in chosen.items()}, stop=~problem.all_active())


def chosen_values(values: dict[str, Any], index: Tensor) -> dict[str, Any]:
    """Parameters of the images at these positions, where images have their own."""
    own = {name: torch.as_tensor(value).reshape(-1) for name, value in values.items()}
    return {name: value[index] if len(value) > 1 else value for name, value in own.items()}


def known_noise(problem: Problem) -> Tensor:
    """The noise level of each image (B,); refuses problems where it is unknown."""
    if problem.units.sigma_n is None:
        raise Incompatible(
            "the policy follows the noise level, which this physics does not declare and the data do not show: "
            "give it a noise model with a sigma, pass sigma_n, or use policy='fixed'"
        )
    return problem.units.sigma_n


POLICIES: Registry[Policy] = Registry("policy", __package__)


def build_policy(name: str, solver: Solver, **options: Any) -> Policy:
    """The policy of that name for a solver, if a name is enough to make it."""
    kind = POLICIES[name]
    if kind.needs_weights:
        raise BadInput(
            f"the policy {name!r} is trained for a task: use PnPilot.from_pretrained with the name of the task, "
            "or with a folder that `pnpilot train policy` wrote"
        )
    return kind(solver, **options)


def checked_parameters(solver: Solver, values: dict[str, Any]) -> dict[str, Any]:
    """Refuse parameters the solver does not have, and numbers outside their range."""
    for name, value in values.items():
        if name not in solver.params:
            known = ", ".join(solver.params)
            raise UnknownName(f"the solver {solver.name!r} has no parameter {name!r}; it has: {known}")
        limits, numbers = solver.params[name], torch.as_tensor(value)
        # A little over the upper end is rounding.
        if not bool((torch.isfinite(numbers) & (numbers >= limits.low) & (numbers <= 1.001 * limits.high)).all()):
            given = f"{numbers.min():g} to {numbers.max():g}" if numbers.numel() > 1 else f"{numbers.item():g}"
            raise BadInput(f"{name} must be a number from {limits.low:g} to {limits.high:g}, got {given}")
    return values
