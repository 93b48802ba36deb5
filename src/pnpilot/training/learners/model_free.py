"""The paper's comparison: parameters learnt by DDPG from a learned Q, without gradients through the solver."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...denoisers import Denoiser
from ...denoisers.base import freeze
from ...policies._networks import Choice, Critic
from ...policies.learned import Learned
from ..arguments import LearnerArgs
from ..replay import Episode, Moments
from .base import LEARNERS, Learner, finite_mean, stop_loss


@LEARNERS.register("model-free")
class DDPG(Learner):
    """Q(s, knobs) sees the knobs as constant planes, and values stopping after them and going on.

    The stop is learnt as in the mixed learner, from that Q.
    """

    explores = True

    def __init__(self, policy: Learned, denoiser: Denoiser, args: LearnerArgs, device: torch.device) -> None:
        super().__init__(policy, denoiser, args, device)
        knobs = len(policy.network.params) * policy.network.iterations
        self.critic = Critic(self.channels + knobs, width=args.width, number=2).to(device)
        self.target = freeze(copy.deepcopy(self.critic))
        self.target_actor = freeze(copy.deepcopy(policy.network))
        self.critic_optimizer = self.optimizer(self.critic)

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        own = {
            "critic": self.critic,
            "target": self.target,
            "target_actor": self.target_actor,
            "critic_optimizer": self.critic_optimizer,
        }
        return {**super().parts(), **own}

    def calibrate(self, episode: Episode) -> Tensor:
        """The critic sees the knobs as well."""
        planes = super().calibrate(episode)
        self.target_actor.encoder.calibrate(planes)
        for critic in (self.critic, self.target):
            critic.encoder.calibrate(_with_knobs(planes, episode.knobs.flatten(0, 1)))
        return planes

    def update(self, moments: Moments, rate: float) -> dict[str, Tensor]:
        """One gradient step on both networks at this learning rate."""
        problem, _, t, state, knobs, gain, after = moments
        planes, planes_after = self.policy.planes(problem, state, t), self.policy.planes(problem, after, t + 1)
        may_go_on, may_then = t + 1 < self.policy.decisions, t + 2 < self.policy.decisions
        with torch.no_grad():
            then: Choice = self.target_actor(planes_after)
            end, on = self.values(self.target, planes_after, then)
            to_come = torch.where(may_then, on.lerp(end, then.stop), end)

        choice = self.policy.network(planes)
        end, on = self.values(self.critic, planes, choice)
        stop = may_go_on * stop_loss(choice.logit, on - end, self.args)
        actor_loss = finite_mean(stop - end - may_go_on * on)
        actor_norm = self.step(self.actor_optimizer, actor_loss, rate)

        reward = gain - self.args.penalty
        wanted = torch.stack([reward, reward + self.args.discount * to_come], 1)
        errors = F.smooth_l1_loss(self.quality(self.critic, planes, knobs), wanted, reduction="none")
        critic_loss = finite_mean(errors, torch.stack([torch.ones_like(may_go_on), may_go_on], 1))
        critic_norm = self.step(self.critic_optimizer, critic_loss, rate)
        self.follow(self.target, self.critic)
        self.follow(self.target_actor, self.policy.network)
        return {
            "return": wanted[:, 1].mean(),
            "critic_loss": critic_loss.detach(),
            "stop_loss": stop.detach().mean(),
            "actor_norm": actor_norm,
            "critic_norm": critic_norm,
        }

    def values(self, critic: Critic, planes: Tensor, choice: Choice) -> tuple[Tensor, Tensor]:
        """The values of stopping and of going on (B,), each with its own knobs."""
        return self.quality(critic, planes, choice.last)[:, 0], self.quality(critic, planes, choice.onward)[:, 1]

    @staticmethod
    def quality(critic: Critic, planes: Tensor, knobs: Tensor) -> Tensor:
        """Q of knobs (B, P, m) in states seen as planes, for stopping after them and for going on (B, 2)."""
        return critic(_with_knobs(planes, knobs))


def _with_knobs(planes: Tensor, knobs: Tensor) -> Tensor:
    constants = knobs.flatten(1)[:, :, None, None].expand(-1, -1, *planes.shape[-2:])
    return torch.cat([planes, constants], 1)
