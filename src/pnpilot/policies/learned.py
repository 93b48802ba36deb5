"""The policy of the paper: a network sets the parameters of the next iterations, and says when to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..denoisers.base import freeze
from ..errors import BadWeights, UnknownName
from ..problem import Problem
from ..solvers import Solver, build_solver
from ..types import Action
from ..weights import load_weights, read_card, shipped_weights
from ._networks import Actor
from ._observe import OBSERVATIONS
from .base import POLICIES, Policy

PREFERRED = ["admm", "inexact-admm", "hqs", "pg", "apg", "red-admm", "amp"]
"""Which solver's policy to take where a task has several."""


@POLICIES.register("learned")
class Learned(Policy):
    """Trained: a network sets the parameters for each image, five iterations at a time, and stops it."""

    stops = True
    needs_weights = True
    network: Actor
    denoiser: str = "compact"
    """The denoiser that it was trained with."""

    def __init__(
        self,
        solver: Solver,
        iterations: int = 30,
        *,
        each: int = 5,
        width: int = 32,
        observation: str = "probed",
        channels: int | None = None,
    ) -> None:
        super().__init__(solver, -(-iterations // each))
        self.observe = OBSERVATIONS[observation]
        channels = channels or len(solver.State._fields) + 4
        self.network = Actor(solver.params, channels, width=width, iterations=min(each, iterations))

    @torch.no_grad()
    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The decision number t."""
        choice = self.network(self.planes(problem, state, torch.full_like(problem.units.peak, t)))
        return Action(self.network.settings(choice.knobs), choice.logit > 0, choice.stop)

    def planes(self, problem: Problem, state: Any, t: Tensor) -> Tensor:
        """What the network sees of states after t decisions (B,)."""
        return self.observe(problem, self.solver, state, t / self.decisions)

    @classmethod
    def find(cls, name: str | Path, solver: str = "auto") -> Learned:
        """The policy for a task among the shipped ones, or the one in a folder that training wrote."""
        if Path(name).is_dir():
            cards = sorted(path.stem for path in Path(name).glob("*-*.json"))
            if len(cards) != 1:
                raise BadWeights(f"{name} holds {len(cards)} policies; a folder of `pnpilot train policy` holds one")
            return cls.load(cards[0], Path(name))
        known = [(card["task"], card["solver"]) for card in map(read_card, shipped_weights(f"{cls.name}-*"))]
        fitting = [own for task, own in known if task == name and solver in ("auto", own)]
        if not fitting:
            wanted = f"{name!r}" if solver == "auto" else f"{name!r} with the solver {solver!r}"
            have = ", ".join(f"{task} ({own})" for task, own in known) or "none"
            raise UnknownName(f"no policy for {wanted} ships, and there is no such folder; policies that ship: {have}")
        return cls.load(policy_name(cls.name, str(name), sorted(fitting, key=PREFERRED.index)[0]))

    @classmethod
    def load(cls, name: str, folder: Path | None = None) -> Learned:
        """A trained policy by the name of its card."""
        card = read_card(name, folder)
        try:
            policy = POLICIES[card["method"]](build_solver(card["solver"]), **card["shape"])
            assert isinstance(policy, cls)
            policy.denoiser = card["denoiser"]
        except (KeyError, TypeError, AssertionError) as error:
            raise BadWeights(f"the card of {name!r} does not describe a policy: {error!r}") from error
        load_weights(policy.network, name, folder)
        freeze(policy.network)
        return policy


@POLICIES.register("model-free")
class ModelFree(Learned):
    """Trained for comparison: the same network, its parameters learnt without gradients through the solver (DDPG)."""


def policy_name(method: str, task: str, solver: str) -> str:
    """What the weights of a policy are called."""
    return f"{method}-{task}-{solver}"
