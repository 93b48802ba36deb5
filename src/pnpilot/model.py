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
from .problems import Hints, Problem, open_problem
from .reconstruct import check_fit, rollout
from .safety import SAFE, Monitor, repaired
from .solvers import Solver, build_solver
from .step import Step
from .types import named, parts_of

HINTS = frozenset(field.name for field in dataclasses.fields(Hints))


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
    `solver="auto"` is ADMM. `policy` is a name or a Policy made for a solver. `peak`, `sigma_n` and `real` are hints
    about the images, worked out when not given; `gain`, a number or "estimate", outranks that of Poisson noise.
    """

    def __init__(
        self,
        denoiser: str | Denoiser | torch.nn.Module = "compact",
        solver: str = "auto",
        policy: str | Policy = SAFE,
        *,
        weights: str | Path | None = None,
        peak: float | None = None,
        sigma_n: float | Tensor | Literal["estimate"] | None = None,
        real: bool | None = None,
        gain: float | Tensor | Literal["estimate"] | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if not isinstance(denoiser, str | torch.nn.Module):
            raise BadInput(f"the denoiser must be a name or a module, got a {type(denoiser).__name__}")
        if not isinstance(solver, str) or not isinstance(policy, str | Policy):
            raise BadInput("the solver must be a name, and the policy a name or a Policy object")
        if not (weights is None or isinstance(weights, str | Path)):
            raise BadInput(f"weights must name a folder, got {weights!r}")
        if weights is not None and not isinstance(denoiser, str):
            raise BadInput("weights are for a denoiser given by its name; this one is given with its weights")
        if isinstance(denoiser, str):
            denoiser = build_denoiser(denoiser, weights=weights)
        self.denoiser = denoiser if isinstance(denoiser, Denoiser) else DeepinvDenoiser(denoiser)
        self.hints = Hints(peak, sigma_n, real, gain)
        self.policy = policy
        self.solver = solver
        if isinstance(policy, Policy) and solver not in ("auto", policy.solver.name):
            raise Incompatible(f"the policy was made for the solver {policy.solver.name!r}, not for {solver!r}")
        if isinstance(policy, Policy) and (mismatch := policy.mismatch(self.denoiser)):
            raise Incompatible(mismatch)
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
        the policy was trained with other weights than those that ship.
        """
        if not isinstance(name, str | Path) or not isinstance(solver, str):
            raise BadInput(f"from_pretrained takes the name of a task or a folder, and of a solver, got {name!r}")
        policy = Learned.find(name, solver)
        return cls(policy.denoiser if denoiser is None else denoiser, policy=policy, **options)

    def forward(self, y: Tensor, physics: Physics, **others: Any) -> Tensor:
        """The image."""
        if told := sorted(others.keys() & HINTS):
            raise BadInput(f"{', '.join(told)}: hints are given to the model, as in PnPilot({told[0]}=…)(y, physics)")
        result = self.reconstruct(y, physics)
        _warn(result.warnings)
        return result.image

    @torch.no_grad()
    def steps(self, y: Tensor, physics: Physics) -> Iterator[Step]:
        """Every decision as it is taken, with the image so far.

        The last image is the one that calling the model gives. Of images that diverged, only that last image is from
        the run that took over. Warnings are in the last step; nothing is printed.
        """
        problem, solver, policy, notes = self._plan(y, physics)
        monitor = Monitor(problem, policy)
        for step in rollout(problem, solver, self.denoiser, policy):
            monitor.look(step)
            if step.last:
                image, more = repaired(step, monitor, self.denoiser)
                step = dataclasses.replace(step, image=problem.export(image), warnings=(*notes, *more))
            yield step

    def reconstruct(self, y: Tensor, physics: Physics) -> Reconstruction:
        """The image with its trace and warnings."""
        *_, step = self.steps(y, physics)
        return Reconstruction(step.image, step.trace, list(step.warnings))

    def _plan(self, y: Tensor, physics: Physics) -> tuple[Problem, Solver, Policy, list[str]]:
        device = next((parameter.device for parameter in self.denoiser.parameters()), None)
        tensors = [part for part in parts_of(y) if isinstance(part, Tensor)]
        elsewhere = [part.device for part in tensors if device is not None and part.device != device]
        if elsewhere:
            raise BadInput(f"the data are on {elsewhere[0]}, the model on {device}: move one with .to()")
        problem = open_problem(y, physics, self.hints)
        notes = list(problem.notes)
        if any(part.requires_grad for part in tensors):
            notes.append("the data require gradients, and reconstruction passes none on: use y.detach() to say so")
        solver, policy = self._plan_for(problem.offers)
        known = policy.knows(problem)
        if not bool(known.all()):
            safe = build_solver("auto", problem.offers)
            images = "" if not bool(known.any()) else f" for {named(~known)}"
            notes.append(
                f"the policy {policy.refusal(problem)}: {SAFE!r} with the solver {safe.name!r} is used instead{images}"
            )
            if not images:
                solver, policy = safe, build_policy(SAFE, safe)
        check_fit(problem, solver)
        return problem, solver, policy, notes

    def _plan_for(self, offers: frozenset[str]) -> tuple[Solver, Policy]:
        if isinstance(self.policy, Policy):
            return self.policy.solver, self.policy
        solver = build_solver(self.solver, offers)
        return solver, build_policy(self.policy, solver)


def _warn(messages: list[str]) -> None:
    for message in messages:
        warnings.warn(message, stacklevel=3)
