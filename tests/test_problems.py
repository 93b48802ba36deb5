"""Contracts of the problems, each run with every task that leads to it; then refusals."""

from __future__ import annotations

import pytest
import torch
from deepinv.physics import Denoising, Physics
from torch import Tensor

from pnpilot.errors import BadInput, Incompatible
from pnpilot.physics import SinglePhoton
from pnpilot.physics.coded_diffraction import back, fields
from pnpilot.problems import PROBLEMS, Hints, Problem, open_problem
from pnpilot.problems._data import energy
from pnpilot.problems._least_squares import START_TOLERANCE, TOLERANCE, LeastSquares
from pnpilot.problems.amplitudes import AmplitudeProblem
from pnpilot.problems.linear import LinearProblem, has_closed_form
from pnpilot.problems.multi_coil import MultiCoil
from pnpilot.problems.noncartesian import NonCartesianProblem
from pnpilot.problems.photons import PhotonLimited
from pnpilot.solvers import build_solver
from pnpilot.tasks import TASKS, build_task
from pnpilot.types import per_sample
from tests.conftest import phantom
from tests.contracts import amplitude_problem, assert_close, example_problem, inner, own_tensors, pictures, random_like


def reached(name: str) -> str:
    """The problem that the data of a task are opened as."""
    return example_problem(build_task(name), batch=1)[0].name


REACHED = {name: reached(name) for name in TASKS}
"""The problem that each task leads to."""
SLOW = dict.fromkeys(("varying-blur", "coded-fourier", "poisson-deblurring", "spiral"), 4e-4)
"""What seven iterations leave of data steps that take more than others."""
EACH_TASK = [pytest.param(task, id=f"{task}-{problem}") for task, problem in REACHED.items()]


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_is_reached_by_a_task(name: str) -> None:
    """Or else the contracts below would not run over it."""
    wanted = PROBLEMS[name].physics_type.__name__
    assert name in REACHED.values(), f"register a task whose physics is a {wanted}: none leads to the problem {name!r}"


# What every problem must keep to.


@pytest.mark.parametrize("name", EACH_TASK)
def test_adjoint_is_the_adjoint(name: str) -> None:
    problem, _ = example_problem(build_task(name))
    if "linear" not in problem.offers:
        pytest.skip("not linear")
    x, y = random_like(problem.x0(), 1), random_like(problem.y, 2)
    left, right = inner(problem.A(x), y), inner(x, problem.A_adjoint(y))
    scale = problem.A(x).flatten(1).norm(dim=1) * y.flatten(1).norm(dim=1)
    assert ((left - right).abs() / scale).max() < 1e-5


def iterates(problem: Problem) -> bool:
    """Whether its data step takes conjugate gradients."""
    if isinstance(problem, LinearProblem):
        return not has_closed_form(problem.physics)
    return isinstance(problem, MultiCoil | NonCartesianProblem)


def left_over(problem: LeastSquares, z: Tensor, v: Tensor, mu: Tensor) -> Tensor:
    """‖Aᴴy + μv − (AᴴA + μ)z‖ over ‖Aᴴy + μv‖ (B,)."""
    weight = per_sample(mu, v)
    return ((energy(problem.grad(z) + weight * (z - v))) / energy(problem.back + weight * v)).sqrt()


@pytest.mark.parametrize("name", EACH_TASK)
def test_prox_is_optimal(name: str) -> None:
    """At z = prox(v): ∇D(z) + μ(z − v) = 0.

    Conjugate gradients get near to that from any v where μ is 0.3 or more, and there when they go on from what they
    found, for any μ.
    """
    problem, _ = example_problem(build_task(name))
    if not isinstance(problem, LeastSquares):
        pytest.skip("not linear: its data step is below")
    v = random_like(problem.x0(), 1)
    if iterates(problem):
        z = problem.prox(v, mu := torch.tensor([0.3, 0.7]))
        assert (left_over(problem, z, v, mu) < SLOW.get(name, 1e-4)).all()
        z = problem.prox(v, mu := torch.tensor([0.01, 0.7]))
        for _ in range(10):
            z = problem.prox(v, mu, start=z)
        assert (left_over(problem, z, v, mu) < 1.1 * TOLERANCE).all()
    else:
        mu = torch.tensor([0.05, 0.7])
        z = problem.prox(v, mu)
        slope = problem.grad(z) + per_sample(mu, v) * (z - v)
        assert slope.abs().max() < 1e-4 * v.abs().max()


@pytest.mark.parametrize("name", EACH_TASK)
def test_a_start_that_is_near_helps_the_data_step_or_is_not_needed(name: str) -> None:
    """Where the iterations from v do not get there; a closed form does not depend on it."""
    problem, _ = example_problem(build_task(name))
    v, mu = random_like(problem.x0(), 1), torch.tensor([0.005, 0.01])
    z = problem.prox(v, mu)
    near = z + 0.01 * random_like(v, 2)
    if not iterates(problem):
        assert torch.equal(problem.prox(v, mu, start=near), z)
        return
    assert isinstance(problem, LeastSquares)
    cold, warm = (left_over(problem, found, v, mu) for found in (z, problem.prox(v, mu, start=near)))
    assert (cold > 2 * TOLERANCE).all()
    assert (warm < 0.7 * cold).all()


def test_the_data_step_of_amplitudes_is_exact_for_the_phases_of_the_field() -> None:
    """At z: A†(Az − y·Av/|Av|) + μ(z − v) = 0; and the objective D(z) + μ/2 ‖z − v‖² is below the one at v."""
    problem = amplitude_problem(phantom(32, 32))
    for seed, mu in enumerate(torch.tensor([[1e-4, 0.01], [0.1, 1.0]])):
        v = random_like(problem.x0(), seed)
        z = problem.prox(v, mu)
        towards = problem.y * torch.sgn(fields(problem.masks, v))
        slope = back(problem.masks, fields(problem.masks, z) - towards) + per_sample(mu, v) * (z - v)
        assert slope.abs().max() < 1e-5 * v.abs().max()
        assert (problem.D(z) + mu / 2 * energy(z - v) < problem.D(v)).all()


@pytest.mark.parametrize("name", EACH_TASK)
def test_gradients_reach_the_penalty(name: str) -> None:
    problem, _ = example_problem(build_task(name))
    if "prox" not in problem.offers:
        pytest.skip("no data step")
    mu = torch.tensor([0.1, 0.2], requires_grad=True)
    problem.prox(problem.x0() * 0.5, mu).abs().square().sum().backward()
    assert mu.grad is not None
    assert (mu.grad != 0).all()
    assert torch.isfinite(mu.grad).all()


@pytest.mark.parametrize("name", EACH_TASK)
def test_gradient_is_the_gradient(name: str) -> None:
    """∇D agrees with finite differences of D along a direction."""
    problem, truth = example_problem(build_task(name))
    x = problem.x0() * 0.5 + truth * 0.5
    direction = random_like(x, 4) * 0.1

    step = 1e-2
    slope = (problem.D(x + step * direction).double() - problem.D(x - step * direction).double()) / (2 * step)
    expected = inner(problem.grad(x), direction).double()
    assert ((slope - expected).abs() / expected.abs().clamp_min(1e-3)).max() < 1e-2


@pytest.mark.parametrize("name", EACH_TASK)
def test_the_data_term_agrees_with_its_gradient(name: str) -> None:
    """By automatic differentiation; for a complex image that gives ∂D/∂x with respect to both parts."""
    problem, truth = example_problem(build_task(name), size=24)
    x = (0.7 * problem.x0() + 0.3 * truth).detach().requires_grad_()
    (slope,) = torch.autograd.grad(problem.D(x).sum(), x)
    assert_close(slope, problem.grad(x).detach(), 1e-3)


@pytest.mark.parametrize("name", EACH_TASK)
def test_the_truth_is_about_one_noise_level_from_its_data(name: str) -> None:
    problem, truth = example_problem(build_task(name), size=48)
    assert (problem.fidelity(truth.to(problem.x0().dtype)) - 1).abs().max() < 0.15


@pytest.mark.parametrize("name", EACH_TASK)
def test_batch_equals_one_by_one(name: str) -> None:
    problem, _ = example_problem(build_task(name), batch=3)
    v, mu = random_like(problem.x0(), 5), torch.tensor([0.05, 0.2, 0.9])
    for index in range(3):
        one = problem.select(torch.tensor([index]))
        assert_close(one.x0(), problem.x0()[index : index + 1])
        assert_close(one.grad(v[index : index + 1]), problem.grad(v)[index : index + 1])
        if "prox" in problem.offers:
            assert_close(one.prox(v[index : index + 1], mu[index : index + 1]), problem.prox(v, mu)[index : index + 1])


@pytest.mark.parametrize("name", EACH_TASK)
def test_a_selection_can_be_undone_and_leaves_nothing_behind(name: str) -> None:
    problem, _ = example_problem(build_task(name), batch=3)
    order = torch.tensor([2, 0, 1])
    back = problem.select(order).select(order.argsort())
    assert type(back) is type(problem)
    assert back.made_from is problem.made_from
    assert back.offers == problem.offers
    assert own_tensors(back).keys() == own_tensors(problem).keys()
    assert all(torch.equal(value, own_tensors(problem)[key]) for key, value in own_tensors(back).items())
    assert_close(back.grad(problem.x0() / 2), problem.grad(problem.x0() / 2))
    short = own_tensors(problem.select(torch.tensor([1])))
    batched = [key for key, value in own_tensors(problem).items() if value.shape[:1] == (3,)]
    assert all(len(short[key]) == 1 for key in batched), "a tensor that is missing in `per_image`"


@pytest.mark.parametrize("name", EACH_TASK)
def test_all_of_a_problem_moves_to_another_device_and_the_original_stays(name: str) -> None:
    """`meta` is a device that every machine has."""
    problem, _ = example_problem(build_task(name))
    before = {key: value.clone() for key, value in own_tensors(problem).items()}
    moved = problem.to(torch.device("meta"))
    assert {value.device.type for value in own_tensors(moved).values()} == {"meta"}
    assert all(torch.equal(value, before[key]) for key, value in own_tensors(problem).items())
    same = problem.to(torch.device("cpu"))
    assert_close(same.grad(problem.x0() / 2), problem.grad(problem.x0() / 2))


@pytest.mark.parametrize("name", EACH_TASK)
def test_images_survive_the_way_in_and_out(name: str) -> None:
    """embed, extract and export agree on the layout, also for colour where the task takes it."""
    task = build_task(name)
    for channels in task.channels:
        truth = phantom(32, 32, 2).repeat(1, channels, 1, 1)
        assert torch.equal(task.extract(task.embed(truth)), truth)
        y, physics = task.simulate(truth, task.settings[0])
        problem = open_problem(y, physics, Hints(peak=2.0, real=True))
        assert_close(task.extract(problem.export(truth / 2)), truth)
        assert problem.export(truth / 2).shape == task.embed(truth).shape


def start_agrees_to(name: str) -> float:
    """How far two starts that should be equal may be apart: rounding may decide when conjugate gradients stop."""
    return 1e-5 if REACHED[name] in ("masked-fourier", "amplitudes") else 30 * START_TOLERANCE


@pytest.mark.parametrize("name", EACH_TASK)
def test_units_scale_with_the_data(name: str) -> None:
    """And with their noise level, which the start depends on."""
    if REACHED[name] == "single-photon":
        pytest.skip("shares of ones have a scale of their own")
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0], seed=3)
    small, large = open_problem(y, physics, Hints(sigma_n=0.02)), open_problem(7 * y, physics, Hints(sigma_n=0.14))
    agree = start_agrees_to(name)
    assert_close(large.y, small.y, agree)
    assert_close(large.units.peak, 7 * small.units.peak, agree)
    assert_close(large.export(large.x0()), 7 * small.export(small.x0()), agree)


@pytest.mark.parametrize("name", EACH_TASK)
def test_the_start_is_linear_in_the_data(name: str) -> None:
    """For a peak and a noise level that are told, up to where its conjugate gradients stop."""
    if REACHED[name] == "single-photon":
        pytest.skip("a logarithm")
    task = build_task(name)
    truth = pictures(task)
    y, physics = task.simulate(truth, task.settings[0], seed=3)
    other = physics(task.embed(0.7 * truth.flip(-1)))

    def start(data: Tensor) -> Tensor:
        return open_problem(data, physics, Hints(peak=1.0, sigma_n=5 / 255)).x0()

    if REACHED[name] == "amplitudes":
        assert torch.equal(start(y), torch.ones_like(start(y)))
    else:
        assert_close(start(0.6 * y - 1.5 * other), 0.6 * start(y) - 1.5 * start(other), start_agrees_to(name))


@pytest.mark.parametrize("name", EACH_TASK)
def test_kept_is_the_share_of_noise_that_the_operator_keeps(name: str) -> None:
    """The mean of ‖Ae‖²/‖e‖² over white noise e, where operators that are only applied are probed with one of them."""
    problem, _ = example_problem(build_task(name))
    if "linear" not in problem.offers:
        assert torch.equal(problem.kept, torch.ones(2))
        return
    noise = [random_like(problem.x0(), seed) for seed in range(100, 148)]
    shares = torch.stack([energy(problem.A(one)) / energy(one) for one in noise])
    spread = shares.std(0) / len(noise) ** 0.5
    if isinstance(problem, LinearProblem):
        spread = (spread.square() + shares.var(0)).sqrt()
    assert ((problem.kept - shares.mean(0)).abs() < 3 * spread + 1e-6).all()


BLURS = {"deblur", "motion-blur", "poisson-deblurring", "varying-blur"}


@pytest.mark.parametrize("name", EACH_TASK)
def test_blurs_measure_all_of_an_image_but_unevenly(name: str) -> None:
    """Masks of an image or of its k-space do not, whatever is missing, and neither do few views, or few pixels."""
    task = build_task(name)
    y, physics = task.simulate(pictures(task, 64, 64), task.settings[-1 if name == "tomography" else 0])
    problem = open_problem(y, physics, Hints(peak=1.0))
    blurred = torch.as_tensor(problem.blurred)
    if name == "tomography":
        assert ((blurred > 0) & (blurred < 1)).all()  # two thirds of an image are measured
    else:
        assert (blurred > 0.9).all() if name in BLURS else (blurred == 0).all()


def test_photons_make_no_blur_and_no_gaps() -> None:
    """Dark parts, which count more than bright ones, change neither."""
    task = build_task("poisson-deblurring")
    truth = torch.full((1, 1, 64, 64), 0.05)
    truth[..., 40:, :] = 1.0
    y, physics = task.simulate(truth, task.settings[0])
    problem, plain = open_problem(y, physics), open_problem(y, physics, Hints(sigma_n=0.1))
    assert isinstance(problem, PhotonLimited) and not isinstance(plain, PhotonLimited)
    assert torch.equal(torch.as_tensor(problem.blurred), torch.as_tensor(plain.blurred))
    assert (torch.as_tensor(plain.blurred) > 0.9).all()
    physics = Denoising(physics.noise_model)
    assert (torch.as_tensor(open_problem(physics(truth), physics).blurred) == 0).all()


# What is refused.


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", EACH_TASK)
def test_broken_numbers_are_refused(name: str, bad: float) -> None:
    task = build_task(name)
    y, physics = task.simulate(pictures(task, batch=1), task.settings[0])
    y.view(-1)[99] = bad
    with pytest.raises(BadInput, match="1 NaN or infinite"):
        open_problem(y, physics)


@pytest.mark.parametrize("name", EACH_TASK)
def test_empty_data_wrong_shapes_and_hints_are_refused(name: str) -> None:
    task = build_task(name)
    y, physics = task.simulate(pictures(task, batch=1), task.settings[0])
    with pytest.raises(BadInput, match="all zeros"):
        open_problem(torch.zeros_like(y), physics)
    if not isinstance(physics, Denoising | SinglePhoton):  # those measure pixel by pixel: any size fits
        with pytest.raises(BadInput):
            open_problem(y[..., :-3, :-5], physics)
    with pytest.raises(BadInput, match="must be a tensor"):
        open_problem(y.flatten(), physics)
    with pytest.raises(BadInput, match="noise level must be"):
        open_problem(y, physics, Hints(sigma_n=-1.0))
    with pytest.raises(BadInput, match="a number, or 'estimate', got 'loud'"):
        open_problem(y, physics, Hints(sigma_n="loud"))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="noise levels for 1 images"):
        open_problem(y, physics, Hints(sigma_n=torch.ones(3)))
    with pytest.raises(BadInput, match="3 peaks for 1 images"):
        open_problem(y, physics, Hints(peak=torch.ones(3)))
    with pytest.raises(BadInput, match="peak must be a positive"):
        open_problem(y, physics, Hints(peak=0.0))


def test_unknown_physics_is_refused() -> None:
    with pytest.raises(Incompatible, match="no way to reconstruct from a Physics: a physics must") as caught:
        open_problem(torch.ones(1, 1, 4, 4), Physics())
    for name in PROBLEMS:
        assert PROBLEMS[name].physics_type.__name__ in str(caught.value)


@pytest.mark.parametrize("name", ["csmri", "deblur", "inpainting", "multi-coil", "super-resolution", "tomography"])
def test_linear_tasks_offer_all_and_take_admm(name: str) -> None:
    problem, _ = example_problem(build_task(name))
    assert problem.offers == {"prox", "grad", "linear"}
    assert build_solver("auto", problem.offers).name == "admm"


def test_amplitudes_offer_a_data_step_and_no_operator() -> None:
    problem = amplitude_problem(phantom(32, 32))
    assert isinstance(problem, AmplitudeProblem)
    assert problem.offers == {"prox", "grad"}
    assert build_solver("auto", problem.offers).name == "admm"


def test_a_wrong_hint_is_not_blamed_on_the_data() -> None:
    y, physics = build_task("tomography").simulate(phantom(32, 32), build_task("tomography").settings[0])
    with pytest.raises(BadInput, match=r"^the noise level must be a number"):
        open_problem(y, physics, Hints(sigma_n=-1.0))
