"""All rooms by name, for code that goes through everything registered."""

from __future__ import annotations

from typing import Any

from .registry import Registry


def rooms() -> dict[str, Registry[Any]]:
    """The registries, each before those that build on it."""
    from .baselines import BASELINES
    from .denoisers import DENOISERS
    from .io.readers import READERS
    from .io.writers import WRITERS
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
        "readers": READERS,
        "writers": WRITERS,
    }
