"""Images that diverge: a schedule takes over, and if that diverges too, they come back as they started."""

from __future__ import annotations

import torch
from torch import Tensor

from .denoisers import Denoiser
from .policies import Policy, build_policy
from .problem import Problem
from .reconstruct import rollout
from .solvers import Solver
from .trace import Trace
from .types import Step

SAFE = "schedule"
"""The policy that takes over."""
GROWTH, SMALL = 2.0, 0.1
"""A misfit that has grown to more than twice the least so far diverges, unless it is under a tenth of the data."""


class Watch:
    """Follows how well a batch explains its data: decision by decision, if a policy stops images, or at the end.

    Hand-made policies may well move away from the data for a while. Broken is an image with NaN or infinities, one
    whose misfit grows, and one that explains the data worse than both its start and an empty image.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.limit = problem.misfit(problem.image(problem.x0())).clamp_min(1.0)
        self.least = torch.full_like(self.limit, torch.inf)
        self.broken = ~problem.all_active()

    def look(self, step: Step) -> None:
        """Take note of a step."""
        misfit = self.problem.misfit(step.image)
        finite = torch.isfinite(step.image).flatten(1).all(1)
        growing = (misfit > GROWTH * self.least) & (misfit > SMALL)
        self.broken = self.broken | ~finite | ~(misfit <= self.limit) | growing
        self.least = torch.fmin(self.least, misfit)


def repaired(
    image: Tensor, watch: Watch, solver: Solver, denoiser: Denoiser, policy: Policy, trace: Trace
) -> tuple[Tensor, list[str]]:
    """The images of a batch, those that broke replaced and marked in the trace; and what to tell the user."""
    if not bool(watch.broken.any()):
        return image, []
    problem, broken = watch.problem, watch.broken.nonzero().flatten()
    start = problem.image(problem.x0())
    image, messages = image.to(torch.promote_types(image.dtype, start.dtype), copy=True), []
    if policy.name != SAFE and problem.units.sigma_n is not None:
        part, safe = problem.select(broken), build_policy(SAFE, solver)
        again, again_trace = Watch(part), Trace(solver, safe.name)
        for step in rollout(part, solver, denoiser, safe):
            again_trace.add(step)
        again.look(step)
        saved = ~again.broken
        image[broken[saved]] = step.image[saved].to(image.dtype)
        trace.replace(broken.tolist(), again_trace, f"diverged under {policy.name!r}")
        if bool(saved.any()):
            names = _names(broken[saved])
            messages.append(f"{names} diverged under the policy {policy.name!r}: the policy {SAFE!r} took over")
        broken = broken[~saved]
    if len(broken):
        image[broken] = start[broken].to(image.dtype)
        trace.give_up(broken.tolist())
        messages.append(f"{_names(broken)} diverged: its start is returned instead")
    return image, messages


def _names(index: Tensor) -> str:
    return f"image {', '.join(map(str, index.tolist()))}"
