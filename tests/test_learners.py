"""What learners do: a toy whose optimum is known, returns and gradients one by one, images that break."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.metrics import psnr
from pnpilot.policies import POLICIES
from pnpilot.policies.learned import Learned
from pnpilot.problems import Problem, Units
from pnpilot.reconstruct import rollout
from pnpilot.solvers import Solver
from pnpilot.training.arguments import LearnerArgs
from pnpilot.training.learners import LEARNERS, Learner
from pnpilot.training.learners.mixed import Mixed
from pnpilot.training.learners.model_free import DDPG
from pnpilot.training.replay import Replay
from pnpilot.types import Range, per_sample

CPU = torch.device("cpu")
EVERY = [pytest.param(LEARNERS[name], id=name) for name in LEARNERS]
SIDE = 8
CHECKERS = ((torch.arange(SIDE)[:, None] + torch.arange(SIDE)) % 2) * 2 - 1.0


@pytest.fixture(autouse=True)
def _one_thread(_seeded: None) -> None:
    torch.set_num_threads(1)  # tensors are tiny here, and threads that wait for a busy core cost more than they help


class ToyProblem(Problem):
    """Grey images under a chequered error. One knob takes it off; its best position is a line in the noise level."""

    offers = frozenset({"grad"})
    per_image = ("y", "best", "floor")

    def __init__(self, truth: Tensor, sigma_n: Tensor) -> None:
        ones = torch.ones(len(truth))
        super().__init__(truth, Units(ones, True, sigma_n, ones.bool()))
        self.best = 0.2 + 6 * sigma_n
        # Below this the error does not fall: after one decision for little noise, after three for much.
        self.floor = torch.where(sigma_n > 0.06, 0.3 * 0.85**6, 0.3 * 0.85**2)

    def x0(self) -> Tensor:
        return self.y + 0.3 * CHECKERS

    def grad(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    @classmethod
    def of(cls, y: Tensor, physics: Any, hints: Any) -> ToyProblem:
        raise NotImplementedError

    def D(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x))

    def export(self, image: Tensor) -> Tensor:
        return image


class ToySolver(Solver):
    name = "toy"
    params = {"knob": Range(0.0, 1.0, 0.5)}
    needs = frozenset({"grad"})

    class State(NamedTuple):
        x: Tensor

    def init(self, problem: Problem) -> State:
        return self.State(problem.x0())

    def step(self, state: State, problem: Problem, denoise: Any, *, knob: Tensor) -> State:
        assert isinstance(problem, ToyProblem)
        error = state.x - problem.y
        factor = (0.85 + 2 * (knob - problem.best).square()).clamp(max=2.0)
        factor = torch.maximum(factor, problem.floor / error.abs().flatten(1).amax(1))
        return self.State(problem.y + error * per_sample(factor, error))


def toy(sigma_n: Tensor, generator: torch.Generator) -> ToyProblem:
    grey = 0.35 + 0.3 * torch.rand(len(sigma_n), 1, 1, 1, generator=generator)
    return ToyProblem(grey.expand(-1, 1, SIDE, SIDE), sigma_n)


def learn(kind: type[Learner], episodes: int, noise_levels: tuple[float, float] = (0.01, 0.11), **more: Any) -> Learned:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    policy = Learned(ToySolver(), 8, per_decision=2, width=8)
    args = LearnerArgs(width=8, rate=3e-3, target_rate=0.05, **more)
    learner, replay = kind(policy, freeze(Denoiser()), args, CPU), Replay(4)
    low, high = noise_levels
    for episode in range(episodes):
        problem = toy(low + (high - low) * torch.rand(16, generator=generator), generator)
        played = learner.play(problem, problem.y, generator)
        if episode == 0:
            learner.calibrate(played)
        replay.add(played)
        for _ in range(5):
            learner.update(replay.sample(generator), args.rate * (1 - episode / episodes))
    return policy


def test_the_mixed_learner_finds_the_known_optimum_and_when_to_stop() -> None:
    policy = learn(Mixed, 110, lookahead=1)
    noise = torch.tensor([0.02, 0.03, 0.08, 0.1])
    problem = toy(noise, torch.Generator().manual_seed(1))
    steps = list(rollout(problem, policy.solver, freeze(Denoiser()), policy))
    assert (steps[0].action.params["knob"] - problem.best[:, None]).abs().max() < 0.06
    iterations = steps[-1].iterations.tolist()
    assert max(iterations[:2]) <= 4 < 6 <= min(iterations[2:])


@pytest.mark.parametrize(("level", "side"), [(0.02, -1), (0.1, 1)])
def test_the_model_free_learner_moves_towards_the_optimum(level: float, side: int) -> None:
    policy = learn(DDPG, 12, (level, level), noise=0.2)
    problem = toy(torch.full((4,), level), torch.Generator().manual_seed(1))
    knob = policy(problem, policy.solver.init(problem), 0).params["knob"].mean()
    assert side * (knob - 0.5) > 0.05  # the best are 0.32 and 0.8; untrained it is 0.5


def test_nothing_passes_through_the_solver_in_the_model_free_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Learned(ToySolver(), 4, per_decision=2, width=8)
    learner = DDPG(policy, freeze(Denoiser()), LearnerArgs(width=8), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(generator)
    monkeypatch.delattr(ToySolver, "step")
    assert torch.isfinite(learner.update(moments, 1e-3)["critic_loss"])


def test_one_image_cannot_turn_the_whole_batch() -> None:
    from pnpilot.training.learners.base import limited

    knobs = torch.full((3, 1, 2), 0.5, requires_grad=True)
    slopes = torch.tensor([[[1.0, 0.0]], [[3e4, 4e4]], [[float("nan"), 1.0]]])
    (limited(knobs * 1, 10.0) * slopes).sum((1, 2)).mean().backward()
    assert knobs.grad is not None
    expected = torch.tensor([[[1.0, 0.0]], [[6.0, 8.0]], [[0.0, 1.0]]]) / 3
    assert torch.allclose(knobs.grad, expected)


def test_the_stop_gradient_has_the_sign_of_the_advantage() -> None:
    from pnpilot.training.learners.base import stop_loss

    logit = torch.zeros(3, requires_grad=True)
    stop_loss(logit, torch.tensor([1.0, 0.0, -0.1]), LearnerArgs()).sum().backward()
    assert logit.grad is not None
    assert logit.grad[0] > 0 and logit.grad[1] == 0 and logit.grad[2] < 0  # descent lowers the odds of stopping first


def test_nothing_is_expected_beyond_the_horizon() -> None:
    policy = Learned(ToySolver(), 6, per_decision=2, width=8)
    learner = Mixed(policy, freeze(Denoiser()), LearnerArgs(width=8, lookahead=1), CPU)
    torch.nn.init.constant_(learner.target.value.bias, 1000.0)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((64,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(generator)
    surplus = learner.look_ahead(moments).surplus[0]
    last = moments.t > 0  # the critic is not asked before the last decision either: that one ends
    assert last.any() and (~last).any()
    assert surplus[last].abs().max() < 50 < 100 < surplus[~last].min()


@pytest.mark.parametrize("lookahead", [1, 2])
def test_the_surplus_weighs_stopping_and_going_on_by_their_chances(lookahead: int) -> None:
    policy = Learned(ToySolver(), 8, per_decision=2, width=8)
    torch.nn.init.normal_(policy.network.each.weight, std=0.1)  # stopping and going on must differ
    learner = Mixed(policy, freeze(Denoiser()), LearnerArgs(width=8, lookahead=lookahead), CPU)
    torch.nn.init.constant_(learner.target.value.bias, 20.0)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((4,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(generator)
    moments = moments._replace(t=torch.zeros_like(moments.t), state=policy.solver.init(moments.problem))

    def move(state: Any, knobs: Tensor) -> tuple[Any, Tensor]:
        before = psnr(state.x, moments.truth)
        for k in range(2):
            state = policy.solver.step(state, moments.problem, None, knob=knobs[:, 0, k])  # type: ignore[arg-type]
        return state, psnr(state.x, moments.truth) - before - 0.05

    def value(state: Any, ahead: int) -> Tensor:
        planes = policy.planes(moments.problem, state, moments.t + ahead)
        choice = policy.network(planes)
        if ahead == lookahead:
            return move(state, choice.last)[1] + learner.target(planes)
        after, gain = move(state, choice.onward)
        return choice.stop * move(state, choice.last)[1] + (1 - choice.stop) * (gain + 0.99 * value(after, ahead + 1))

    choice = policy.network(policy.planes(moments.problem, moments.state, moments.t))
    expected = value(moments.state, 0) - move(moments.state, choice.last)[1]
    assert torch.allclose(learner.look_ahead(moments).surplus[0], expected, atol=1e-4)


@pytest.mark.parametrize("kind", EVERY)
def test_networks_are_told_standardised_numbers(kind: type[Learner]) -> None:
    policy = Learned(ToySolver(), 4, per_decision=2, width=8)
    learner = kind(policy, freeze(Denoiser()), LearnerArgs(width=8), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.linspace(0.01, 0.1, 16), generator)
    episode = learner.play(problem, problem.y, generator)
    encoder = policy.network.encoder
    told = (encoder.summary(learner.calibrate(episode)) - encoder.centre) / encoder.spread
    assert told.mean(0).abs().max() < 1e-3
    varying = encoder.spread > 0.06
    assert varying.any() and torch.allclose(told.std(0)[varying], torch.ones(()), atol=1e-3)
    networks = [network for name, network in learner.parts().items() if "optimizer" not in name]
    assert all(network.encoder.centre.abs().max() > 0 for network in networks)


def test_an_image_ends_with_parameters_of_their_own() -> None:
    """At the last decision, and where it stops earlier."""
    policy = Learned(ToySolver(), 4, per_decision=2, width=8)
    torch.nn.init.constant_(policy.network.common.bias[1], 3.0)
    problem = toy(torch.full((2,), 0.05), torch.Generator().manual_seed(0))
    state = policy.solver.init(problem)
    onward, last = torch.sigmoid(policy.network.common.bias.detach())
    for bias, t, expected in ((-1.0, 0, onward), (-1.0, 1, last), (1.0, 0, last)):
        torch.nn.init.constant_(policy.network.stop.bias, bias)
        assert policy(problem, state, t).params["knob"].mean() == pytest.approx(expected.item(), abs=0.05)


def test_a_stop_is_not_learnt_by_turning_the_knobs_before_it() -> None:
    policy = Learned(ToySolver(), 8, per_decision=2, width=8)
    learner = Mixed(policy, freeze(Denoiser()), LearnerArgs(width=8, lookahead=2), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.05), generator)
    outlook = learner.look_ahead(learner.play(problem, problem.y, generator).sample(generator))
    knobs = policy.network.each.weight
    assert torch.autograd.grad(outlook.stop.sum(), knobs, retain_graph=True, allow_unused=True)[0] is None
    assert torch.autograd.grad(outlook.aim.sum(), knobs)[0].abs().sum() > 0


@pytest.mark.parametrize("lookahead", [1, 2])
@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_the_slope_of_the_critic_is_followed_where_that_is_wanted(
    lookahead: int, slope: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Learned(ToySolver(), 8, per_decision=2, width=8)
    args = LearnerArgs(width=8, lookahead=lookahead, value_slope=slope)
    learner = Mixed(policy, freeze(Denoiser()), args, CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.1), generator)
    moments = learner.play(problem, problem.y, generator).sample(generator)
    moments = moments._replace(t=torch.zeros_like(moments.t), state=policy.solver.init(moments.problem))

    def slopes(steepness: float) -> Tensor:
        monkeypatch.setattr(learner.target, "forward", lambda planes: steepness * planes[:, 0].square().mean((1, 2)))
        return torch.autograd.grad(learner.look_ahead(moments).aim.sum(), policy.network.each.weight)[0]

    difference = (slopes(1.0) - slopes(100.0)).abs().max()
    assert (difference > 0.01) if slope else (difference == 0)


@pytest.mark.parametrize("kind", EVERY)
def test_an_image_that_broke_does_not_stop_the_others_learning(kind: type[Learner]) -> None:
    policy = Learned(ToySolver(), 8, per_decision=2, width=8)
    learner = kind(policy, freeze(Denoiser()), LearnerArgs(width=8), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(generator)
    for field in (moments.state.x, moments.after.x):
        field[0] = torch.nan
    moments.gain[0] = torch.nan
    watched = learner.update(moments, 1e-3)
    norms = [value for name, value in watched.items() if name.endswith("_norm")]
    assert "actor_norm" in watched
    assert all(value > 0 for value in norms)
    assert all(torch.isfinite(parameter).all() for parameter in policy.network.parameters())


def learner_and_moments(kind: type[Learner], **more: Any) -> tuple[Any, Any]:
    """Of a policy with two decisions."""
    torch.manual_seed(0)
    learner = kind(
        Learned(ToySolver(), 4, per_decision=2, width=8), freeze(Denoiser()), LearnerArgs(width=8, **more), CPU
    )
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((16,), 0.05), generator)
    return learner, learner.play(problem, problem.y, generator).sample(generator)


def test_the_model_free_learner_expects_nothing_beyond_the_horizon_either() -> None:
    learner, moments = learner_and_moments(DDPG)
    with torch.no_grad():
        learner.target.value.bias.copy_(torch.tensor([0.0, 1000.0]))  # of stopping, and of going on
    first = moments._replace(t=torch.zeros_like(moments.t))
    assert learner.update(first, 1e-3)["return"].abs() < 50  # the second decision is the last, and ends
    learner, moments = learner_and_moments(DDPG)
    last = moments._replace(t=torch.ones_like(moments.t))
    onward, ending = learner.policy.network.common.bias.detach().clone()
    learner.update(last, 1e-3)
    assert learner.policy.network.common.bias[0] == onward  # nobody goes on after it
    assert learner.policy.network.common.bias[1] != ending


@pytest.mark.parametrize("kind", EVERY)
def test_only_a_learner_that_explores_tries_other_parameters(kind: type[Learner]) -> None:
    learner, moments = learner_and_moments(kind)
    choice = learner.policy.network(learner.policy.planes(moments.problem, moments.state, moments.t))
    away = torch.minimum(*((moments.knobs - knobs).abs().amax((1, 2)) for knobs in (choice.onward, choice.last)))
    assert (away.mean() > 0.02) == kind.explores


@pytest.mark.parametrize("kind", [Mixed, DDPG])
def test_targets_follow(kind: type[Learner]) -> None:
    learner, moments = learner_and_moments(kind, target_rate=1.0)
    learner.update(moments, 1e-3)
    pairs = [(learner.target, learner.critic)]
    pairs += [(learner.target_actor, learner.policy.network)] if kind is DDPG else []
    for target, network in pairs:
        for own, other in zip(target.parameters(), network.parameters(), strict=True):
            assert torch.allclose(own, other)


def test_nothing_is_learnt_from_images_that_had_stopped() -> None:
    learner, _ = learner_and_moments(Mixed)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((16,), 0.05), generator)
    episode = learner.play(problem, problem.y, generator)
    alive = torch.zeros_like(episode.alive)
    alive[0, :5] = alive[1, 3] = True
    moments = episode._replace(alive=alive).sample(generator)
    assert sorted(moments.t.tolist()) == [0, 0, 0, 0, 0, 1]
    assert torch.equal(moments.truth[moments.t == 1], problem.y[3:4])


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_are_called_by_the_policies_that_they_train(name: str) -> None:
    assert issubclass(POLICIES[name], Learned)
    assert 10 < len(LEARNERS.summary(name)) < 130


def test_the_two_learners_of_the_paper() -> None:
    assert (LEARNERS["learned"], LEARNERS["model-free"]) == (Mixed, DDPG)
    assert (Mixed.explores, DDPG.explores) == (False, True)


@pytest.mark.parametrize("kind", EVERY)
def test_an_episode_is_what_the_solver_does_with_the_noted_knobs(kind: type[Learner]) -> None:
    """Stopped images keep running; `alive` records which had not stopped."""
    torch.manual_seed(0)
    policy = Learned(ToySolver(), 8, per_decision=2, width=8)
    torch.nn.init.constant_(policy.network.stop.bias, 0.0)  # even chances
    learner = kind(policy, freeze(Denoiser()), LearnerArgs(width=8), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.linspace(0.01, 0.1, 32), generator)
    episode = learner.play(problem, problem.y, generator)
    assert torch.equal(episode.states.x[0], problem.x0())
    for t in range(policy.decisions):
        state = ToySolver.State(episode.states.x[t])
        for k in range(2):
            state = policy.solver.step(state, problem, None, knob=episode.knobs[t, :, 0, k])  # type: ignore[arg-type]
        assert torch.allclose(state.x, episode.states.x[t + 1])
        assert torch.allclose(psnr(state.x, problem.y), episode.scores[t + 1], atol=1e-4)
    assert episode.alive[0].all()
    assert not (episode.alive[1:] & ~episode.alive[:-1]).any()  # nobody comes back
    assert 4 < episode.alive[1].sum() < 28
    moved = (episode.states.x[1:] != episode.states.x[:-1]).flatten(2).any(2)
    assert moved[:, ~episode.alive[1]].any()


def test_an_image_that_broke_is_no_longer_played() -> None:
    learner, _ = learner_and_moments(Mixed)
    torch.nn.init.constant_(learner.policy.network.stop.bias, -20.0)  # nobody stops
    problem = toy(torch.full((4,), 0.05), torch.Generator().manual_seed(0))
    problem.floor[1] = torch.nan
    episode = learner.play(problem, problem.y, torch.Generator().manual_seed(0))
    assert episode.alive.tolist() == [[True] * 4, [True, False, True, True]]
