"""Contracts of the solvers, and ADMM against deepinv's."""

from __future__ import annotations

import pytest
import torch
from deepinv.optim import ADMM as DeepinvADMM
from deepinv.optim import L2, PnP
from torch import Tensor

from pnpilot.denoisers import Denoiser
from pnpilot.errors import UnknownName
from pnpilot.metrics import psnr
from pnpilot.policies.fixed import Fixed
from pnpilot.prior import bounded, prior
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.problems._data import energy
from pnpilot.problems._least_squares import LeastSquares
from pnpilot.problems.single_photon import SinglePhotonProblem
from pnpilot.reconstruct import check_fit, rollout
from pnpilot.solvers import SOLVERS, Solver, build_solver
from pnpilot.tasks import TASKS, build_task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from pnpilot.transition import transition
from pnpilot.types import Action, Denoise, per_sample, to_two_channels
from tests.conftest import Smoother, phantom
from tests.contracts import assert_close, example_problem, inner


def home_of(solver: Solver) -> str:
    """A task whose problem gives the solver what it needs."""
    return "csmri" if "prox" in solver.needs or "linear" in solver.needs else "phase"


def random_action(solver: Solver, batch: int, iterations: int) -> Action:
    generator = torch.Generator().manual_seed(1)
    params = {
        name: (limits.low + 0.2 * limits.high * (0.2 + torch.rand(batch, iterations, generator=generator)))
        for name, limits in solver.params.items()
    }
    return Action(params, stop=torch.zeros(batch, dtype=torch.bool))


@pytest.mark.parametrize("name", SOLVERS)
def test_each_says_who_published_it(name: str) -> None:
    reference = SOLVERS[name].reference
    assert reference.strip()
    assert "\n" not in reference


@pytest.mark.parametrize("name", SOLVERS)
def test_gradient_reaches_every_parameter_of_every_iteration(name: str, smoother: Denoiser) -> None:
    solver = build_solver(name)
    problem, truth = example_problem(CSMRI())
    action = random_action(solver, 2, 3)
    for value in action.params.values():
        value.requires_grad_()
    # From a state on the way: multipliers begin at zero.
    with torch.no_grad():
        start = transition(solver, prior(smoother, problem.units), problem, solver.init(problem), action)
    end = transition(solver, prior(smoother, problem.units), problem, start, action)
    psnr(solver.output(end), truth).sum().backward()
    for parameter, value in action.params.items():
        assert value.grad is not None, parameter
        assert torch.isfinite(value.grad).all(), parameter
        # The last data step comes after the last image: its parameters act on the next iteration only.
        assert (value.grad[:, :-1] != 0).all(), parameter


@pytest.mark.parametrize("name", SOLVERS)
def test_batch_with_own_parameters_equals_one_by_one(name: str, smoother: Denoiser) -> None:
    solver = build_solver(name)
    problem, _ = example_problem(build_task(home_of(solver)), batch=3)
    action = random_action(solver, 3, 2)
    together = solver.output(transition(solver, prior(smoother, problem.units), problem, solver.init(problem), action))
    for index in range(3):
        one = problem.select(torch.tensor([index]))
        mine = Action({key: value[index : index + 1] for key, value in action.params.items()}, action.stop[:1])
        alone = solver.output(transition(solver, prior(smoother, one.units), one, solver.init(one), mine))
        assert_close(alone, together[index : index + 1], 1e-4)


@pytest.mark.parametrize("name", SOLVERS)
def test_step_leaves_its_input_alone_and_repeats(name: str, smoother: Denoiser) -> None:
    solver = build_solver(name)
    problem, _ = example_problem(build_task(home_of(solver)))
    action, state = random_action(solver, 2, 2), solver.init(problem)
    before = [value.clone() for value in state]
    first = transition(solver, prior(smoother, problem.units), problem, state, action)
    again = transition(solver, prior(smoother, problem.units), problem, state, action)
    assert all(torch.equal(a, b) for a, b in zip(before, state, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def back_projection(problem: Problem) -> Tensor:
    """The multiple of Aᴴy that fits the data best; of single photons the likeliest image; of amplitudes the start."""
    if isinstance(problem, SinglePhotonProblem):
        return -torch.log1p(-problem.y.clamp_max(0.99))
    if not isinstance(problem, LeastSquares):
        return problem.x0()
    seen = problem.A(problem.back)
    return problem.back * per_sample(inner(seen, problem.y) / energy(seen), problem.back)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_fitting_pair_stays_with_the_data(name: str, task: str, smoother: Denoiser) -> None:
    """With parameters that suit a weak denoiser, no pair diverges or loses what the data show without a prior."""
    solver = build_solver(name)
    problem, truth = example_problem(build_task(task))
    if not solver.needs <= problem.offers:
        pytest.skip("does not fit")
    if "sigma" not in solver.params:
        pytest.skip("sets the strength itself, and relies on a denoiser that removes most of the noise")
    policy = Fixed(solver, 20, sigma=0.01)
    *_, last = rollout(problem, solver, smoother, policy)
    image = bounded(solver.output(last.state), problem.units)
    assert torch.isfinite(last.image).all()
    assert (problem.fidelity(image) < 0.5 * problem.fidelity(torch.zeros_like(image))).all()
    assert (psnr(image, truth) > psnr(back_projection(problem), truth) - 1).all()


def by_hand(name: str, problem: Problem, denoise: Denoise, p: dict[str, Tensor]) -> Tensor:
    """Three iterations of a solver's equations, with the same parameters in each."""
    x = z = s = problem.x0()
    u = torch.zeros_like(x)
    for _ in range(3):
        if name == "pg":
            x = denoise(x - p["tau"] * problem.grad(x), p["sigma"].flatten())
        elif name == "apg":
            before, x = x, denoise(s - p["tau"] * problem.grad(s), p["sigma"].flatten())
            s = x + p["beta"] * (x - before)
        elif name == "hqs":
            x = denoise(z, p["sigma"].flatten())
            z = problem.prox(x, p["mu"].flatten())
        else:
            if name == "red-admm":
                x = p["lam"] * denoise(x, p["sigma"].flatten()) + p["mu"] * (z - u)
                x = x / (p["lam"] + p["mu"])
            else:
                x = denoise(z - u, p["sigma"].flatten())
            if name == "inexact-admm":
                z = z - p["tau"] * (problem.grad(z) + p["mu"] * (z - x - u))
            else:
                z = problem.prox(x + u, p["mu"].flatten())
            u = p.get("memory", 1.0) * u + x - z
    return x


@pytest.mark.parametrize("name", ["admm", "apg", "hqs", "inexact-admm", "pg", "red-admm"])
def test_steps_are_the_equations(name: str, smoother: Denoiser) -> None:
    solver = build_solver(name)
    problem, _ = example_problem(CSMRI())
    denoise, action = prior(smoother, problem.units), random_action(solver, 2, 1)
    state = solver.init(problem)
    for _ in range(3):
        state = transition(solver, denoise, problem, state, action)
    values = {key: value[:, 0][:, None, None, None] for key, value in action.params.items()}
    assert_close(solver.output(state), by_hand(name, problem, denoise, values))


def test_a_multiplier_that_forgets_evens_out_what_is_measured_strongly_and_weakly(smoother: Denoiser) -> None:
    """With constants, what ADMM denoises is x − c(AᴴA + cμ)⁻¹∇D(x) in the end, with c = (2 − ρ)/(1 − ρ)."""
    problem, _ = example_problem(build_task("deblur"), real=True)
    solver, mu, rho = build_solver("admm"), torch.full((2,), 0.1), 0.6
    policy = Fixed(solver, 400, sigma=0.05, mu=mu, memory=rho)
    *_, last = rollout(problem, solver, smoother, policy)
    x, z, u = last.state
    c = (2 - rho) / (1 - rho)
    assert_close(z - u, (1 - c) * x + c * problem.prox(x, c * mu), 1e-3)


def test_amp_corrects_the_residual_by_the_divergence_of_the_denoiser() -> None:
    """For D(r) = r/2 the divergence is half the number of pixels."""
    problem, _ = example_problem(CSMRI(), real=True)
    solver = build_solver("amp")
    state, levels = solver.init(problem), []

    def halve(v: Tensor, sigma: Tensor) -> Tensor:
        levels.append(sigma)
        return v.real / 2

    for factor in (1.0, 0.7):
        (x, z), pixels = state, 32 * 32
        state = solver.step(state, problem, halve, factor=torch.full((2,), factor))
        assert_close(levels[-1], factor * z.flatten(1).norm(dim=1) / pixels**0.5)
        shrunk = (x + problem.A_adjoint(z)).real / 2
        assert_close(state.x, shrunk)
        onsager = pixels / 2 / problem.measurements[:, None, None, None] * z
        # The random probe p finds a divergence of Σp²/2, within a few per cent for so many pixels.
        assert_close(state.z - (problem.y - problem.A(shrunk)), onsager, 0.1)


class TwoChannels(torch.nn.Module):
    """The two channels of deepinv's layout as one complex image, as it is denoised here."""

    def __init__(self, denoiser: Denoiser) -> None:
        super().__init__()
        self.denoiser = denoiser

    def forward(self, x: Tensor, sigma: Tensor, **_: object) -> Tensor:
        return to_two_channels(self.denoiser(torch.complex(x[:, :1], x[:, 1:]), sigma))


def test_admm_equals_deepinv(smoother: Denoiser) -> None:
    """deepinv's (u, x, z) is our (x, z, u), and what it returns is our z, the data-consistent image."""
    task = CSMRI()
    y, physics = task.simulate(phantom(32, 32), task.setting(4, 15), seed=1)
    theirs = DeepinvADMM(
        data_fidelity=L2(),
        prior=PnP(TwoChannels(smoother)),
        stepsize=1 / 0.3,
        sigma_denoiser=0.05,
        max_iter=8,
        g_first=True,
        early_stop=False,
        custom_init=lambda y, physics: (physics.A_adjoint(y), torch.zeros_like(y)),
    )(y, physics)
    problem = open_problem(y, physics, Hints(peak=1.0, real=False))
    solver = build_solver("admm")
    *_, last = rollout(problem, solver, smoother, Fixed(solver, 8, sigma=0.05, mu=0.3))
    assert_close(problem.export(last.state.z), theirs, 1e-4)


def test_images_that_stop_keep_their_state(smoother: Denoiser) -> None:
    solver = build_solver("admm")
    problem, _ = example_problem(CSMRI(), batch=3)

    class StopAt(Fixed):
        stops = True
        last = torch.tensor([2, 5, 99])

        def __call__(self, problem: Problem, state: object, t: int) -> Action:
            return super().__call__(problem, state, t)._replace(stop=self.last <= t + 1)

        def select(self, index: Tensor) -> StopAt:
            chosen = StopAt(self.solver, self.decisions)
            chosen.last = self.last[index]
            return chosen

    steps = list(rollout(problem, solver, smoother, StopAt(solver, 8)))
    assert steps[-1].iterations.tolist() == [2, 5, 8]
    assert torch.equal(steps[1].image[0], steps[-1].image[0])
    assert torch.equal(steps[4].image[1], steps[-1].image[1])
    assert not torch.equal(steps[1].image[1], steps[-1].image[1])
    assert [step.active.tolist() for step in steps[:2]] == [[True, True, True], [False, True, True]]
    assert [step.ran.tolist() for step in steps[1:6:2]] == [[True] * 3, [False, True, True], [False, False, True]]
    assert steps[2].action.params["sigma"][:, 0].tolist() == pytest.approx([0.0, 15 / 255, 15 / 255])
    for index, iterations in enumerate((2, 5, 8)):
        one = problem.select(torch.tensor([index]))
        *_, alone = rollout(one, solver, smoother, Fixed(solver, iterations))
        assert_close(steps[-1].image[index : index + 1].real, alone.image.real)


def test_a_batch_whose_images_all_stop_ends_early(smoother: Denoiser) -> None:
    solver = build_solver("hqs")
    problem, _ = example_problem(CSMRI())
    sizes = []

    class Counted(Smoother):
        def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
            sizes.append(len(x))
            return super().residual(x, sigma)

    class StopAtTwo(Fixed):
        stops = True

        def __call__(self, problem: Problem, state: object, t: int) -> Action:
            return super().__call__(problem, state, t)._replace(stop=torch.tensor([True, False] if t == 0 else [True]))

    assert len(list(rollout(problem, solver, Counted(), StopAtTwo(solver, 30)))) == 2
    assert sizes == [2, 1]  # the image that stopped left the batch


def test_unknown_solver_suggests() -> None:
    with pytest.raises(UnknownName, match="did you mean 'admm'"):
        build_solver("adm")


def test_fit_is_checked_before_the_first_iteration() -> None:
    problem, _ = example_problem(PhaseRetrieval())
    check_fit(problem, build_solver("hqs"))
    with pytest.raises(TypeError, match="the solver 'amp' needs linear"):
        check_fit(problem, build_solver("amp"))
