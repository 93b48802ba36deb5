"""Trained policies for the rows of a table: those that ship, and those in folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..denoisers import Denoiser
from ..errors import Incompatible
from ..policies.learned import Learned
from ..weights import read_card, shipped_weights


def ships(task: str, solver: str | None = None) -> bool:
    """Whether a policy ships for the task, with that solver if one is named."""
    cards = map(read_card, shipped_weights(f"{Learned.name}-*"))
    return any(card["task"] == task and solver in (None, card["solver"]) for card in cards)


def learned_policy(task: str, folder: Path | None = None, solver: str = "auto") -> Learned:
    """The policy that ships for a task, or the one in a folder if it was trained for that task."""
    found = Learned.find(folder or task, solver)
    if found.task != task:
        raise Incompatible(f"the policy in {folder} was trained for task {found.task!r}, not for {task!r}")
    return found


def learned_policies(task: str, solver: str, denoiser: Denoiser, folders: Sequence[Path]) -> dict[str, Learned]:
    """Policies by the name of their row: those in folders, and the one that ships if it fits the denoiser."""
    found: dict[str, Learned] = {}
    for folder in folders:
        policy = learned_policy(task, folder, solver)
        if mismatch := policy.mismatch(denoiser):
            raise Incompatible(f"{folder}: {mismatch}")
        found[next(name for name in (policy.name, folder.name, str(folder)) if name not in found)] = policy
    if Learned.name not in found and ships(task, solver):
        policy = learned_policy(task, solver=solver)
        if not policy.mismatch(denoiser):
            found[Learned.name] = policy
    for policy in found.values():
        policy.network.to(denoiser.device)
    return found
