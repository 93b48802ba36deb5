"""The paper's learner: the stop by policy gradient, the parameters by gradients through solver, reward and critic."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ...denoisers import Denoiser
from ...denoisers.base import freeze
from ...policies._networks import Critic
from ...policies.learned import Learned
from ...prior import prior
from ...transition import transition
from ...types import Action
from ..arguments import LearnerArgs
from ..replay import Episode, Moments
from .base import LEARNERS, Learner, finite_mean, image_of, limited, reward, stop_loss


class Outlook(NamedTuple):
    """What a policy's choices are worth in some states, and in those that follow."""

    aim: Tensor
    """The value of stopping plus that of going on (B,), differentiable in the policy's parameters."""
    stop: Tensor
    """The loss of its stop decisions (B,)."""
    surplus: list[Tensor]
    """How much more its choice, stopping or going on, is worth than stopping, for each decision (B,)."""
    planes: list[Tensor]
    """What it saw, for each decision."""
    asked: list[Tensor]
    """Where the critic's value may be used, for each decision."""


@LEARNERS.register("learned")
class Mixed(Learner):
    """Model-free for the stop decision, model-based for the parameters."""

    def __init__(self, policy: Learned, denoiser: Denoiser, args: LearnerArgs, device: torch.device) -> None:
        super().__init__(policy, denoiser, args, device)
        self.critic = Critic(self.channels, width=args.width).to(device)
        self.target = freeze(copy.deepcopy(self.critic))
        self.critic_optimizer = self.optimizer(self.critic)

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        own = {"critic": self.critic, "target": self.target, "critic_optimizer": self.critic_optimizer}
        return {**super().parts(), **own}

    def calibrate(self, episode: Episode) -> Tensor:
        """The critic sees what the policy sees."""
        planes = super().calibrate(episode)
        for critic in (self.critic, self.target):
            critic.encoder.calibrate(planes)
        return planes

    def update(self, moments: Moments, rate: float) -> dict[str, Tensor]:
        """One gradient step on both networks at this learning rate."""
        outlook = self.look_ahead(moments)
        actor_loss = finite_mean(outlook.stop - outlook.aim)
        actor_norm = self.step(self.actor_optimizer, actor_loss, rate)

        found = self.critic(torch.cat(outlook.planes))
        wanted = torch.cat(outlook.surplus)
        errors = F.smooth_l1_loss(found, wanted, reduction="none")
        critic_loss = finite_mean(errors, torch.cat(outlook.asked))
        critic_norm = self.step(self.critic_optimizer, critic_loss, rate)
        self.follow(self.target, self.critic)
        return {
            "return": outlook.aim.detach().mean() / 2,
            "critic_loss": critic_loss.detach(),
            "stop_loss": outlook.stop.detach().mean(),
            "actor_norm": actor_norm,
            "critic_norm": critic_norm,
        }

    def look_ahead(self, moments: Moments) -> Outlook:
        """Go on for `lookahead` decisions through the solver, trying a stop at each; the critic values the rest.

        Stopping and going on are weighted by their probability, not drawn: the same mean, without the variance.
        """
        problem, _, t, state, *_ = moments
        policy = self.policy
        played, planes, asked = [], [], []
        for ahead in range(self.args.lookahead):
            time = t + ahead
            planes.append(policy.planes(problem, state, time))
            choice = policy.network(planes[-1])
            # The loss of a stop must not change the knobs of the decision before it.
            logit = policy.network(planes[-1].detach()).logit if ahead else choice.logit
            _, end = self.move(moments, state, choice.last)
            state, gain = self.move(moments, state, choice.onward)
            played.append((logit, end, gain, time + 1 < policy.decisions))
            asked.append(time < policy.decisions)
        value = self.outcome(moments, state, t + self.args.lookahead)
        stop, surplus = torch.zeros_like(value), list[Tensor]()
        for logit, end, gain, may_go_on in reversed(played):
            on = torch.where(may_go_on, gain + self.args.discount * value, end)
            stop = stop + may_go_on * stop_loss(logit, on - end, self.args)
            value = on.lerp(end, torch.sigmoid(logit.detach()))
            surplus.insert(0, (value - end).detach())
        return Outlook(end + on, stop, surplus, [seen.detach() for seen in planes], asked)

    def move(self, moments: Moments, state: Any, knobs: Tensor) -> tuple[Any, Tensor]:
        """The state after a decision with these knobs, and its reward."""
        problem, policy = moments.problem, self.policy
        params = policy.network.scaled(limited(knobs, self.args.knob_bound))
        action = Action(params, stop=~problem.all_active())
        after = transition(policy.solver, prior(self.denoiser, problem.units), problem, state, action)
        before_image, image = (image_of(problem, policy.solver, one) for one in (state, after))
        return after, reward(before_image, image, moments.truth, self.args.penalty)

    def outcome(self, moments: Moments, state: Any, t: Tensor) -> Tensor:
        """What states after t decisions are worth (B,): stopping next, as played, and what the critic adds.

        So the critic predicts tenths of a dB, not all that is still to be gained.
        """
        planes = self.policy.planes(moments.problem, state, t)
        _, end = self.move(moments, state, self.policy.network(planes).last)
        surplus = (t + 1 < self.policy.decisions) * self.target(planes)
        return end + surplus.detach().lerp(surplus, self.args.value_slope)
