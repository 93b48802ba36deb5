"""All rooms by their names: for whatever goes through everything that is registered."""

from __future__ import annotations

from typing import Any

from .registry import Registry


def rooms() -> dict[str, Registry[Any]]:
    """The registries, in the order in which they feed each other."""
    from .baselines import BASELINES
    from .denoisers import DENOISERS
    from .policies import POLICIES
    from .problems import PROBLEMS
    from .solvers import SOLVERS
    from .tasks import TASKS

    return {
        "problems": PROBLEMS,
        "tasks": TASKS,
        "solvers": SOLVERS,
        "denoisers": DENOISERS,
        "policies": POLICIES,
        "baselines": BASELINES,
    }
