"""The paper's learner: the stop by policy gradient, the parameters by gradients through solver, reward and critic."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..denoisers import Denoiser
from ..denoisers.base import freeze
from ..policies._networks import Critic
from ..policies.learned import Learned
from ..transition import reward, transition
from ..types import Action
from .learner import Learner, LearnerArgs, bounded, finite_mean, image_of, stop_loss
from .replay import Moments


class Outlook(NamedTuple):
    """What a policy's choices come to in some states, and in those that follow: lists over decisions, each (B, ...)."""

    values: list[Tensor]
    """Returns, differentiable in the policy's parameters."""
    stop: Tensor
    """The loss of its stop decisions (B,)."""
    planes: list[Tensor]
    """What it saw."""
    asked: list[Tensor]
    """Where the critic's opinion may ever matter."""


class Mixed(Learner):
    """Model-free for the stop decision, model-based for the parameters."""

    def __init__(self, policy: Learned, denoiser: Denoiser, args: LearnerArgs, device: torch.device) -> None:
        super().__init__(policy, denoiser, args, device)
        self.critic = Critic(self.channels, width=args.width).to(device)
        self.target = freeze(copy.deepcopy(self.critic))
        self.critic_optimizer = self.optimizer(self.critic, args.critic_rate)
        # Where one decision is played, what it does to the next ones is known to nobody but the critic.
        self.value_slope = float(args.lookahead == 1) if args.value_slope is None else args.value_slope

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        own = {"critic": self.critic, "target": self.target, "critic_optimizer": self.critic_optimizer}
        return {**super().parts(), **own}

    def update(self, moments: Moments, rate: float) -> dict[str, Tensor]:
        """One gradient step on both networks, at this share of their learning rates."""
        outlook = self.look_ahead(moments)
        actor_loss = finite_mean(outlook.stop - outlook.values[0])
        actor_norm = self.step(self.actor_optimizer, actor_loss, self.args.actor_rate * rate)

        found = self.critic(torch.cat(outlook.planes))
        wanted = torch.cat(outlook.values).detach()
        errors = F.smooth_l1_loss(found, wanted, reduction="none")
        critic_loss = finite_mean(errors, torch.cat(outlook.asked))
        critic_norm = self.step(self.critic_optimizer, critic_loss, self.args.critic_rate * rate)
        self.follow(self.target, self.critic)
        return {
            "return": outlook.values[0].detach().mean(),
            "critic_loss": critic_loss.detach(),
            "stop_loss": outlook.stop.detach().mean(),
            "actor_norm": actor_norm,
            "critic_norm": critic_norm,
        }

    def look_ahead(self, moments: Moments) -> Outlook:
        """Play `lookahead` decisions through the solver and let the critic value the rest; the paper plays one.

        Going on or stopping is weighed by its probability instead of drawn: the same in the mean, without the variance.
        """
        problem, truth, t, state, *_ = moments
        policy, denoise = self.policy, moments.problem.prior(self.denoiser)
        played, planes = [], [policy.planes(problem, state, t)]
        for ahead in range(1, self.args.lookahead + 1):
            choice = policy.network(planes[-1])
            if ahead > 1:  # a stop must not be learnt by turning the knobs of the decision before it
                choice = choice._replace(logit=policy.network(planes[-1].detach()).logit)
            knobs = bounded(choice.knobs, self.args.knob_bound)
            action = Action(policy.network.settings(knobs), stop=choice.logit > 0)
            after = transition(policy.solver, denoise, problem, state, action)
            before_image, image = image_of(problem, policy.solver, state), image_of(problem, policy.solver, after)
            gain = reward(before_image, image, truth, self.args.penalty)
            may_go_on = t + ahead < policy.decisions  # not from the last decision
            played.append((choice, gain, may_go_on))
            state = after
            with torch.set_grad_enabled(ahead < self.args.lookahead or self.value_slope > 0):
                planes.append(policy.planes(problem, state, t + ahead))
        with torch.set_grad_enabled(self.value_slope > 0):
            value = self.target(planes.pop())
        values = [value.detach() + self.value_slope * (value - value.detach())]
        stop = torch.zeros_like(values[0])
        for choice, gain, may_go_on in reversed(played):
            stop = stop + may_go_on * stop_loss(choice.logit, values[0], self.args)
            values.insert(0, gain + self.args.discount * may_go_on * (1 - choice.stop.detach()) * values[0])
        times = [t + ahead for ahead in range(self.args.lookahead)]
        # Nobody asks for the value of a start, whose many dB would blur the tenths that decide about stopping.
        asked = [(time > 0) & (time < policy.decisions) for time in times]
        return Outlook(values[:-1], stop, [seen.detach() for seen in planes], asked)
