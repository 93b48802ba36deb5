"""The loop: measurement → state → policy → action → transition → step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .errors import Incompatible
from .policies import Policy
from .problem import Problem
from .solvers import Solver
from .transition import transition
from .types import Denoise, Step, per_sample


def rollout(problem: Problem, solver: Solver, denoise: Denoise, policy: Policy) -> Iterator[Step]:
    """Yield a Step per decision until every image has stopped; images that stop keep their state."""
    check_fit(problem, solver)
    state = solver.init(problem)
    active = problem.all_active()
    iterations = torch.zeros_like(active, dtype=torch.long)
    for t in range(policy.decisions):
        action = policy(problem, state, t)
        moved = transition(solver, denoise, problem, state, action)
        state = _keep_stopped(active, moved, state) if policy.stops and t > 0 else moved
        iterations = iterations + action.iterations * active
        ran, active = active, active & ~action.stop & (t + 1 < policy.decisions)
        yield Step(problem.image(solver.output(state)), state, action, ran, active, iterations)
        # Only a policy that can stop needs the look at the device that this costs.
        if policy.stops and not bool(active.any()):
            return


def _keep_stopped(active: Tensor, moved: Any, state: Any) -> Any:
    pairs = zip(moved, state, strict=True)
    return type(state)(*(torch.where(per_sample(active, new), new, old) for new, old in pairs))


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
