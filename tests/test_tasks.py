"""Contracts of the inverse problems."""

from __future__ import annotations

import pytest
import torch

from pnpilot.errors import BadInput, Incompatible
from pnpilot.problem import Hints
from pnpilot.tasks import TASKS, build_task, open_problem
from tests.conftest import phantom
from tests.contracts import assert_close, example_problem, inner, random_like


@pytest.mark.parametrize("name", TASKS)
def test_adjoint_is_the_adjoint(name: str) -> None:
    problem, _ = example_problem(build_task(name))
    if "linear" not in problem.offers:
        pytest.skip("not linear")
    x, y = random_like(problem.x0(), 1), random_like(problem.y, 2)
    norm = getattr(problem, "norm", torch.ones(len(problem)))
    left, right = inner(problem.A(x), y), inner(x, problem.A_adjoint(y)) * norm
    # deepinv's tomography interpolates forwards and backwards separately: its adjoint is good to a few per mille.
    tolerance = 2e-2 if name == "tomography" else 1e-4
    scale = problem.A(x).flatten(1).norm(dim=1) * y.flatten(1).norm(dim=1)
    assert ((left - right).abs() / scale).max() < tolerance


@pytest.mark.parametrize("name", TASKS)
def test_prox_is_optimal(name: str) -> None:
    """At z = prox(v): ∇D(z) + μ(z − v) = 0."""
    problem, _ = example_problem(build_task(name))
    if "prox" not in problem.offers:
        pytest.skip("no closed form")
    v, mu = random_like(problem.x0(), 1), torch.tensor([0.05, 0.7])
    z = problem.prox(v, mu)
    slope = problem.grad(z) + mu[:, None, None, None] * (z - v)
    assert slope.abs().max() < 1e-4 * v.abs().max()


@pytest.mark.parametrize("name", TASKS)
def test_gradient_is_the_gradient(name: str) -> None:
    """∇D agrees with finite differences of D along a direction."""
    problem, truth = example_problem(build_task(name))
    norm = getattr(problem, "norm", torch.ones(len(problem)))
    count = problem.y.shape[1] if name == "phase" else 1
    x = problem.x0() * 0.5 + truth * 0.5
    direction = random_like(x, 4) * 0.1

    def fidelity(point: torch.Tensor) -> torch.Tensor:
        squared = (problem.misfit(point) * problem.y.flatten(1).norm(dim=1)) ** 2
        return (0.5 * squared / norm / count).double()

    step = 1e-2
    slope = (fidelity(x + step * direction) - fidelity(x - step * direction)) / (2 * step)
    expected = inner(problem.grad(x), direction).double()
    tolerance = 5e-2 if name in ("tomography", "phase") else 1e-2
    assert ((slope - expected).abs() / expected.abs().clamp_min(1e-3)).max() < tolerance


@pytest.mark.parametrize("name", TASKS)
def test_batch_equals_one_by_one(name: str) -> None:
    problem, _ = example_problem(build_task(name), batch=3)
    v, mu = random_like(problem.x0(), 5), torch.tensor([0.05, 0.2, 0.9])
    for index in range(3):
        one = problem.select(torch.tensor([index]))
        assert_close(one.x0(), problem.x0()[index : index + 1])
        assert_close(one.grad(v[index : index + 1]), problem.grad(v)[index : index + 1])
        if "prox" in problem.offers:
            assert_close(one.prox(v[index : index + 1], mu[index : index + 1]), problem.prox(v, mu)[index : index + 1])


@pytest.mark.parametrize("name", TASKS)
def test_gradients_reach_the_penalty(name: str) -> None:
    problem, _ = example_problem(build_task(name))
    if "prox" not in problem.offers:
        pytest.skip("no closed form")
    mu = torch.tensor([0.1, 0.2], requires_grad=True)
    problem.prox(problem.x0() * 0.5, mu).abs().square().sum().backward()
    assert mu.grad is not None
    assert (mu.grad != 0).all()
    assert torch.isfinite(mu.grad).all()


@pytest.mark.parametrize("name", TASKS)
def test_simulation_is_seeded_and_per_image(name: str) -> None:
    task, truth = build_task(name), phantom(32, 32, 2)
    first, _ = task.simulate(truth, task.settings[0], seed=7)
    again, _ = task.simulate(truth, task.settings[0], seed=7)
    alone, _ = task.simulate(truth[:1], task.settings[0], seed=7)
    other, _ = task.simulate(truth, task.settings[0], seed=8)
    assert torch.equal(first, again)
    assert torch.equal(first[:1], alone)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", TASKS)
def test_units_scale_with_the_data(name: str) -> None:
    task, truth = build_task(name), phantom(32, 32, 2)
    y, physics = task.simulate(truth, task.settings[0], seed=3)
    small, large = open_problem(y, physics), open_problem(8 * y, physics)
    assert_close(large.y, small.y)
    assert_close(large.units.peak, 8 * small.units.peak)
    assert_close(large.export(large.x0()), 8 * small.export(small.x0()))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", TASKS)
def test_broken_numbers_are_refused(name: str, bad: float) -> None:
    task = build_task(name)
    y, physics = task.simulate(phantom(32, 32, 1), task.settings[0])
    y[0, 0, 3, 3] = bad
    with pytest.raises(BadInput, match="1 NaN or infinite"):
        open_problem(y, physics)


@pytest.mark.parametrize("name", TASKS)
def test_empty_data_wrong_shapes_and_hints_are_refused(name: str) -> None:
    task = build_task(name)
    y, physics = task.simulate(phantom(32, 32, 1), task.settings[0])
    with pytest.raises(BadInput, match="all zeros"):
        open_problem(torch.zeros_like(y), physics)
    with pytest.raises(BadInput):
        open_problem(y[..., :-3, :-5], physics)
    with pytest.raises(BadInput, match="must be a tensor"):
        open_problem(y[0, 0], physics)
    with pytest.raises(BadInput, match="noise level must be"):
        open_problem(y, physics, Hints(sigma_n=-1.0))
    with pytest.raises(BadInput, match="noise levels for 1 images"):
        open_problem(y, physics, Hints(sigma_n=torch.ones(3)))
    with pytest.raises(BadInput, match="3 peaks for 1 images"):
        open_problem(y, physics, Hints(peak=torch.ones(3)))
    with pytest.raises(BadInput, match="peak must be a positive"):
        open_problem(y, physics, Hints(peak=0.0))


def test_unknown_physics_is_refused() -> None:
    from deepinv.physics import Physics

    with pytest.raises(Incompatible, match="any deepinv LinearPhysics"):
        open_problem(torch.ones(1, 1, 4, 4), Physics())
