"""A user's file with one thing for each room, as `--with` would load it. `tests/test_plugins.py` runs the contracts."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from deepinv.physics import GaussianNoise, Inpainting, LinearPhysics, Physics
from torch import Tensor

from pnpilot.baselines.base import BASELINES, Baseline
from pnpilot.denoisers.base import DENOISERS, Denoiser
from pnpilot.errors import Incompatible
from pnpilot.policies.base import POLICIES, Policy
from pnpilot.problems import Hints, Problem
from pnpilot.problems.base import PROBLEMS
from pnpilot.problems.linear import LinearProblem
from pnpilot.solvers.base import MU, SIGMA, SOLVERS, Solver
from pnpilot.tasks.base import TASKS, Setting, Task
from pnpilot.types import Action, Denoise


class MissingRows(Inpainting):
    """Some rows of the image were not measured."""


@TASKS.register("own-task")
class Rows(Task):
    """Rows that are missing: a task from a file outside the package."""

    def __init__(self) -> None:
        self.settings = [self.setting(0.5, 5), self.setting(0.7, 5)]

    @staticmethod
    def setting(kept: float = 0.5, sigma: float = 5) -> Setting:
        """Share of rows kept; noise level on the 0-255 scale."""
        return Setting(f"rows={kept:g} sigma={sigma:g}", {"kept": kept, "sigma": sigma})

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> MissingRows:
        """Each row is kept or not."""
        rows = (torch.rand(1, 1, shape[1], 1, generator=generator) < setting["kept"]).float()
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return MissingRows(shape, mask=rows.expand(1, *shape).clone(), noise_model=noise)


@PROBLEMS.register("own-problem")
class RowsProblem(LinearProblem):
    """Missing rows: a start that repeats the nearest row above."""

    physics_type = MissingRows

    @classmethod
    def of(cls, y: Tensor, physics: LinearPhysics, hints: Hints) -> LinearProblem:
        """As any linear problem, from another start."""
        problem = super().of(y, physics, hints)
        filled, measured = problem.start.clone(), problem.physics.mask.expand_as(problem.start) != 0
        for row in range(1, filled.shape[-2]):
            above = filled[..., row - 1, :]
            filled[..., row, :] = torch.where(measured[..., row, :], filled[..., row, :], above)
        problem.start = filled
        return problem


@SOLVERS.register("own-solver")
class Counting(Solver):
    """Half-quadratic splitting that counts its iterations: a state with a field that is no image."""

    reference = "nobody"
    priority = 5
    params = {"sigma": SIGMA, "mu": MU}
    needs = frozenset({"prox"})
    images = ("x", "z")

    class State(NamedTuple):
        """Two images and a number each."""

        x: Tensor
        z: Tensor
        taken: Tensor

    def init(self, problem: Problem) -> State:
        """Nothing counted yet."""
        x = problem.x0()
        return self.State(x, x, torch.zeros(len(problem), device=x.device))

    def step(self, state: State, problem: Problem, denoise: Denoise, *, sigma: Tensor, mu: Tensor) -> State:
        """One more."""
        x = denoise(state.z, sigma)
        return self.State(x, problem.prox(x, mu), state.taken + 1)


@DENOISERS.register("own-denoiser")
class Average(Denoiser):
    """The mean of 3×3 pixels, blended in as the noise grows."""

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Towards the mean of the neighbours."""
        blurred = torch.nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        return (blurred - x) * sigma / (sigma + 0.05)


@POLICIES.register("own-policy")
class Halving(Policy):
    """The denoising strength halves from iteration to iteration."""

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """σ = 0.1 / 2ᵗ."""
        return self.constant(problem, **({"sigma": 0.1 / 2**t} if "sigma" in self.solver.params else {}))


@BASELINES.register("own-baseline")
class Backprojection(Baseline):
    """The pseudo-inverse that deepinv offers."""

    reference = "nobody"
    serves = frozenset({"own-task"})

    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """A†y."""
        if not isinstance(physics, LinearPhysics):
            raise Incompatible(f"own-baseline needs a linear physics, got a {type(physics).__name__}")
        return physics.A_dagger(y)
