"""The comparison of the paper: parameters learnt by DDPG from a learned Q, nothing through the solver."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..denoisers import Denoiser
from ..denoisers.base import freeze
from ..policies._networks import Choice, Critic
from ..policies.learned import Learned
from .learner import Learner, LearnerArgs, finite_mean, stop_loss
from .replay import Moments


class DDPG(Learner):
    """Q(s, knobs) sees the knobs as constant planes; the stop is learnt as in the mixed learner, from that Q."""

    explores = True

    def __init__(self, policy: Learned, denoiser: Denoiser, args: LearnerArgs, device: torch.device) -> None:
        super().__init__(policy, denoiser, args, device)
        knobs = len(policy.solver.params) * policy.network.iterations
        self.critic = Critic(self.channels + knobs, width=args.width).to(device)
        self.target = freeze(copy.deepcopy(self.critic))
        self.target_actor = freeze(copy.deepcopy(policy.network))
        self.critic_optimizer = self.optimizer(self.critic, args.critic_rate)

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        own = {
            "critic": self.critic,
            "target": self.target,
            "target_actor": self.target_actor,
            "critic_optimizer": self.critic_optimizer,
        }
        return {**super().parts(), **own}

    def update(self, moments: Moments, rate: float) -> dict[str, Tensor]:
        """One gradient step on both networks, at this share of their learning rates."""
        problem, _, t, state, knobs, gain, after = moments
        planes, planes_after = self.policy.planes(problem, state, t), self.policy.planes(problem, after, t + 1)
        with torch.no_grad():
            then: Choice = self.target_actor(planes_after)
            to_come = self.value(self.target, planes_after, then.knobs) * (t + 1 < self.policy.decisions)

        choice = self.policy.network(planes)
        quality = self.value(self.critic, planes, choice.knobs)
        stop = (t + 1 < self.policy.decisions) * stop_loss(choice.logit, to_come, self.args)
        actor_norm = self.step(self.actor_optimizer, finite_mean(stop - quality), self.args.actor_rate * rate)

        wanted = gain - self.args.penalty + self.args.discount * (1 - choice.stop.detach()) * to_come
        critic_loss = finite_mean(F.smooth_l1_loss(self.value(self.critic, planes, knobs), wanted, reduction="none"))
        critic_norm = self.step(self.critic_optimizer, critic_loss, self.args.critic_rate * rate)
        self.follow(self.target, self.critic)
        self.follow(self.target_actor, self.policy.network)
        return {
            "return": wanted.mean(),
            "critic_loss": critic_loss.detach(),
            "stop_loss": stop.detach().mean(),
            "actor_norm": actor_norm,
            "critic_norm": critic_norm,
        }

    @staticmethod
    def value(critic: Critic, planes: Tensor, knobs: Tensor) -> Tensor:
        """Q (B,) of knobs (B, P, m) in states seen as planes."""
        constants = knobs.flatten(1)[:, :, None, None].expand(-1, -1, *planes.shape[-2:])
        return critic(torch.cat([planes, constants], 1))
