"""Training a policy: a toy whose optimum is known, every solver and problem, resuming, several processes, refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import DENOISERS, freeze
from pnpilot.errors import BadInput, Incompatible
from pnpilot.policies.learned import Learned
from pnpilot.problem import Problem, Units
from pnpilot.reconstruct import rollout
from pnpilot.solvers import SOLVERS, Solver
from pnpilot.tasks import TASKS, build_task
from pnpilot.training import train_policy as module
from pnpilot.training.augment import augmented
from pnpilot.training.clock import Clock
from pnpilot.training.episodes import Problems, Simulations
from pnpilot.training.learner import Learner, LearnerArgs
from pnpilot.training.mixed import Mixed
from pnpilot.training.model_free import DDPG
from pnpilot.training.replay import Replay
from pnpilot.training.train_policy import PolicyArgs, train_policy
from pnpilot.types import Range, per_sample
from tests.conftest import Smoother, block_pictures

CPU = torch.device("cpu")
SIDE = 8
CHECKERS = ((torch.arange(SIDE)[:, None] + torch.arange(SIDE)) % 2) * 2 - 1.0


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

    def misfit(self, x: Tensor) -> Tensor:
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
    policy = Learned(ToySolver(), 8, each=2, width=8)
    args = LearnerArgs(width=8, actor_rate=3e-3, critic_rate=3e-3, target_rate=0.05, **more)
    learner, replay = kind(policy, freeze(Denoiser()), args, CPU), Replay(4)
    low, high = noise_levels
    for episode in range(episodes):
        problem = toy(low + (high - low) * torch.rand(16, generator=generator), generator)
        replay.add(learner.play(problem, problem.y, generator))
        for _ in range(5):
            learner.update(replay.sample(16, generator), 1 - episode / episodes)
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
    policy = Learned(ToySolver(), 4, each=2, width=8)
    learner = DDPG(policy, freeze(Denoiser()), LearnerArgs(width=8), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(8, generator)
    monkeypatch.delattr(ToySolver, "step")
    assert torch.isfinite(learner.update(moments, 1.0)["critic_loss"])


def test_one_image_cannot_turn_the_whole_batch() -> None:
    from pnpilot.training.learner import bounded

    knobs = torch.full((3, 1, 2), 0.5, requires_grad=True)
    slopes = torch.tensor([[[1.0, 0.0]], [[3e4, 4e4]], [[float("nan"), 1.0]]])
    (bounded(knobs * 1, 10.0) * slopes).sum((1, 2)).mean().backward()
    assert knobs.grad is not None
    expected = torch.tensor([[[1.0, 0.0]], [[6.0, 8.0]], [[0.0, 1.0]]]) / 3
    assert torch.allclose(knobs.grad, expected)


def test_the_stop_gradient_has_the_sign_of_the_advantage() -> None:
    from pnpilot.training.learner import stop_loss

    logit = torch.zeros(3, requires_grad=True)
    stop_loss(logit, torch.tensor([1.0, 0.0, -0.1]), LearnerArgs()).sum().backward()
    assert logit.grad is not None
    assert logit.grad[0] > 0 and logit.grad[1] == 0 and logit.grad[2] < 0  # descent lowers the odds of stopping first


def test_nothing_is_expected_beyond_the_horizon() -> None:
    policy = Learned(ToySolver(), 4, each=2, width=8)
    learner = Mixed(policy, freeze(Denoiser()), LearnerArgs(width=8, lookahead=1), CPU)
    torch.nn.init.constant_(learner.target.value.bias, 1000.0)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((64,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(64, generator)
    returns = learner.look_ahead(moments).values[0]
    last = moments.t == 1
    assert last.any() and (~last).any()
    assert returns[last].abs().max() < 50 < 100 < returns[~last].min()


@pytest.mark.parametrize("lookahead", [1, 2])
def test_the_return_is_the_sum_of_gains_weighed_by_the_chance_to_go_on(lookahead: int) -> None:
    policy = Learned(ToySolver(), 8, each=2, width=8)
    learner = Mixed(policy, freeze(Denoiser()), LearnerArgs(width=8, lookahead=lookahead), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((4,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(4, generator)
    moments = moments._replace(t=torch.zeros_like(moments.t), state=policy.solver.init(moments.problem))
    expected, weight, state = torch.zeros(4), torch.ones(4), moments.state
    from pnpilot.metrics import psnr

    for ahead in range(lookahead):
        choice = policy.network(policy.planes(moments.problem, state, moments.t + ahead))
        before = psnr(state.x, moments.truth)
        for k in range(2):
            state = policy.solver.step(state, moments.problem, None, knob=choice.knobs[:, 0, k])  # type: ignore[arg-type]
        expected = expected + weight * (psnr(state.x, moments.truth) - before - 0.05)
        weight = weight * 0.99 * (1 - choice.stop)
    value = learner.target(policy.planes(moments.problem, state, moments.t + lookahead))
    returns = learner.look_ahead(moments).values[0]
    assert torch.allclose(returns, expected + weight * value, atol=1e-4)


def test_a_stop_is_not_learnt_by_turning_the_knobs_before_it() -> None:
    policy = Learned(ToySolver(), 8, each=2, width=8)
    learner = Mixed(policy, freeze(Denoiser()), LearnerArgs(width=8, lookahead=2), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.05), generator)
    outlook = learner.look_ahead(learner.play(problem, problem.y, generator).sample(8, generator))
    knobs = policy.network.each.weight
    assert torch.autograd.grad(outlook.stop.sum(), knobs, retain_graph=True, allow_unused=True)[0] is None
    assert torch.autograd.grad(outlook.values[0].sum(), knobs)[0].abs().sum() > 0


@pytest.mark.parametrize(("lookahead", "slope", "through_critic"), [(1, None, True), (2, None, False), (2, 1.0, True)])
def test_the_slope_of_the_critic_is_followed_where_nothing_else_looks_ahead(
    lookahead: int, slope: float | None, through_critic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Learned(ToySolver(), 8, each=2, width=8)
    args = LearnerArgs(width=8, lookahead=lookahead, value_slope=slope)
    learner = Mixed(policy, freeze(Denoiser()), args, CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.1), generator)
    moments = learner.play(problem, problem.y, generator).sample(8, generator)
    moments = moments._replace(t=torch.zeros_like(moments.t), state=policy.solver.init(moments.problem))

    def slopes(steepness: float) -> Tensor:
        monkeypatch.setattr(learner.target, "forward", lambda planes: steepness * planes[:, 0].square().mean((1, 2)))
        returns = learner.look_ahead(moments).values[0]
        return torch.autograd.grad(returns.sum(), policy.network.each.weight)[0]

    difference = (slopes(1.0) - slopes(100.0)).abs().max()
    assert (difference > 0.01) if through_critic else (difference == 0)


@pytest.mark.parametrize("kind", [Mixed, DDPG])
def test_an_image_that_broke_does_not_stop_the_others_learning(kind: type[Learner]) -> None:
    policy = Learned(ToySolver(), 8, each=2, width=8)
    learner = kind(policy, freeze(Denoiser()), LearnerArgs(width=8), CPU)
    generator = torch.Generator().manual_seed(0)
    problem = toy(torch.full((8,), 0.05), generator)
    moments = learner.play(problem, problem.y, generator).sample(8, generator)
    for field in (moments.state.x, moments.after.x):
        field[0] = torch.nan
    moments.gain[0] = torch.nan
    watched = learner.update(moments, 1.0)
    assert watched["actor_norm"] > 0
    assert watched["critic_norm"] > 0
    assert all(torch.isfinite(parameter).all() for parameter in policy.network.parameters())


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return block_pictures(tmp_path / "images", 8, 9)


class Blunt(Smoother):
    """Has no gradient."""

    differentiable = False


@pytest.fixture
def smooth(monkeypatch: pytest.MonkeyPatch) -> None:
    DENOISERS.names()
    monkeypatch.setitem(DENOISERS._entries, "smooth", type("Smooth", (Smoother,), {"name": "smooth"}))
    monkeypatch.setitem(DENOISERS._entries, "blunt", type("Blunt", (Blunt,), {"name": "blunt"}))


def arguments(images: Path, task: str = "csmri", **changes: Any) -> PolicyArgs:
    constants = LearnerArgs(width=8)
    small: dict[str, Any] = {"batch": 2, "size": 32, "updates": 1, "held_out": 1, "each": 2, "decisions": 2}
    return PolicyArgs(task, str(images), denoiser="smooth", learner=constants, **{"minutes": 0.02, **small, **changes})


PAIRS = [("csmri", solver) for solver in SOLVERS] + [(task, "auto") for task in TASKS if task != "csmri"]


@pytest.mark.usefixtures("smooth")
@pytest.mark.parametrize(("task", "solver"), PAIRS)
def test_every_solver_and_problem_trains_by_the_same_command(
    task: str, solver: str, images: Path, tmp_path: Path
) -> None:
    card = train_policy(arguments(images, task, solver=solver), tmp_path / "run", device=CPU)
    assert card["episodes"] >= 1
    assert set(card["held_out"]) == {setting.label for setting in build_task(task).settings}
    policy = Learned.find(tmp_path / "run")
    assert policy.solver.name == (solver if solver != "auto" else card["solver"])
    assert policy.denoiser == "smooth"
    fresh = Learned(policy.solver, **card["shape"]).network.state_dict()
    torch.manual_seed(0)
    start = Learned(policy.solver, **card["shape"]).network.state_dict()
    assert any(
        not torch.equal(value.half().float(), start[key].half().float())
        for key, value in policy.network.state_dict().items()
    ), "nothing was learnt"
    assert fresh.keys() == start.keys()


@pytest.mark.usefixtures("smooth")
def test_the_model_free_learner_trains_by_the_same_command(images: Path, tmp_path: Path) -> None:
    card = train_policy(arguments(images, method="model-free"), tmp_path / "run", device=CPU)
    assert card["command"].count("--method model-free") == 1
    assert Learned.find(tmp_path / "run").name == "model-free"


@pytest.mark.usefixtures("smooth")
def test_a_run_killed_at_any_moment_goes_on(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = Mixed.update, []

    class Ticking(Clock):
        """Two minutes pass whenever somebody looks: slow machines learn as much as fast ones."""

        @property
        def share(self) -> float:
            self._start -= 120
            return super().share

    def interrupted(self: Mixed, *args: Any) -> dict[str, Tensor]:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(Mixed, "update", interrupted)
    monkeypatch.setattr(module, "Clock", Ticking)
    args = arguments(images, minutes=11)
    with pytest.raises(KeyboardInterrupt):
        train_policy(args, tmp_path / "run", device=CPU)
    assert not list((tmp_path / "run").glob("learned-*"))
    card = train_policy(args, tmp_path / "run", device=CPU)
    assert card["episodes"] == len(calls) - 1 == 4
    with pytest.raises(BadInput, match="other settings"):
        train_policy(arguments(images, minutes=12), tmp_path / "run", device=CPU)


@pytest.mark.usefixtures("smooth")
def test_metrics_are_on_disk_while_it_learns(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pnpilot.training.progress import ProgressLine

    class Eager(ProgressLine):
        def __init__(self, title: str, *, quiet: bool = False) -> None:
            super().__init__(title, quiet=quiet)
            self.interval = 0.0

    monkeypatch.setattr(module, "ProgressLine", Eager)
    train_policy(arguments(images), tmp_path / "run", device=CPU, save_every=0.0)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"gain", "decisions", "critic_loss", "stop_loss", "return"} <= records[0].keys()
    assert any("held_out" in record for record in records)


@pytest.mark.usefixtures("smooth")
def test_what_cannot_work_is_refused_before_training(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(error: type[Exception], match: str, **changes: Any) -> None:
        args = arguments(images, **{k: v for k, v in changes.items() if k != "denoiser"})
        args.denoiser = changes.get("denoiser", "smooth")
        with pytest.raises(error, match=match):
            train_policy(args, tmp_path / "run", device=CPU)
        assert not (tmp_path / "run" / "checkpoint.safetensors").exists()

    refused(Incompatible, "'blunt' has no gradient", denoiser="blunt")
    refused(Incompatible, "needs prox", task="tomography", solver="hqs")
    refused(BadInput, "unknown method 'guess'", method="guess")
    refused(Incompatible, "'paper' has 14 to 29 channels", task="phase", observation="paper")
    refused(BadInput, "at least 4096×4096", size=4096)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1_000_000})())
    refused(BadInput, r"is full: 1 MB free, 500 MB needed")


def test_varied_images_are_still_images_and_differ_in_kind() -> None:
    plain = 0.2 + 0.8 * torch.rand(64, 1, 32, 48, generator=torch.Generator().manual_seed(0))
    varied = augmented(plain, torch.Generator().manual_seed(1))
    assert varied.shape == plain.shape and varied.min() >= 0 and varied.max() <= 1
    assert torch.equal(varied, augmented(plain, torch.Generator().manual_seed(1)))
    assert ((varied - plain).abs().amax((1, 2, 3)) < 1e-5).any(), "none stays as it was"
    on_black = varied[:, 0, 0, 0] < 0.01
    assert 0.3 < on_black.float().mean() < 0.7
    shares = (varied[on_black] > 0.01).float().mean((1, 2, 3))
    assert shares.min() > 0.15 and shares.max() < 0.97
    assert (varied.std((1, 2, 3)) < 0.08).any(), "none is pale"


def test_problems_do_not_depend_on_who_computes_them(images: Path) -> None:
    pictures = [np.asarray(Image.open(path)) for path in sorted(images.iterdir())]
    for task in ("csmri", "deblur"):
        alone, ahead = (
            Problems(Simulations(build_task(task), pictures, 2, 32, seed=0, first=3), CPU, workers)
            for workers in (0, 2)
        )
        for _ in range(3):
            (problem, truth), (other, other_truth) = next(alone), next(ahead)
            assert torch.equal(truth, other_truth)
            assert torch.equal(problem.y, other.y)


def test_two_processes_train_one_policy(images: Path, tmp_path: Path) -> None:
    """Under torchrun, through the real command."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "pnpilot", "train", "policy", "--task", "csmri", "--data", str(images)]
    command += ["--out", str(tmp_path / "run")]
    command += ["--minutes", "0.03", "--width", "8", "--smoke", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    card = json.loads((tmp_path / "run" / "learned-csmri-admm.json").read_text())
    assert card["processes"] == 2
    assert Learned.find(tmp_path / "run").network is not None


def test_processes_share_their_gradients(tmp_path: Path) -> None:
    """Two processes with different data end with the same weights."""
    script = tmp_path / "share.py"
    script.write_text(
        "import sys, torch\n"
        "from pnpilot.training.parallel import average_gradients, processes\n"
        "with processes(torch.device('cpu')) as (rank, count, device):\n"
        "    weight = torch.nn.Parameter(torch.zeros(3))\n"
        "    weight.grad = torch.full((3,), float(1 + 2 * rank))\n"
        "    average_gradients([weight])\n"
        "    assert weight.grad.tolist() == [2.0, 2.0, 2.0], weight.grad\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
