"""The policy that training begins with, after a check that its parts fit together."""

from __future__ import annotations

from typing import Any

import torch

from ..denoisers import Denoiser
from ..errors import Incompatible, require
from ..policies._card import check_shape
from ..policies._observe import OBSERVATIONS
from ..policies.base import POLICIES
from ..policies.learned import Learned
from ..problems import Problem
from ..reconstruct import check_fit
from ..simulation import simulated
from ..solvers import Solver, build_solver
from ..tasks import Task
from .arguments import PolicyArgs

LARGEST_SAMPLE = 128
"""Height and width of the problems that are looked at first."""


def new_policy(args: PolicyArgs, task: Task, denoiser: Denoiser) -> Learned:
    """An untrained policy; refuses arguments that do not fit."""
    known = ", ".join(OBSERVATIONS)
    require(args.observation in OBSERVATIONS, f"unknown observation {args.observation!r}; known: {known}")
    check_shape(shape_of(args, channels=1))  # what no card may say is not trained either
    if not denoiser.differentiable:
        raise Incompatible(
            f"a policy learns through its denoiser, and {denoiser.name!r} has no gradient: choose another one"
        )
    require(1 in task.channels, f"policies are trained on grey images, and the task {task.name!r} takes none")
    problems = _samples(task, min(args.size, LARGEST_SAMPLE))
    solver = build_solver(args.solver, problems[0].offers)
    check_fit(problems[0], solver)
    kind = POLICIES[args.method]
    if not issubclass(kind, Learned):
        raise Incompatible(f"the policy {args.method!r} has nothing to learn")
    policy = kind(solver, **shape_of(args, _channels(args, solver, problems)))
    policy.physics = tuple(sorted({problem.made_from.__name__ for problem in problems if problem.made_from}))
    return policy


def shape_of(args: PolicyArgs, channels: int) -> dict[str, Any]:
    """What a policy must be built with for its weights to fit; the card keeps it."""
    return {
        "iterations": args.per_decision * args.decisions,
        "per_decision": args.per_decision,
        "width": args.learner.width,
        "observation": args.observation,
        "channels": channels,
    }


def _channels(args: PolicyArgs, solver: Solver, problems: list[Problem]) -> int:
    """The number of planes that the policy sees."""
    for name, plane in zip(solver.images, solver.planes(solver.init(problems[0]), problems[0]), strict=False):
        require(
            plane.ndim == 4,
            f"a policy looks at images, and the {name!r} of {solver.name!r} is none: name its images in `images`",
        )
    observe = OBSERVATIONS[args.observation]
    counts = {observe(problem, solver, solver.init(problem), torch.zeros(1)).shape[1] for problem in problems}
    if len(counts) > 1:
        raise Incompatible(
            f"the observation {args.observation!r} has {min(counts)} to {max(counts)} channels for {args.task!r}, "
            "depending on what is drawn in training: choose another observation"
        )
    return counts.pop()


def _samples(task: Task, size: int) -> list[Problem]:
    """A few problems as they are drawn in training."""
    image = torch.rand(1, 1, size, size, generator=torch.Generator().manual_seed(0))
    draws = [task.draw(1, torch.Generator().manual_seed(seed)) for seed in range(8)]
    return [simulated(task, image, settings, seed) for seed, settings in enumerate(draws)]
