"""Images that end far from their data: a schedule takes over where it does better; nothing comes back with NaN."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import Tensor

from .denoisers import Denoiser
from .guess import doubtful, objection
from .policies import Policy, build_policy
from .policies.schedules import patient
from .prior import bounded
from .problems import Problem
from .reconstruct import rollout
from .solvers import build_solver
from .step import Step
from .trace import Trace
from .types import named

SAFE = "schedule"
"""The policy that takes over."""
EXPLAINED = 2.0
"""Distance from the data, in units of their noise, that noise and a smooth prior explain."""
SMALL = 0.05
"""A distance of a twentieth of the data is never far: the noise level given may be too low."""
GROWTH = 2.0
"""An image whose distance has grown to more than twice its least diverges, unless the distance is small."""
DOUBTED, FAR_UNDER, FINE_DETAIL = 5.0, 10, 3 / 255
"""A noise level is doubted if an image ends so many times as far from its data, and these show so many times as much
noise, and more than fine detail may be taken for."""
UNDER, WIDE, BLURRED = 1.4, 0.1, 0.9
"""Neighbours in data behind a full blur, which keeps no more than this share of white noise, differ by their noise
alone, and less is enough to doubt a noise level."""
STILL = 0.1
"""An image that differs from its start by less than a tenth of the noise has hardly moved."""
LESS = 0.5
"""A guess was wrong if without it the objections of the data fall to this share."""


class Monitor:
    """Follows how far a batch is from its data: after every decision if the policy stops images, else at the end.

    An image is far off if it has NaN or infinities, if it moved away from its data and did not come back, or if it ends
    further from them than their noise explains. Policies made by hand may move away for a while, and end further off:
    their images are far off only if they explain the data worse than both the start and an empty image.
    """

    def __init__(self, problem: Problem, policy: Policy) -> None:
        self.problem, self.policy = problem, policy
        self.start = bounded(problem.x0(), problem.units)
        self.empty = problem.fidelity(torch.zeros_like(problem.x0()))
        self.small = torch.maximum(SMALL * self.empty, torch.full_like(self.empty, EXPLAINED))
        self.limit = self.small if policy.stops else torch.maximum(problem.fidelity(self.start), self.empty)
        self.least = torch.full_like(self.limit, torch.inf)
        self.distance = self.least
        self.far = self.grew = self.still = ~problem.all_active()

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
        self.still = self.moved(image) < STILL
        self.least = torch.fmin(self.least, self.distance)

    def moved(self, image: Tensor) -> Tensor:
        """How far images (B, ...) are from their start, in units of the noise (B,)."""
        change = (image - self.start).abs().square().flatten(1).mean(1).sqrt()
        return change / self.problem.noise_unit()


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
    suspects = known & doubtful(problem, image)
    failed = known & (monitor.far | monitor.still & policy.stops)
    if not bool((failed | suspects | ~known).any()):
        return image, _doubts(image, monitor, known, places)
    # An image that was guessed to be real may turn out to have a phase.
    room = problem.x0() if problem.units.guessed else monitor.start
    image = image.to(torch.promote_types(image.dtype, room.dtype), copy=True)
    messages = _untrained(image, ~known, monitor, trace, denoiser, places)
    settled, more = _misjudged(image, suspects, monitor, trace, denoiser, places)
    messages += [*more, *_far_off(image, failed & ~settled, monitor, trace, denoiser, places)]
    return image, messages + _doubts(image, monitor, known, places)


def _untrained(
    image: Tensor, unknown: Tensor, monitor: Monitor, trace: Trace, denoiser: Denoiser, places: Tensor
) -> list[str]:
    """Replace images that the policy does not know by what the schedule makes of them, as if they were alone."""
    index = unknown.nonzero().flatten()
    if not len(index):
        return []
    part = monitor.problem.select(index)
    step, again = _by_schedule(part, denoiser)
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
        step, again = _by_schedule(problem.select(far), denoiser)
        # A start may fit its data whatever was measured: next to one, it is enough that noise explains the rest.
        nearer = (again.distance < distance[far]) | (monitor.still[far] & (again.distance <= again.small))
        better = ~again.far & nearer
        if bool(better.any()):
            saved = far[better]
            image[saved] = bounded(again.policy.solver.output(step.state), again.problem.units)[better].to(image.dtype)
            records = [record for record, own in zip(step.trace, better.tolist(), strict=True) if own]
            trace.replace(saved.tolist(), records, f"failed under {policy.name!r}")
            was, now = distance[saved].max(), again.distance[better].max()
            messages.append(
                f"{named(places[saved.cpu()])} failed under the policy {policy.name!r}: {SAFE!r} took over, and is "
                f"{now:.3g} instead of {was:.3g} times the noise from the data"
            )
            far = far[~better]
    lost = far[~monitor.still[far] & (problem.fidelity(monitor.start)[far] < distance[far])]
    if len(lost):
        image[lost] = monitor.start[lost].to(image.dtype)
        trace.give_up(lost.tolist())
        messages.append(f"{named(places[lost.cpu()])} diverged: its start is returned instead")
    return messages


def _misjudged(
    image: Tensor, suspects: Tensor, monitor: Monitor, trace: Trace, denoiser: Denoiser, places: Tensor
) -> tuple[Tensor, list[str]]:
    """Replace images that only the guess keeps from their data by what the schedule makes of them without it."""
    index, settled = suspects.nonzero().flatten(), torch.zeros_like(suspects)
    if not len(index):
        return settled, []
    guessed, own = monitor.problem.select(index), image[index]
    if monitor.policy.name != SAFE or torch.as_tensor(guessed.blurred).any():
        # It may be the policy that keeps them away, or a multiplier that forgets.
        step, again = _by_schedule(guessed, denoiser, patiently=True)
        own = bounded(again.policy.solver.output(step.state), guessed.units)
        if not bool(doubtful(guessed, own).any()):
            return settled, []
    free = copy.copy(guessed)
    free.units = replace(free.units, real=torch.zeros_like(free.units.real))
    step, again = _by_schedule(free, denoiser, patiently=True)
    found = again.policy.solver.output(step.state)
    before, after = (torch.stack([guessed.fidelity(x), objection(guessed, x)]) for x in (own, found))
    better = doubtful(guessed, own) & (after[0] <= before[0]) & (after[1] <= LESS * before[1])
    if not bool(better.any()):
        return settled, []
    wrong = index[better]
    settled[wrong] = True
    image[wrong] = found[better].to(image.dtype)
    records = [record for record, own in zip(step.trace, better.tolist(), strict=True) if own]
    trace.replace(wrong.tolist(), records, "not real and non-negative")
    return settled, [
        f"{named(places[wrong.cpu()])} looked real and non-negative, and no such image explains the data: {SAFE!r} "
        "took over without that assumption; real=True or real=False decides"
    ]


def _doubts(image: Tensor, monitor: Monitor, known: Tensor, places: Tensor) -> list[str]:
    """Warnings for images that come back further from their data than noise explains, or as they started."""
    problem = monitor.problem
    distance, moved = problem.fidelity(image), monitor.moved(image)
    messages = []
    if bool((off := known & ~(distance <= monitor.small)).any()):
        share = 100 * (distance / monitor.empty)[off].max()
        messages.append(
            f"{named(places[off.cpu()])} ended {distance[off].max():.3g} times the noise from the data, or {share:.0f} "
            "% of them: look at operator, mask, coil maps and noise level, which do not explain the data together"
        )
    if bool((low := known & ((distance > DOUBTED) & _under(problem, FAR_UNDER) | _under_a_blur(problem))).any()):
        assert problem.units.sigma_n is not None and problem.units.shown is not None
        times = (problem.units.shown / problem.units.sigma_n)[low].max()
        messages.append(
            f"the data of {named(places[low.cpu()])} show {times:.3g} times the noise that was declared: is it in the "
            "units of the data? sigma_n='estimate' takes what they show"
        )
    if bool((still := known & monitor.still & (moved < STILL)).any()):
        messages.append(
            f"{named(places[still.cpu()])} hardly moved from the start: by {moved[still].min():.2g} times the noise"
        )
    return messages


def _under_a_blur(problem: Problem) -> Tensor:
    """Where data that are sure to show their noise show more than is said (B,)."""
    full = torch.as_tensor(problem.blurred, device=problem.y.device) > BLURRED
    return full & (problem.kept < WIDE) & _under(problem, UNDER)


def _under(problem: Problem, times: float) -> Tensor:
    """Where the data show so many times the noise level that is said, and more than fine detail (B,)."""
    said, shown = problem.units.sigma_n, problem.units.shown
    if said is None or shown is None:
        return ~problem.all_active()
    return (said > 0) & (shown > times * said) & (shown > FINE_DETAIL)


def _by_schedule(problem: Problem, denoiser: Denoiser, *, patiently: bool = False) -> tuple[Step, Monitor]:
    solver = build_solver("auto", problem.offers)
    policy = patient(solver) if patiently else build_policy(SAFE, solver)
    monitor = Monitor(problem, policy)
    for step in rollout(problem, solver, denoiser, policy):
        monitor.look(step)
    return step, monitor
