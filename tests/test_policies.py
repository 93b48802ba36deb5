"""Hand-made policies: what they set, and that searches find known optima."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, Incompatible, UnknownName
from pnpilot.metrics import psnr
from pnpilot.policies import POLICIES, build_policy
from pnpilot.policies.fixed import Fixed
from pnpilot.policies.oracle import BestStop, FixedOptimal, Oracle, psnr_curve
from pnpilot.policies.schedules import Schedule
from pnpilot.reconstruct import rollout
from pnpilot.solvers import SOLVERS, build_solver
from pnpilot.tasks import build_task
from pnpilot.tasks.csmri import CSMRI
from tests.contracts import assert_close, example_problem


@pytest.mark.parametrize("solver_name", SOLVERS)
@pytest.mark.parametrize("name", POLICIES)
def test_actions_have_every_parameter_for_every_image(name: str, solver_name: str, smoother: Denoiser) -> None:
    solver = build_solver(solver_name)
    problem, truth = example_problem(build_task("csmri"), batch=2)
    policy = POLICIES[name](solver, iterations=2)
    if policy.needs_truth:
        with pytest.raises(Incompatible, match="fitted to true images"):
            policy(problem, None, 0)
        policy.fit(problem, smoother, truth)
    action = policy(problem, solver.init(problem), 1)
    assert set(action.params) == set(solver.params)
    for parameter, value in action.params.items():
        assert value.shape == (2, action.iterations), parameter
        assert (value >= solver.params[parameter].low).all(), parameter
        assert torch.isfinite(value).all(), parameter
    assert action.stop.tolist() == [False, False]


def test_fixed_is_the_papers() -> None:
    problem, _ = example_problem(CSMRI())
    action = Fixed(build_solver("admm"))(problem, None, 17)
    assert_close(action.params["sigma"], torch.full((2, 1), 15 / 255))
    assert_close(action.params["mu"], torch.full((2, 1), 0.1))


@pytest.mark.parametrize(("name", "last", "weight"), [("dpir", 5 / 255, 0.23), ("ircnn", 15 / 255, 1 / 3)])
def test_schedules_fall_log_linearly(name: str, last: float, weight: float) -> None:
    problem, _ = example_problem(CSMRI())  # its noise level is 5/255
    policy = build_policy(name, build_solver("admm"))
    actions = [policy(problem, None, t) for t in range(30)]
    sigma = torch.stack([action.params["sigma"][0, 0] for action in actions])
    mu = torch.stack([action.params["mu"][0, 0] for action in actions])
    expected = torch.logspace(math.log10(49 / 255), math.log10(last), 30)
    assert_close(sigma, expected)
    assert_close(mu, weight * (5 / 255) ** 2 / expected**2)


def test_schedule_follows_each_images_noise_and_needs_it() -> None:
    problem, _ = example_problem(CSMRI(), sigma_n=torch.tensor([0.01, 0.05]))
    action = Schedule(build_solver("admm"), last=1.0)(problem, None, 29)
    assert_close(action.params["sigma"][:, 0], torch.tensor([0.01, 0.05]))
    object.__setattr__(problem.units, "sigma_n", None)
    with pytest.raises(Incompatible, match="follows the noise level"):
        Schedule(build_solver("admm"))(problem, None, 0)


def test_wrong_parameters_are_refused() -> None:
    solver = build_solver("admm")
    with pytest.raises(UnknownName, match="no parameter 'tau'; it has: sigma, mu"):
        Fixed(solver, tau=1.0)
    with pytest.raises(BadInput, match=r"mu must be a number from 0\.0001 to 1"):
        Fixed(solver, mu=-1.0)
    with pytest.raises(BadInput, match="sigma must be a number"):
        Fixed(solver, sigma=float("nan"))
    with pytest.raises(BadInput, match=r"sigma must be a number from 0 to 0\.27"):
        Fixed(solver, sigma=15)
    with pytest.raises(BadInput, match="at least one iteration"):
        Fixed(solver, 0)
    with pytest.raises(BadInput, match="positive constants"):
        Schedule(solver, last=-1.0)
    problem, _ = example_problem(CSMRI())
    with pytest.raises(BadInput, match="3 sigma for 2 images"):
        Fixed(solver, sigma=torch.full((3,), 0.1))(problem, None, 0)


class Peaked(Denoiser):
    """A toy whose best strength is known: the image is exact when σ equals the target, and off by |log σ/target|."""

    def __init__(self, truth: Tensor, targets: Tensor) -> None:
        super().__init__()
        self.truth, self.targets = truth, targets

    def forward(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        levels = torch.as_tensor(sigma)
        # Which image each row belongs to is recognised by its brightest pixel.
        rows = (x.amax((1, 2, 3))[:, None] - self.truth.amax((1, 2, 3))[None]).abs().argmin(1)
        off = (levels.log() - self.targets[rows].log()).abs()
        return self.truth[rows] * (1 - 0.2 * off[:, None, None, None])


def test_search_finds_the_known_optimum() -> None:
    problem, _ = example_problem(CSMRI(), batch=2)
    problem.y = problem.y * torch.tensor([0.3, 0.9])[:, None, None, None]
    truth = problem.x0().real.clamp(0, 1)
    targets = torch.tensor([9 / 255, 33 / 255])
    denoiser, solver = Peaked(truth, targets), build_solver("hqs")
    oracle = Oracle(solver, iterations=1)
    oracle.fit(problem, denoiser, truth)
    assert ((oracle.values["sigma"] / targets).log().abs() < 0.06).all()

    shared = FixedOptimal(solver, iterations=1)
    shared.fit(problem, denoiser, truth)
    assert shared.values["sigma"].shape == (1,)  # so that it can be used on other images
    assert targets[0] * 0.95 < shared.values["sigma"][0] < targets[1] * 1.05


def test_oracle_beats_fixed_optimal_beats_fixed(smoother: Denoiser) -> None:
    problem, truth = example_problem(CSMRI(), batch=3)
    solver = build_solver("admm")

    def score(policy: object) -> Tensor:
        policy.fit(problem, smoother, truth)  # type: ignore[attr-defined]
        *_, last = rollout(problem, solver, smoother, policy)  # type: ignore[arg-type]
        return psnr(last.image, truth)

    fixed, shared, own = (
        score(build_policy(name, solver, iterations=6)) for name in ("fixed", "fixed-optimal", "oracle")
    )
    assert shared.mean() >= fixed.mean()
    assert (own >= shared - 1e-4).all()
    starred = score(BestStop(build_policy("oracle", solver, iterations=6)))
    assert (starred >= own - 1e-4).all()


def test_best_stop_stops_each_image_at_its_best(smoother: Denoiser) -> None:
    problem, truth = example_problem(CSMRI(), batch=3)
    solver = build_solver("admm")
    inner = Fixed(solver, 12, sigma=40 / 255, mu=0.3)
    policy = BestStop(inner)
    with pytest.raises(Incompatible, match="true images first"):
        policy(problem, None, 0)
    policy.fit(problem, smoother, truth)
    curve = psnr_curve(problem, solver, smoother, inner, truth)
    *_, last = rollout(problem, solver, smoother, policy)
    assert_close(psnr(last.image, truth), curve.amax(0), 1e-5)
    assert last.iterations.tolist() == (curve.argmax(0) + 1).tolist()


def test_a_search_takes_real_and_complex_images_together(smoother: Denoiser) -> None:
    problem, truth = example_problem(CSMRI(), batch=3)
    problem.units = replace(problem.units, real=torch.tensor([True, False, True]))
    solver = build_solver("admm")
    oracle = build_policy("oracle", solver, iterations=2)
    oracle.fit(problem, smoother, truth)
    one = problem.select(torch.tensor([1]))
    alone = build_policy("oracle", solver, iterations=2)
    alone.fit(one, smoother, truth[1:2])
    *_, last = rollout(problem, solver, smoother, oracle)
    *_, single = rollout(one, solver, smoother, alone)
    assert psnr(last.image, truth)[1] == pytest.approx(psnr(single.image, truth[1:2])[0].item(), abs=0.05)
