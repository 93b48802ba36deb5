"""What a solver is: named state, declared parameters, and one step written as the equations it stands for.

Parameters reach `step` as tensors (B,): every image has its own, and they change from iteration to iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..problems import Problem
from ..registry import Registry
from ..types import Denoise, Range, per_sample

SIGMA = Range(0.0, 70 / 255, 15 / 255, unit=1 / 255, symbol="σ × 255", search=(3 / 255, 70 / 255))
"""Denoising strength; the denoiser is trained up to 70 on the 0-255 scale."""
MU = Range(1e-4, 1.0, 0.1, symbol="μ", search=(1e-3, 1.0))
"""Penalty. Zero would leave what the data do not see undefined."""
MEMORY = Range(0.0, 1.0, 1.0, symbol="ρ", learned=False)
"""How much of the multiplier is kept from one iteration to the next: all of it in the paper."""
TAU = Range(0.0, 2.0, 1.0, symbol="τ", search=(0.1, 2.0))
"""Step size of a gradient step. Operators have norm one: up to 2 is stable, with a penalty up to 2/(1 + μ)."""


class Solver(ABC):
    """Base of all solvers; pure functions of the state they are handed."""

    name: str
    reference: str = ""
    """Who published it, and where."""
    params: dict[str, Range]
    """What policies set, by name."""
    needs: frozenset[str]
    """What it asks of a problem: "prox", "grad", "linear"."""
    priority: int = 100
    """Where several would do, the one with the lowest number is taken."""
    State: Any
    """The named tuple of its variables."""
    images: tuple[str, ...] = ()
    """Which of its variables `planes` shows; all of them by default."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not cls.images and hasattr(cls, "State"):
            cls.images = cls.State._fields

    @abstractmethod
    def init(self, problem: Problem) -> Any:
        """The state before the first iteration, a named tuple of tensors."""

    @abstractmethod
    def step(self, state: Any, problem: Problem, denoise: Denoise, *_: Any, **params: Any) -> Any:
        """One iteration; each declared parameter arrives by name as a tensor (B,)."""

    def output(self, state: Any) -> Tensor:
        """The image in a state: x unless a solver says otherwise."""
        return state.x

    def planes(self, state: Any, problem: Problem) -> list[Tensor]:  # noqa: ARG002
        """The state as images, for a policy to look at: those of its variables that `images` names, in this order."""
        return [getattr(state, name) for name in self.images]

    @staticmethod
    def fitting(offers: frozenset[str]) -> list[str]:
        """Names of the solvers that need no more than a problem offers, the preferred ones first."""
        return sorted((n for n in SOLVERS if SOLVERS[n].needs <= offers), key=lambda name: SOLVERS[name].priority)


class Split(NamedTuple):
    """State of the ADMM family: regularised image, data-consistent image, scaled multiplier."""

    x: Tensor
    z: Tensor
    u: Tensor


class SplitSolver(Solver):
    """Base of the ADMM family."""

    State = Split

    def init(self, problem: Problem) -> Split:
        """x = z = x₀, u = 0."""
        x = problem.x0()
        return Split(x, x, torch.zeros_like(x))


SOLVERS: Registry[Solver] = Registry("solver", __package__)


def build_solver(name: str, offers: frozenset[str] = frozenset({"prox"})) -> Solver:
    """The solver of that name; "auto" is the preferred one among those that fit: ADMM where there is a prox."""
    return SOLVERS[Solver.fitting(offers)[0] if name == "auto" else name]()


@lru_cache(maxsize=8)
def noise_pattern(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """White noise (1, *shape), always the same: to probe an operator or a denoiser with."""
    with torch.inference_mode(False):  # it outlives this call, which may be in inference mode
        return torch.randn(1, *shape, generator=torch.Generator().manual_seed(0)).to(device)


def scale(values: Tensor, image: Tensor) -> Tensor:
    """values (B,) · image (B, ...)."""
    return per_sample(values, image) * image
