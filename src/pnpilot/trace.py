"""What was chosen, iteration by iteration, as plain data."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from torch import Tensor

from .solvers import Solver
from .types import Action


class Trace:
    """Collects decisions and turns them into one JSON-able record per image."""

    def __init__(self, solver: Solver, policy: str, planned: int) -> None:
        self.solver, self.policy = solver, policy
        self.planned = planned
        """How many decisions the policy takes at most."""
        self._decisions: list[tuple[Action, Tensor]] = []
        self._replaced: dict[int, dict[str, Any]] = {}

    def add(self, action: Action, ran: Tensor) -> None:
        """Keep a decision, and which images (B,) ran in it."""
        self._decisions.append((action, ran))

    def replace(self, images: list[int], others: list[dict[str, Any]], why: str) -> None:
        """Another run, with these records, took over these images."""
        for image, record in zip(images, others, strict=True):
            self._replaced[image] = {**record, "fallback": why}

    def give_up(self, images: list[int]) -> None:
        """The start was returned for these images."""
        for image in images:
            record = self._replaced.get(image) or self.records()[image]
            nothing: dict[str, Any] = {"parameters": {name: [] for name in self.solver.params}}
            nothing |= {"stop_probability": [], "decided_at": []}
            end = {"iterations": 0, "stopped": "diverged", "fallback": "the start is returned"}
            self._replaced[image] = {**record, **nothing, **end}

    def records(self, count: int | None = None) -> list[dict[str, Any]]:
        """Parameters at every iteration an image took in the first `count` decisions, how many, and why it stopped."""
        decisions = [(action, ran.tolist()) for action, ran in self._decisions[:count]]
        replaced = self._replaced if len(decisions) == len(self._decisions) else {}
        values = [{name: value.tolist() for name, value in action.params.items()} for action, _ in decisions]
        chances = [
            action.stop_probability.tolist() if action.stop_probability is not None else None for action, _ in decisions
        ]
        stops = [action.stop.tolist() for action, _ in decisions]
        records = []
        for image in range(len(decisions[0][1])):
            mine = [t for t, (_, ran) in enumerate(decisions) if ran[image]]
            chosen = {name: [v for t in mine for v in values[t][name][image]] for name in self.solver.params}
            record = {
                "solver": self.solver.name,
                "policy": self.policy,
                "iterations": sum(decisions[t][0].iterations for t in mine),
                "decided_at": list(accumulate(decisions[t][0].iterations for t in mine)),
                "stopped": _end(stops[mine[-1]][image], mine[-1] + 1 == self.planned),
                "parameters": chosen,
                "stop_probability": [p[image] for t in mine if (p := chances[t]) is not None],
            }
            records.append(replaced.get(image, record))
        return records


def _end(stopped: bool, planned: bool) -> str:
    return "by the policy" if stopped else "at the last iteration" if planned else "not yet"
