"""The learned policy: what it sees, what it sets, how it is found, and what happens when an image diverges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, BadWeights, Incompatible, UnknownName
from pnpilot.metrics import psnr
from pnpilot.policies._networks import Actor, Critic
from pnpilot.policies._observe import OBSERVATIONS
from pnpilot.policies.fixed import Fixed
from pnpilot.policies.learned import Learned
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.safety import Monitor
from pnpilot.solvers import SOLVERS, build_solver
from pnpilot.step import Step
from pnpilot.tasks import TASKS, build_task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.trace import Trace
from pnpilot.types import Action
from pnpilot.weights import read_card, save_weights, shipped_weights
from tests.conftest import phantom
from tests.contracts import assert_close, example_problem, problem_of


@pytest.mark.parametrize("solver_name", SOLVERS)
@pytest.mark.parametrize("task_name", TASKS)
def test_the_planes_exist_for_every_problem(task_name: str, solver_name: str) -> None:
    problem, _ = example_problem(build_task(task_name))
    solver = build_solver(solver_name)
    if not solver.needs <= problem.offers:
        pytest.skip("this solver does not fit this problem")
    policy = Learned(solver, width=8)
    planes = policy.planes(problem, solver.init(problem), torch.tensor([0.0, 3.0]))
    assert planes.shape == (2, policy.network.encoder.channels, 32, 32)
    assert planes.dtype == torch.float32
    assert planes[:, -3].mean((1, 2)).tolist() == pytest.approx([0.0, 0.5])  # progress
    alone = policy.planes(
        problem.select(torch.tensor([1])), solver.init(problem.select(torch.tensor([1]))), torch.tensor([3.0])
    )
    assert_close(planes[1:], alone)


def test_the_papers_observation_has_its_channels() -> None:
    counts = {}
    for name, solver_name in (("csmri", "admm"), ("phase", "inexact-admm")):
        problem, _ = example_problem(build_task(name))
        solver = build_solver(solver_name)
        counts[name] = OBSERVATIONS["paper"](problem, solver, solver.init(problem), torch.zeros(2)).shape[1]
    assert counts == {"csmri": 9, "phase": 17}


def test_an_untrained_policy_sets_the_solvers_defaults_and_goes_on() -> None:
    problem, _ = example_problem(CSMRI())
    solver = build_solver("admm")
    action = Learned(solver)(problem, solver.init(problem), 0)
    assert action.iterations == 5
    assert_close(action.params["sigma"], torch.full((2, 5), 15 / 255), 0.05)
    assert_close(action.params["mu"], torch.full((2, 5), 0.1), 0.05)
    assert not action.stop.any()
    assert action.stop_probability is not None and (action.stop_probability < 0.5).all()


@pytest.mark.parametrize("name", ["admm", "inexact-admm"])
def test_knobs_span_the_declared_ranges(name: str) -> None:
    """But for what networks do not set."""
    solver = build_solver(name)
    actor = Actor(solver.params, 6, width=8, iterations=2)
    for share in (0.0, 1.0):
        settings = actor.scaled(torch.full((3, 3, 2), share))
        for name, limits in solver.params.items():
            assert settings[name].shape == (3, 2)
            expected = limits.default if not limits.learned else limits.high if share else limits.low
            assert_close(settings[name], torch.full((3, 2), expected))


def test_gradients_reach_every_weight() -> None:
    actor, critic = Actor(build_solver("admm").params, 6, width=8), Critic(6, width=8)
    planes = torch.rand(2, 6, 32, 32)
    choice = actor(planes)
    (choice.logit.sum() + choice.onward.square().sum() + choice.last.square().sum() + critic(planes).sum()).backward()
    for module in (actor, critic):
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def saved_policy(folder: Path, **changes: Any) -> Path:
    """An untrained policy as training writes it."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"iterations": 6, "per_decision": 2, "width": 8, "observation": "universal", "channels": 6}
    card = {"method": "learned", "task": "csmri", "solver": "admm", "denoiser": "compact", "shape": shape, **changes}
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(Learned(build_solver("admm"), **shape).network, "learned-csmri-admm", folder, card)
    return folder


def test_a_trained_folder_is_a_model(tmp_path: Path) -> None:
    model = PnPilot.from_pretrained(saved_policy(tmp_path / "run"), real=True)
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    result = model.reconstruct(y, physics)
    assert [record["iterations"] for record in result.trace] == [6, 6]
    assert result.trace[0]["decided_at"] == [2, 4, 6]
    assert len(result.trace[0]["stop_probability"]) == 3
    json.dumps(result.trace, allow_nan=False)
    assert len(list(model.parameters())) > len(list(model.denoiser.parameters()))  # so that .to() moves the policy too


def test_a_policy_for_another_solver_or_denoiser_is_refused_with_both_names(tmp_path: Path, smoother: Denoiser) -> None:
    policy = Learned.find(saved_policy(tmp_path / "run"))
    with pytest.raises(Incompatible, match="solver 'admm', not for 'hqs'"):
        PnPilot(solver="hqs", policy=policy)
    smoother.name = "smoother"
    with pytest.raises(Incompatible, match="denoiser 'compact', not with 'smoother'"):
        PnPilot(smoother, policy=policy)
    with pytest.raises(Incompatible, match="denoiser 'compact', not with 'smoother'"):
        PnPilot.from_pretrained("csmri", denoiser=smoother)


def test_missing_and_wrong_policies_are_explained(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no policy for 'knitting' ships.*csmri \(admm\)"):
        PnPilot.from_pretrained("knitting")
    with pytest.raises(UnknownName, match="'csmri' with the solver 'amp'"):
        PnPilot.from_pretrained("csmri", solver="amp")
    with pytest.raises(UnknownName, match=r"no policy for '/no/such' ships, and there is no such folder"):
        PnPilot.from_pretrained(Path("/no/such"))
    with pytest.raises(BadWeights, match="holds 0 policies"):
        PnPilot.from_pretrained(tmp_path)
    with pytest.raises(BadWeights, match="does not describe a policy"):
        PnPilot.from_pretrained(saved_policy(tmp_path / "odd", shape={"colour": "red"}))
    with pytest.raises(BadInput, match="from_pretrained"):
        PnPilot(policy="learned")


@pytest.mark.parametrize("name", shipped_weights("learned-*"))
def test_shipped_policies_are_small_and_say_how_they_were_made(name: str) -> None:
    card = read_card(name)
    assert card["bytes"] <= 6_000_000
    assert card["command"].startswith(f"pnpilot train policy --task {card['task']} --solver {card['solver']} ")
    assert name == f"{card['method']}-{card['task']}-{card['solver']}"


class Wild(Fixed):
    """Makes the second image of a batch diverge, as a policy might that never saw such an image."""

    name = "wild"
    stops = True

    def __init__(self, solver: Any, iterations: int, how: str) -> None:
        super().__init__(solver, iterations)
        self.how = how

    def __call__(self, problem: Problem, state: object, t: int) -> Action:
        action = super().__call__(problem, state, t)
        value = torch.tensor([[1.0], [float("nan") if self.how == "nan" else 40.0]])
        return action._replace(params={**action.params, "tau": value})


@pytest.mark.parametrize("how", ["nan", "growth"])
def test_a_diverging_image_falls_back_to_the_schedule(how: str, smoother: Denoiser) -> None:
    task = build_task("phase")
    truth = phantom(32, 32)
    y, physics = task.simulate(truth, task.settings[0])
    model = PnPilot(smoother, policy=Wild(build_solver("inexact-admm"), 8, how))
    with pytest.warns(UserWarning, match=r"image 1 failed under the policy 'wild': 'schedule' took over"):
        image = model(y, physics)
    result = model.reconstruct(y, physics)
    (line,) = result.warnings
    assert line.startswith("image 1 failed under the policy 'wild': 'schedule' took over, and is ")
    assert [record["policy"] for record in result.trace] == ["wild", "schedule"]
    assert [record["solver"] for record in result.trace] == ["inexact-admm", "admm"]
    assert result.trace[1]["fallback"] == "failed under 'wild'"
    assert "fallback" not in result.trace[0]
    json.dumps(result.trace, allow_nan=False)
    safe = PnPilot(smoother, policy="schedule")(y, physics)
    assert_close(image[1:], safe[1:])
    assert torch.equal(result.image, image)
    assert psnr(image[1:], truth[1:]) > 15


def test_a_misfit_that_grows_is_a_divergence() -> None:
    """Even if it still explains the data better than an empty image."""
    truth = phantom(32, 32, 3)
    y, physics = CSMRI().simulate(truth, CSMRI.setting(2, 5))
    problem = open_problem(y, physics, Hints(peak=1.0, real=True))
    solver, stay = build_solver("admm"), problem.all_active()
    policy = Turns(solver)
    monitor, action, history = Monitor(problem, policy), Action({}, ~stay), Trace(solver, policy.name, 2)
    for index, shares in enumerate(((1.0, 1.0, 1.0), (1.0, 0.5, 0.95))):
        image = torch.tensor(shares)[:, None, None, None] * truth
        state = solver.State(image, image, image)
        monitor.look(Step(index, index == 1, image, state, action, stay, stay, torch.ones(3), history, problem))
    assert monitor.far.tolist() == [False, True, False]


class Turns(Fixed):
    """Stops the first image after two iterations."""

    stops = True

    def __call__(self, problem: Problem, state: object, t: int) -> Action:
        stop = ~problem.all_active()
        stop[0] = t == 1
        return super().__call__(problem, state, t)._replace(stop=stop)


def test_an_image_with_a_phase_keeps_it_when_it_stops_before_real_ones(smoother: Denoiser) -> None:
    truth = phantom(32, 32, 2)
    y, physics = CSMRI().simulate(truth, CSMRI.setting(2, 5))
    ramp = torch.linspace(-3, 3, 32)
    y[0] = physics(torch.cat([truth * torch.cos(ramp), truth * torch.sin(ramp)], 1))[0]
    model = PnPilot(smoother, policy=Turns(build_solver("admm"), 6, sigma=0.05, mu=0.3))
    result = model.reconstruct(y, physics)
    assert result.warnings == []
    assert [record["iterations"] for record in result.trace] == [2, 6]
    alone = PnPilot(smoother, policy=Fixed(build_solver("admm"), 2, sigma=0.05, mu=0.3))(y, physics)
    assert_close(result.image[:1], alone[:1])
    assert result.image[0, 1].abs().max() > 0.1
    assert (result.image[1, 1] == 0).all()


def test_a_folder_of_a_tasks_name_does_not_hide_its_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "csmri").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Learned.find("csmri").task == "csmri"


def test_a_trained_folder_is_refused_for_another_solver_or_other_weights(tmp_path: Path) -> None:
    with pytest.raises(Incompatible, match="is for the solver 'admm', not for 'hqs'"):
        PnPilot.from_pretrained(saved_policy(tmp_path / "run"), solver="hqs")
    with pytest.raises(Incompatible, match="other weights of the denoiser 'compact': sha256 abc"):
        PnPilot.from_pretrained(saved_policy(tmp_path / "other", denoiser_sha256="abc"))


def test_a_policy_that_looks_for_other_planes_is_refused() -> None:
    policy = Learned(build_solver("admm"), observation="paper", width=8, channels=5)
    problem = problem_of(phantom(32, 32), "x4 sigma=15")
    with pytest.raises(Incompatible, match="looks at 5 planes, and this problem shows 9"):
        policy(problem, policy.solver.init(problem), 0)
