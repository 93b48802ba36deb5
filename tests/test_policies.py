"""Hand-made policies: what they set."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from deepinv.physics import Denoising, GaussianNoise
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.errors import BadInput, Incompatible, UnknownName
from pnpilot.metrics import psnr
from pnpilot.policies import POLICIES, build_policy
from pnpilot.policies.fixed import Fixed
from pnpilot.policies.schedules import Schedule, patient
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.problems.linear import LinearProblem
from pnpilot.reconstruct import rollout
from pnpilot.solvers import SOLVERS, build_solver
from pnpilot.tasks import build_task
from pnpilot.tasks.csmri import CSMRI
from tests.conftest import phantom
from tests.contracts import amplitude_problem, assert_close, example_problem


@pytest.mark.parametrize("solver_name", SOLVERS)
@pytest.mark.parametrize("name", POLICIES)
def test_actions_have_every_parameter_for_every_image(name: str, solver_name: str) -> None:
    solver = build_solver(solver_name)
    problem, _ = example_problem(build_task("csmri"), batch=2)
    policy = POLICIES[name](solver, iterations=2)
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


@pytest.mark.parametrize(
    ("name", "first", "last", "weight"),
    [
        ("schedule", 35 / 255, None, 1.0),
        ("dpir-schedule", 49 / 255, 5 / 255, 0.23),
        ("ircnn-schedule", 49 / 255, 15 / 255, 1 / 3),
    ],
)
def test_schedules_fall_log_linearly(name: str, first: float, last: float | None, weight: float) -> None:
    """Ours to the noise level of the back-projection, σ_n/√κ."""
    problem, _ = example_problem(CSMRI())  # its noise level is 5/255
    last = 5 / 255 / problem.kept[0].item() ** 0.5 if last is None else last
    policy = build_policy(name, build_solver("admm"))
    actions = [policy(problem, None, t) for t in range(30)]
    sigma = torch.stack([action.params["sigma"][0, 0] for action in actions])
    mu = torch.stack([action.params["mu"][0, 0] for action in actions])
    expected = torch.logspace(math.log10(first), math.log10(last), 30)
    assert_close(sigma, expected)
    assert_close(mu, weight * (5 / 255) ** 2 / expected**2)


def test_schedule_follows_each_images_noise_and_needs_it() -> None:
    problem, _ = example_problem(CSMRI(), sigma_n=torch.tensor([0.01, 0.05]))
    action = Schedule(build_solver("admm"))(problem, None, 29)
    assert_close(action.params["sigma"][:, 0], torch.tensor([0.01, 0.05]) / problem.kept.sqrt())
    assert (problem.kept < 0.6).all()
    object.__setattr__(problem.units, "sigma_n", None)
    with pytest.raises(Incompatible, match="follows the noise level"):
        Schedule(build_solver("admm"))(problem, None, 0)


@pytest.mark.parametrize(("factor", "sigma"), [(1.0, 5 / 255), (0.4, 25 / 255), (1.0, 0.2), (2.0, 0.15)])
def test_the_schedule_ends_at_the_noise_level_where_all_is_kept(factor: float, sigma: float) -> None:
    """It never rises, and never goes beyond what the denoiser is trained for: strong noise has it from the start."""
    physics, policy = Denoising(GaussianNoise(sigma)), Schedule(build_solver("admm"), last=factor)
    problem = open_problem(physics(phantom(32, 32)), physics, Hints(peak=1.0))
    assert_close(problem.kept, torch.ones(2))
    first, last = (policy(problem, None, t).params["sigma"][:, 0] for t in (0, 29))
    level = min(factor * sigma, 70 / 255)
    assert_close(first, torch.full((2,), max(level, 35 / 255)))
    assert_close(last, torch.full((2,), level))


@pytest.mark.parametrize("solver", ["admm", "hqs", "pg", "apg"])
def test_strong_noise_is_weighed_beyond_what_the_denoiser_is_trained_for(solver: str) -> None:
    """With μ held at 1, or τ, the data were fitted so closely that images were worse than their start."""
    physics, truth = Denoising(GaussianNoise(0.6, rng=torch.Generator().manual_seed(0))), phantom(64, 64)
    y = physics(truth)
    problem = open_problem(y, physics)
    assert problem.units.sigma_n is not None
    params = Schedule(build_solver(solver))(problem, None, 29).params
    weight = params["mu"] if "mu" in params else 1 / params["tau"]
    assert_close(weight[:, 0], (problem.units.sigma_n / (70 / 255)).square())
    start = problem.export(problem.x0())
    assert (psnr(PnPilot(solver=solver)(y, physics), truth) > psnr(start, truth) + 5).all()


def test_the_schedule_counts_amplitudes_that_are_averaged() -> None:
    """D is a mean over the masks, whose noise falls with their number; of a field, an amplitude measures one part."""
    problem = amplitude_problem(phantom(32, 32), alpha=27, masks=6)
    action = Schedule(build_solver("admm"))(problem, None, 29)
    assert_close(action.params["sigma"][:, 0], torch.full((2,), 27 / 510 / 12**0.5))


def test_behind_a_blur_the_schedule_forgets_and_weighs_less() -> None:
    blur, _ = example_problem(build_task("deblur"))
    gaps, _ = example_problem(build_task("inpainting"))
    assert_close(torch.as_tensor(blur.blurred), torch.ones(2))
    assert_close(torch.as_tensor(gaps.blurred), torch.zeros(2))

    def last(problem: Problem, solver: str) -> dict[str, Tensor]:
        return Schedule(build_solver(solver))(problem, None, 29).params

    for problem, memory, weight in ((blur, 0.7, 0.6), (gaps, 1.0, 1.0)):
        params = last(problem, "admm")
        assert_close(params["memory"], torch.full((2, 1), memory))
        # At its end σ_k is σ_n/√κ, so that μ_k is κ.
        assert_close(params["mu"][:, 0], weight * problem.kept)
    assert_close(last(blur, "hqs")["mu"][:, 0], blur.kept)  # it cannot forget


@pytest.mark.parametrize(
    ("blurred", "told", "forgets"),
    [(1.0, 1.2, 1.0), (0.5, 1.0, 0.5), (1.0, 0.775, 0.5), (1.0, 0.69, 0.0), (1.0, math.nan, 0.0), (0.0, 1.0, 0.0)],
)
def test_it_forgets_where_the_noise_is_known(blurred: float, told: float, forgets: float) -> None:
    """Not where the data show more of it than is told, or do not show it."""
    problem, _ = example_problem(build_task("deblur"))
    assert isinstance(problem, LinearProblem) and problem.units.sigma_n is not None
    problem.blurred = torch.full((2,), blurred)
    problem.units = replace(problem.units, shown=problem.units.sigma_n / told)
    params = Schedule(build_solver("admm"))(problem, None, 0).params
    assert_close(params["memory"], torch.full((2, 1), 1 - 0.3 * forgets))
    assert_close(patient(build_solver("admm"))(problem, None, 0).params["memory"], torch.ones(2, 1))


def test_a_noise_level_that_is_too_low_does_not_ruin_a_blurred_image() -> None:
    """With a multiplier that forgets all the same, grain is left, and grows; and it is told."""
    task, truth = build_task("motion-blur"), phantom(64, 64, 1)
    y, physics = task.simulate(truth, task.settings[-1], seed=1)
    model = PnPilot(peak=1.0, real=True, sigma_n=0.65 * physics.noise_model.sigma)
    result = model.reconstruct(y, physics)
    assert "show 1.5" in result.warnings[0] and "the noise that was declared" in result.warnings[0]
    assert result.trace[0]["parameters"]["memory"] == [1.0] * 30

    problem = open_problem(y, physics, model.hints)
    problem.units = replace(problem.units, shown=problem.units.sigma_n)
    solver = build_solver("admm")
    with torch.no_grad():
        *_, unwary = rollout(problem, solver, model.denoiser, Schedule(solver))
    assert (psnr(result.image, truth) > psnr(unwary.image, truth) + 3).all()

    honest = PnPilot(peak=1.0, real=True).reconstruct(y, physics)
    assert not honest.warnings
    assert honest.trace[0]["parameters"]["memory"] == pytest.approx([0.7] * 30)


def test_wrong_parameters_are_refused() -> None:
    solver = build_solver("admm")
    with pytest.raises(UnknownName, match="no parameter 'tau'; it has: sigma, mu, memory"):
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
