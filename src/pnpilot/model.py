"""PnPilot: the whole thing behind one call, as a deepinv Reconstructor."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from deepinv.models import Reconstructor
from deepinv.physics import Physics
from torch import Tensor

from .denoisers import Denoiser, build_denoiser
from .denoisers.deepinv import DeepinvDenoiser
from .errors import BadInput, Incompatible, first_line
from .policies import Policy, build_policy
from .policies.learned import Learned
from .problem import Hints, Problem
from .reconstruct import check_fit, rollout
from .safety import Watch, repaired
from .solvers import Solver, build_solver
from .tasks import open_problem
from .trace import Trace
from .types import Step


@dataclasses.dataclass(frozen=True)
class Reconstruction:
    """An image, how it came about, and what a user should know."""

    image: Tensor = dataclasses.field(repr=False)
    """In the layout of the physics: MR images have two channels, real and imaginary part."""
    trace: list[dict[str, Any]] = dataclasses.field(repr=False)
    """One JSON-able record per image: parameters at every iteration, and why it stopped."""
    warnings: list[str]


class PnPilot(Reconstructor):
    """Plug-and-play reconstruction from deepinv data and physics.

    `denoiser` is a name, one of ours, or any deepinv denoiser; `weights` a folder that `pnpilot train denoiser` wrote.
    `solver="auto"` takes ADMM where the data step has a closed form and inexact ADMM otherwise. `policy` is a name or a
    Policy made for a solver. `peak`, `sigma_n` and `real` are hints about the images, found out when not given.
    """

    def __init__(
        self,
        denoiser: str | Denoiser | torch.nn.Module = "compact",
        solver: str = "auto",
        policy: str | Policy = "schedule",
        *,
        weights: str | Path | None = None,
        peak: float | None = None,
        sigma_n: float | Tensor | Literal["estimate"] | None = None,
        real: bool | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if not isinstance(denoiser, str | torch.nn.Module):
            raise BadInput(f"the denoiser must be a name or a module, got a {type(denoiser).__name__}")
        if not isinstance(solver, str) or not isinstance(policy, str | Policy):
            raise BadInput("the solver must be a name, and the policy a name or a Policy object")
        if isinstance(denoiser, str):
            denoiser = build_denoiser(denoiser, weights=weights)
        self.denoiser = denoiser if isinstance(denoiser, Denoiser) else DeepinvDenoiser(denoiser)
        self.hints = Hints(peak, sigma_n, real)
        self.policy = policy
        self.solver = solver
        if isinstance(policy, Policy) and solver not in ("auto", policy.solver.name):
            raise Incompatible(f"the policy was made for the solver {policy.solver.name!r}, not for {solver!r}")
        if isinstance(policy, Learned) and (objection := policy.objection(self.denoiser)):
            raise Incompatible(objection)
        self.network = policy.network if isinstance(policy, Policy) else None  # so that it moves with the model
        self._plan_for(frozenset({"prox", "grad", "linear"}))  # unknown names fail here, not at the first image
        try:
            self.to(device)
        except (RuntimeError, AssertionError) as error:
            raise BadInput(f"the device {device!r} cannot be used: {first_line(error)}") from error

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path,
        solver: str = "auto",
        denoiser: str | Denoiser | torch.nn.Module | None = None,
        **options: Any,
    ) -> PnPilot:
        """A model with a learned policy: nothing to set.

        `name` is a task ("csmri", "phase"), or a folder that `pnpilot train policy` wrote; `solver` chooses among
        several policies for a task. The denoiser is the one that the policy was trained with; any other is refused.
        Other options are those of the class: the device, hints about the images, and the weights of the denoiser if
        the policy was trained with other ones than the shipped.
        """
        policy = Learned.find(name, solver)
        return cls(policy.denoiser if denoiser is None else denoiser, policy=policy, **options)

    def forward(self, y: Tensor, physics: Physics, **_: Any) -> Tensor:
        """The image."""
        result = self.reconstruct(y, physics)
        _warn(result.warnings)
        return result.image

    @torch.no_grad()
    def steps(self, y: Tensor, physics: Physics) -> Iterator[Step]:
        """Every decision as it is taken, with the image so far in the layout of the physics.

        The last image is the one that calling the model gives; those before it are as the solver has them. Of images
        that diverged, only that last image is from the run that took over.
        """
        for step, _, messages in self._run(y, physics):
            _warn(messages)
            yield step

    @torch.no_grad()
    def reconstruct(self, y: Tensor, physics: Physics) -> Reconstruction:
        """The image with its trace and warnings."""
        *_, (step, trace, messages) = self._run(y, physics)
        return Reconstruction(step.image, trace.records(), messages)

    def _run(self, y: Tensor, physics: Physics) -> Iterator[tuple[Step, Trace, list[str]]]:
        problem, solver, policy = self._plan(y, physics)
        trace, watch = Trace(solver, policy.name), Watch(problem)
        for t, step in enumerate(rollout(problem, solver, self.denoiser, policy)):
            trace.add(step)
            last = t + 1 == policy.decisions or (policy.stops and not bool(step.active.any()))
            if policy.stops or last:
                watch.look(step)
            image, messages = step.image, list[str]()
            if last:
                image, messages = repaired(image, watch, solver, self.denoiser, policy, trace)
            yield dataclasses.replace(step, image=problem.export(image)), trace, messages

    def _plan(self, y: Tensor, physics: Physics) -> tuple[Problem, Solver, Policy]:
        device = next((parameter.device for parameter in self.denoiser.parameters()), None)
        if device is not None and isinstance(y, Tensor) and y.device != device:
            raise BadInput(f"the data are on {y.device}, the model on {device}: move one with .to()")
        problem = open_problem(y, physics, self.hints)
        solver, policy = self._plan_for(problem.offers)
        check_fit(problem, solver)
        return problem, solver, policy

    def _plan_for(self, offers: frozenset[str]) -> tuple[Solver, Policy]:
        if isinstance(self.policy, Policy):
            return self.policy.solver, self.policy
        solver = build_solver(self.solver, offers)
        return solver, build_policy(self.policy, solver)


def _warn(messages: list[str]) -> None:
    for message in messages:
        warnings.warn(message, stacklevel=3)
