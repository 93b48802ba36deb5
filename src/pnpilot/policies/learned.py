"""The policy of the paper: a network sets the parameters of the next iterations, and says when to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from ..denoisers.base import Denoiser, freeze
from ..errors import BadWeights, Incompatible, PnPilotError, UnknownName, require
from ..problems import PROBLEMS, Problem
from ..solvers import SOLVERS, Solver, build_solver
from ..types import Action
from ..weights import load_weights, read_card, shipped_weights
from ._card import check_card
from ._networks import Actor
from ._observe import EXTRA_PLANES, OBSERVATIONS
from .base import POLICIES, Policy


@POLICIES.register("learned")
class Learned(Policy):
    """Trained: a network sets the parameters for each image, five iterations at a time, and decides when to stop."""

    stops = True
    needs_weights = True
    network: Actor
    task: str = ""
    """What it was trained for."""
    physics: tuple[str, ...] = ()
    """The operators it was trained for, by the names of their types; subclasses count too."""
    real_only: bool = True
    """Whether it was trained on real images alone."""
    denoiser: str = "compact"
    """The denoiser that it was trained with."""
    trained_with: str | None = None
    """The sha256 of that denoiser's weights."""
    sha256: str | None = None
    """Of its own weights, if they were loaded."""

    def __init__(
        self,
        solver: Solver,
        iterations: int = 30,
        *,
        per_decision: int = 5,
        width: int = 32,
        observation: str = "watched",
        channels: int | None = None,
    ) -> None:
        super().__init__(solver, -(-iterations // per_decision))
        self.observe = OBSERVATIONS[observation]
        if channels is None:
            channels = len(solver.images) + EXTRA_PLANES[observation]
        self.network = Actor(solver.params, channels, width=width, iterations=min(per_decision, iterations))

    @torch.no_grad()
    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The decision number t."""
        choice = self.network(self.planes(problem, state, torch.full_like(problem.units.peak, t)))
        stop = choice.logit > 0
        knobs = choice.knobs(stop | (t + 1 >= self.decisions))
        return Action(self.network.scaled(knobs), stop, choice.stop)

    def planes(self, problem: Problem, state: Any, t: Tensor) -> Tensor:
        """What the network sees of states after t decisions (B,)."""
        planes = self.observe(problem, self.solver, state, t / self.decisions)
        if planes.shape[1] != self.network.encoder.channels:
            raise Incompatible(
                f"the policy looks at {self.network.encoder.channels} planes, and this problem shows {planes.shape[1]}"
            )
        return planes.to(self.network.stop.weight.dtype)  # .half() may have changed it

    def knows(self, problem: Problem) -> Tensor:
        """Images like those it was trained on (B,): behind its operators, and without a phase if it never saw one."""
        if not self._trained_for(problem):
            return ~problem.all_active()
        return problem.units.flags if self.real_only else problem.all_active()

    def refusal(self, problem: Problem) -> str:
        """Another operator, or a phase."""
        if self._trained_for(problem):
            return "was trained on real images, and not on images with a phase or values below zero"
        assert problem.made_from is not None
        return f"was trained for {' or '.join(self.physics)}, not for {problem.made_from.__name__}"

    def _trained_for(self, problem: Problem) -> bool:
        """Whether its card names the operator, or one that it derives from; a card that names none accepts all.

        A physics that derives from another, but measures in its own way, is opened as another kind of problem.
        """
        if not self.physics or problem.made_from is None:
            return True
        opened_as = {PROBLEMS[name].physics_type.__name__: PROBLEMS[name] for name in PROBLEMS}
        names = {kind.__name__ for kind in problem.made_from.__mro__} & set(self.physics)
        return any(isinstance(problem, opened_as.get(name, Problem)) for name in names)

    def mismatch(self, denoiser: Denoiser) -> str | None:
        """Why it cannot be used with this denoiser, if there is a reason."""
        if denoiser.name != self.denoiser:
            return f"the policy was trained with the denoiser {self.denoiser!r}, not with {denoiser.name!r}"
        if self.trained_with not in (None, denoiser.sha256):
            return (
                f"the policy was trained with other weights of the denoiser {self.denoiser!r}: sha256 "
                f"{self.trained_with}, these are {denoiser.sha256}; pass the folder with those as weights"
            )
        return None

    @classmethod
    def shipped(cls) -> list[tuple[str, str]]:
        """The tasks that policies ship for, each with the solver."""
        return [(card["task"], card["solver"]) for card in map(read_card, shipped_weights(f"{cls.name}-*"))]

    @classmethod
    def find(cls, name: str | Path, solver: str = "auto") -> Learned:
        """The policy for a task among the shipped ones, or the one in a folder that training wrote."""
        known = cls.shipped()
        if name not in dict(known) and Path(name).is_dir():
            return cls.read(Path(name), solver)
        fitting = [own for task, own in known if task == name and solver in ("auto", own)]
        if not fitting:
            wanted = f"'{name}'" if solver == "auto" else f"'{name}' with the solver {solver!r}"
            have = ", ".join(f"{task} ({own})" for task, own in known) or "none"
            raise UnknownName(f"no policy for {wanted} ships, and there is no such folder; policies that ship: {have}")
        return cls.load(policy_name(cls.name, str(name), min(fitting, key=lambda own: SOLVERS[own].priority)))

    @classmethod
    def read(cls, folder: Path, solver: str = "auto") -> Learned:
        """The policy in a folder that training wrote."""
        if not folder.is_dir():
            raise BadWeights(f"there is no folder {folder}")
        cards = sorted(path.stem for path in folder.glob("*-*.json"))
        if len(cards) != 1:
            raise BadWeights(
                f"{folder} holds {len(cards)} policies; a folder of `pnpilot train policy` holds one when it is done"
            )
        policy = cls.load(cards[0], folder)
        if solver not in ("auto", policy.solver.name):
            raise Incompatible(f"the policy in {folder} is for the solver {policy.solver.name!r}, not for {solver!r}")
        return policy

    @classmethod
    def load(cls, name: str, folder: Path | None = None) -> Learned:
        """A trained policy by the name of its card."""
        card = read_card(name, folder)
        try:
            check_card(card)
            kind = POLICIES[card["method"]]
            require(issubclass(kind, cls), f"its method is {card['method']!r}, not {cls.name!r}")
            policy = cast(Learned, kind(build_solver(card["solver"]), **card["shape"]))
            policy.denoiser, policy.task = card["denoiser"], card["task"]
            policy.trained_with, policy.physics = card.get("denoiser_sha256"), tuple(card.get("physics", ()))
            policy.real_only = card.get("real_only", True)
        except PnPilotError as error:
            raise BadWeights(f"the card of {name!r} does not describe a policy: {error}") from error
        policy.sha256 = load_weights(policy.network, name, folder)["sha256"]
        freeze(policy.network)
        return policy


@POLICIES.register("model-free")
class ModelFree(Learned):
    """Trained for comparison: the same network, its parameters learnt without gradients through the solver (DDPG)."""


def policy_name(method: str, task: str, solver: str) -> str:
    """What the weights of a policy are called."""
    return f"{method}-{task}-{solver}"
