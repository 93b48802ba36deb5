"""What the learners share: networks and optimisers, and playing an episode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...denoisers import Denoiser
from ...metrics import psnr
from ...policies import Policy
from ...policies.learned import Learned
from ...prior import bounded
from ...problems import Problem
from ...reconstruct import rollout
from ...registry import Registry
from ...solvers import Solver
from ...types import Action, per_sample
from ..arguments import LearnerArgs
from ..parallel import average_gradients
from ..replay import Episode, Moments


class Learner(ABC):
    """A policy with the optimiser of its network. It is registered under the name of the policy that it trains."""

    name: str
    explores = False
    """Whether it adds noise to the knobs that it plays."""

    def __init__(self, policy: Learned, denoiser: Denoiser, args: LearnerArgs, device: torch.device) -> None:
        self.policy, self.denoiser, self.args, self.device = policy, denoiser, args, device
        policy.network.to(device)
        self.channels = policy.network.encoder.channels
        self.actor_optimizer = self.optimizer(policy.network)

    @abstractmethod
    def update(self, moments: Moments, rate: float) -> dict[str, Tensor]:
        """One gradient step at this learning rate; returns numbers worth watching."""

    def parts(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"actor": self.policy.network, "actor_optimizer": self.actor_optimizer}

    def calibrate(self, episode: Episode) -> Tensor:
        """Standardise the summary of the planes by its spread in an episode; returns the planes (N·B, C, H, W)."""
        decisions, images = episode.alive.shape
        index = torch.arange(images, device=self.device).repeat(decisions)
        t = torch.arange(decisions, device=self.device).repeat_interleave(images)
        state = type(episode.states)(*(field[:-1].flatten(0, 1) for field in episode.states))
        planes = self.policy.planes(episode.problem.select(index), state, t)
        self.policy.network.encoder.calibrate(planes)
        return planes

    @torch.no_grad()
    def play(self, problem: Problem, truth: Tensor, generator: torch.Generator) -> Episode:
        """Run the policy on a batch, drawing stops from their probabilities."""
        player = Player(self.policy, self.args.noise if self.explores else 0.0, generator)
        *_, last = rollout(problem, self.policy.solver, self.denoiser, player)
        states = [*player.states, last.state]
        scores = torch.stack([psnr(image_of(problem, self.policy.solver, state), truth) for state in states])
        alive = [problem.all_active()]
        for stopping, score in zip(player.stopping[:-1], scores[1:-1], strict=True):
            alive.append(alive[-1] & ~stopping & torch.isfinite(score))
        fields = (_stacked(values) for values in zip(*states, strict=True))
        return Episode(problem, truth, type(last.state)(*fields), torch.stack(player.knobs), scores, torch.stack(alive))

    def optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(module.parameters(), self.args.rate, fused=self.device.type == "cuda")

    def step(self, optimizer: torch.optim.Optimizer, loss: Tensor, rate: float) -> Tensor:
        """One step of an optimiser, averaged over processes; gradients that are not finite count as zero."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for group in optimizer.param_groups:
            group["lr"] = rate
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient.nan_to_num_(0.0, 0.0, 0.0)
        average_gradients(parameters)
        norm = nn.utils.clip_grad_norm_(parameters, self.args.clip)
        optimizer.step()
        return norm

    @torch.no_grad()
    def follow(self, target: nn.Module, network: nn.Module) -> None:
        """Move the target a little towards the network."""
        torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), self.args.target_rate)


class Player(Policy):
    """A policy as it is played in training: it draws its stops, may add noise to its knobs, and records both.

    Images that stop keep running, uncounted: one shape for all batches is worth more than the work saved.
    """

    name = "player"

    def __init__(self, policy: Learned, noise: float, generator: torch.Generator) -> None:
        super().__init__(policy.solver, policy.decisions)
        self.policy, self.noise, self.generator = policy, noise, generator
        self.states: list[Any] = []
        self.stopping: list[Tensor] = []
        self.knobs: list[Tensor] = []

    def __call__(self, problem: Problem, state: Any, t: int) -> Action:
        """The decision number t."""
        planes = self.policy.planes(problem, state, torch.full_like(problem.units.peak, t))
        choice = self.policy.network(planes)
        stopping = torch.rand(len(problem), device=planes.device, generator=self.generator) < choice.stop
        knobs = choice.knobs(stopping | (t + 1 == self.decisions))
        noise = torch.randn(knobs.shape, device=planes.device, generator=self.generator)
        knobs = (knobs + self.noise * noise).clamp(0, 1)
        self.states.append(state)
        self.stopping.append(stopping)
        self.knobs.append(knobs)
        return Action(self.policy.network.scaled(knobs), stop=torch.zeros_like(stopping))


LEARNERS: Registry[Learner] = Registry("method", __package__)


def reward(before: Tensor, after: Tensor, truth: Tensor, penalty: float = 0.05) -> Tensor:
    """PSNR gained by one decision, less the price of taking it, per image (B,)."""
    return psnr(after, truth) - psnr(before, truth) - penalty


def stop_loss(logit: Tensor, advantage: Tensor, args: LearnerArgs) -> Tensor:
    """Natural policy gradient of the stop decision with entropy, per image (B,).

    Going on has the advantage A over stopping. The policy gradient with an entropy bonus of weight λ, over the Fisher
    information, moves the log-odds ℓ of going on by A − λℓ: it does not vanish where the choice has become certain.
    Bounding A keeps early gains of many dB from drowning the tenths that decide about stopping.
    """
    advantage = advantage.detach().clamp(-args.advantage_bound, args.advantage_bound)
    return 0.1 * (logit + advantage / args.temperature).square()


def finite_mean(losses: Tensor, counted: Tensor | None = None) -> Tensor:
    """Mean over the images that count and have a finite loss: a broken image must not stop the others' learning."""
    counted = torch.isfinite(losses) if counted is None else counted & torch.isfinite(losses)
    return torch.where(counted, losses, 0.0).sum() / counted.sum().clamp_min(1)


def limited(knobs: Tensor, bound: float) -> Tensor:
    """The knobs, with their gradient held to `bound` dB per unit for each image: none may dominate the batch."""

    def hold(gradient: Tensor) -> Tensor:
        slope = len(gradient) * gradient.nan_to_num(0.0, 0.0, 0.0)  # of each image's own loss, not of the mean
        size = slope.flatten(1).norm(dim=1).clamp_min(1e-12)
        return per_sample((bound / size).clamp(max=1.0), slope) * slope / len(gradient)

    if knobs.requires_grad:
        knobs.register_hook(hold)
    return knobs


def _stacked(values: Sequence[Tensor]) -> Tensor:
    """Tensors stacked; a start may be complex where later iterates are real."""
    kind = torch.promote_types(values[0].dtype, values[-1].dtype)
    return torch.stack([value.to(kind) for value in values])


def image_of(problem: Problem, solver: Solver, state: Any) -> Tensor:
    """The image in a state, real, in the units of the truth."""
    return problem.units.unscale(bounded(solver.output(state), problem.units)).real
