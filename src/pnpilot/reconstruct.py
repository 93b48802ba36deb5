"""The loop: measurement → state → policy → action → transition → step."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .denoisers import Denoiser
from .errors import Incompatible
from .policies import Policy
from .prior import bounded, prior
from .problems import Problem
from .solvers import Solver
from .step import Step
from .trace import Trace
from .transition import transition
from .types import Action

SHRINKS_BY = {"cuda": 8}
"""On a GPU a batch shrinks in steps of this many images: convolutions are planned anew for every new shape."""


def rollout(problem: Problem, solver: Solver, denoiser: Denoiser, policy: Policy) -> Iterator[Step]:
    """Yield a Step per decision until every image has stopped; images that stop leave the batch with their state."""
    check_fit(problem, solver)
    everyone = problem
    state = full = solver.init(problem)
    active = problem.all_active()
    iterations = torch.zeros_like(active, dtype=torch.long)
    history = Trace(solver, policy.name, policy.decisions)
    index: Tensor | None = None  # positions of the active images in the whole batch; None: all
    working = len(problem)
    for t in range(policy.decisions):
        action = policy(problem, state, t)
        state = transition(solver, prior(denoiser, problem.units), problem, state, action)
        if index is None:
            full = state
        else:
            full = type(full)(*(_placed(old, index, new) for old, new in zip(full, state, strict=True)))
            action = _whole(action, index, active)
        iterations = iterations + action.iterations * active
        ran, active = active, active & ~action.stop & (t + 1 < policy.decisions)
        history.add(action, ran)
        # This waits for the device, so it is done only for policies that can stop.
        remaining = active.nonzero().flatten() if policy.stops else None
        last = t + 1 == policy.decisions or (remaining is not None and not len(remaining))
        image = everyone.export(bounded(solver.output(full), everyone.units))
        yield Step(t, last, image, full, action, ran, active, iterations, history, everyone)
        if last:
            return
        if remaining is not None and len(remaining) < working:
            working, remaining = len(remaining), _padded(remaining, len(problem))
            there = remaining if index is None else _positions(index, remaining)
            problem, policy = problem.select(there), policy.select(there)
            state, index = type(state)(*(field[there] for field in state)), remaining


def _padded(index: Tensor, room: int) -> Tensor:
    """On a GPU, repeat the first image until the count is a multiple of `SHRINKS_BY`, or `room` is full.

    Stopped images must not be used for this: they would go on.
    """
    missing = min(-len(index) % SHRINKS_BY.get(index.device.type, 1), room - len(index))
    return torch.cat([index, index[:1].expand(missing)])


def _positions(index: Tensor, wanted: Tensor) -> Tensor:
    """Where in `index` the `wanted` values are first found."""
    return (wanted[:, None] == index[None]).int().argmax(1)


def _placed(whole: Tensor, index: Tensor, part: Tensor) -> Tensor:
    # A batch of real images is a real tensor; with an image that has a phase among them, it is complex.
    kind = torch.promote_types(whole.dtype, part.dtype)
    return whole.to(kind).index_copy(0, index, part.to(kind))


def _whole(action: Action, index: Tensor, active: Tensor) -> Action:
    """The action for the whole batch; images that do not take part have zeros in it."""

    def spread(part: Tensor) -> Tensor:
        return _placed(part.new_zeros(len(active), *part.shape[1:]), index, part)

    chance = action.stop_probability
    return Action(
        {name: spread(value) for name, value in action.params.items()},
        spread(action.stop),
        None if chance is None else spread(chance),
    )


def check_fit(problem: Problem, solver: Solver) -> None:
    """Refuse a solver whose needs the problem cannot meet, before the first iteration."""
    missing = solver.needs - problem.offers
    if missing:
        fitting = ", ".join(solver.fitting(problem.offers))
        raise Incompatible(
            f"the solver {solver.name!r} needs {_words(solver.needs)}; this problem ({type(problem).__name__}) "
            f"offers {_words(problem.offers)}. Use solver='auto', or one of: {fitting}"
        )


def _words(names: frozenset[str]) -> str:
    return " and ".join(sorted(names)) or "nothing"
