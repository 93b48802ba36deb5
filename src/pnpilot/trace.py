"""What was chosen, iteration by iteration, as plain data."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from .solvers import Solver
from .types import Action, Step


class Trace:
    """Collects Steps and turns them into one JSON-able record per image."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self._decisions: list[tuple[Action, Tensor]] = []

    def add(self, step: Step) -> None:
        """Keep the decision, not the images."""
        self._decisions.append((step.action, step.ran))

    def records(self) -> list[dict[str, Any]]:
        """Parameters at every iteration an image took, how many, and why it stopped."""
        decisions = [(action, ran.tolist()) for action, ran in self._decisions]
        values = [{name: value.tolist() for name, value in action.params.items()} for action, _ in decisions]
        chances = [
            action.stop_probability.tolist() if action.stop_probability is not None else None for action, _ in decisions
        ]
        stops = [action.stop.tolist() for action, _ in decisions]
        records = []
        for image in range(len(decisions[0][1])):
            mine = [t for t, (_, ran) in enumerate(decisions) if ran[image]]
            chosen = {name: [v for t in mine for v in values[t][name][image]] for name in self.solver.params}
            records.append(
                {
                    "solver": self.solver.name,
                    "iterations": sum(decisions[t][0].iterations for t in mine),
                    "stopped": "by the policy" if stops[mine[-1]][image] else "at the last iteration",
                    "parameters": chosen,
                    "stop_probability": [p[image] for t in mine if (p := chances[t]) is not None],
                }
            )
        return records
