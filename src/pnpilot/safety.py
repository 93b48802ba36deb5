"""Images that end far from their data: a schedule takes over where it does better; nothing comes back with NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from .denoisers import Denoiser
from .policies import Policy, build_policy
from .prior import bounded
from .problems import Problem
from .reconstruct import rollout
from .solvers import Solver, build_solver
from .step import Step
from .trace import Trace
from .types import named

SAFE = "schedule"
"""The policy that takes over."""
EXPLAINED = 3.0
"""Distance from the data, in units of their noise, that noise and a smooth prior explain."""
SMALL = 0.1
"""A distance of a tenth of the data is never far: the noise level given may be too low."""
GROWTH = 2.0
"""An image whose distance has grown to more than twice its least diverges, unless the distance is small."""


class Monitor:
    """Follows how far a batch is from its data: after every decision if the policy stops images, else at the end.

    An image is far off if it has NaN or infinities, if it moved away from its data and did not come back, or if it ends
    further from them than their noise and its start explain. Policies made by hand may move away for a while, and end
    further off: their images are far off only if they explain the data worse than both the start and an empty image.
    """

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.problem, self.policy = problem, policy
        self.start = bounded(problem.x0(), problem.units)
        empty = problem.fidelity(torch.zeros_like(problem.x0()))
        self.small = torch.maximum(SMALL * empty, torch.full_like(empty, EXPLAINED))
        self.limit = torch.maximum(problem.fidelity(self.start), self.small if policy.stops else empty)
        self.least = torch.full_like(self.limit, torch.inf)
        self.distance = self.least
        self.far = self.grew = ~problem.all_active()

    def look(self, step: Step) -> None:
        """Take note of a step."""
        if not (self.policy.stops or step.last):
            return
        image = bounded(self.policy.solver.output(step.state), self.problem.units)
        finite = torch.isfinite(image).flatten(1).all(1)
        self.distance = self.problem.fidelity(image).where(finite, torch.inf)
        growing = (self.distance > GROWTH * self.least) & (self.distance > self.small)
        self.grew = self.grew | growing
        near = torch.isfinite(self.distance) & (self.distance <= self.limit)
        self.far = ~near | (self.grew & (self.distance > self.small))
        self.least = torch.fmin(self.least, self.distance)


def repaired(
    last: Step, monitor: Monitor, denoiser: Denoiser, places: Tensor | None = None
) -> tuple[Tensor, list[str]]:
    """The last images in internal units, those far off replaced and marked in the trace; and warnings for the user.

    Images that the policy does not know are replaced, too. `places` are those of the images in the user's batch.
    """
    problem, policy, trace = monitor.problem, monitor.policy, last.history
    places = torch.arange(len(problem)) if places is None else places
    image = bounded(policy.solver.output(last.state), problem.units)
    known = policy.knows(problem)
    if not bool((monitor.far | ~known).any()):
        return image, []
    image = image.to(torch.promote_types(image.dtype, monitor.start.dtype), copy=True)
    messages = _untrained(image, ~known, monitor, trace, denoiser, places)
    return image, messages + _far_off(image, monitor.far & known, monitor, trace, denoiser, places)


def _untrained(
    image: Tensor, unknown: Tensor, monitor: Monitor, trace: Trace, denoiser: Denoiser, places: Tensor
) -> list[str]:
    """Replace images that the policy does not know by what the schedule makes of them, as if they were alone."""
    index = unknown.nonzero().flatten()
    if not len(index):
        return []
    part = monitor.problem.select(index)
    step, again = _by_schedule(part, build_solver("auto", part.offers), denoiser)
    found, messages = repaired(step, again, denoiser, places[index.cpu()])
    image[index] = found.to(image.dtype)
    trace.replace(index.tolist(), step.trace, f"unknown to {monitor.policy.name!r}")
    return messages


def _far_off(
    image: Tensor, far_off: Tensor, monitor: Monitor, trace: Trace, denoiser: Denoiser, places: Tensor
) -> list[str]:
    """Replace images that are far off by the schedule's where those are nearer to the data, and else by their start."""
    problem, policy, distance = monitor.problem, monitor.policy, monitor.distance
    far, messages = far_off.nonzero().flatten(), []
    if len(far) and policy.name != SAFE and problem.units.sigma_n is not None:
        step, again = _by_schedule(problem.select(far), policy.solver, denoiser)
        better = ~again.far & (again.distance < distance[far])
        if bool(better.any()):
            saved = far[better]
            image[saved] = bounded(policy.solver.output(step.state), again.problem.units)[better].to(image.dtype)
            records = [record for record, own in zip(step.trace, better.tolist(), strict=True) if own]
            trace.replace(saved.tolist(), records, f"diverged under {policy.name!r}")
            was, now = distance[saved].max(), again.distance[better].max()
            messages.append(
                f"{named(places[saved.cpu()])} diverged under the policy {policy.name!r}: {SAFE!r} took over, and is "
                f"{now:.3g} instead of {was:.3g} times the noise from the data"
            )
            far = far[~better]
    nearer = problem.fidelity(monitor.start)[far] < distance[far]
    if len(lost := far[nearer]):
        image[lost] = monitor.start[lost].to(image.dtype)
        trace.give_up(lost.tolist())
        messages.append(f"{named(places[lost.cpu()])} diverged: its start is returned instead")
    if len(kept := far[~nearer]):
        messages.append(
            f"{named(places[kept.cpu()])} ended {distance[kept].max():.3g} times the noise from the data, and "
            "nothing else is nearer"
        )
    return messages


def _by_schedule(problem: Problem, solver: Solver, denoiser: Denoiser) -> tuple[Step, Monitor]:
    policy = build_policy(SAFE, solver)
    monitor = Monitor(problem, policy)
    for step in rollout(problem, solver, denoiser, policy):
        monitor.look(step)
    return step, monitor
