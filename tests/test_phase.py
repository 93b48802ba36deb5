"""Coded-diffraction phase retrieval."""

from __future__ import annotations

import pytest
import torch

from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, Incompatible
from pnpilot.model import PnPilot
from pnpilot.physics import selected
from pnpilot.physics.coded_diffraction import CodedDiffraction, back, fields
from pnpilot.policies.fixed import Fixed
from pnpilot.problems import Hints, open_problem
from pnpilot.reconstruct import check_fit, rollout
from pnpilot.solvers import build_solver
from pnpilot.tasks.phase import PhaseRetrieval
from tests.conftest import phantom
from tests.contracts import assert_close, example_problem


def test_back_inverts_the_fields() -> None:
    physics = PhaseRetrieval().physics(PhaseRetrieval.setting(9), (1, 16, 17), torch.Generator().manual_seed(0))
    x = torch.randn(2, 1, 16, 17, dtype=torch.complex64)
    assert physics.masks.shape == (1, 4, 16, 17)
    assert_close(physics.masks.abs(), torch.ones_like(physics.masks.abs()))
    assert_close(back(physics.masks, fields(physics.masks, x)), x)


@pytest.mark.parametrize(("alpha", "expected"), [(9, 4.6), (27, 14.2), (81, 39.8)])
def test_shot_noise_has_the_published_spread(alpha: float, expected: float) -> None:
    """Measured over natural images; ours are phantoms, so within a tenth."""
    truth = phantom(128, 128, 4)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(alpha))
    spread = (y - physics.A(truth)).std().item() * 255
    assert abs(spread / expected - 1) < 0.1


def test_masks_are_fresh_for_every_image_and_may_be_any_number() -> None:
    truth = phantom(16, 16, 2)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(27, masks=6))
    assert y.shape == (2, 6, 16, 16)
    assert not torch.equal(physics.masks[0], physics.masks[1])
    assert PhaseRetrieval.setting(27).label == "alpha=27"


def test_gradient_stays_finite_where_the_field_vanishes() -> None:
    problem, _ = example_problem(PhaseRetrieval())
    assert torch.isfinite(problem.grad(torch.zeros_like(problem.x0()))).all()


@pytest.mark.parametrize("name", ["admm", "inexact-admm"])
def test_admm_recovers_a_phantom(name: str, smoother: Denoiser) -> None:
    problem, truth = example_problem(PhaseRetrieval())
    solver = build_solver(name)
    *_, last = rollout(problem, solver, smoother, Fixed(solver, 60, sigma=0.004, mu=0.1))
    error = (last.image.real - truth).norm() / truth.norm()
    assert error < 0.1
    assert (problem.fidelity(last.image) < 0.1 * problem.fidelity(torch.zeros_like(last.image))).all()


def test_a_solver_that_needs_an_operator_is_refused_with_both_names() -> None:
    problem, _ = example_problem(PhaseRetrieval())
    with pytest.raises(Incompatible, match=r"'amp' needs linear; .*AmplitudeProblem.* offers grad and prox.*: admm, "):
        check_fit(problem, build_solver("amp"))


def test_bad_masks_and_amplitudes() -> None:
    truth = phantom(16, 16, 1)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(9))
    with pytest.raises(BadInput, match="cannot be negative"):
        open_problem(-y, physics)
    with pytest.raises(BadInput, match=r"\(batch, 4, height, width\)"):
        open_problem(y[:, :3], physics)
    with pytest.raises(BadInput, match="masks must be complex"):
        CodedDiffraction(torch.ones(4, 16, 16))
    with pytest.raises(BadInput, match="modulus one"):
        CodedDiffraction(torch.full((4, 16, 16), 3 + 0j))
    with pytest.raises(BadInput, match="alpha must be zero or more"):
        PhaseRetrieval.setting(-9)


def test_model_takes_admm_by_itself(smoother: Denoiser) -> None:
    truth = phantom(32, 32, 2)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(9))
    model = PnPilot(smoother, policy="fixed")
    result = model.reconstruct(y, physics)
    assert result.image.shape == truth.shape
    assert result.trace[0]["solver"] == "admm"


@pytest.mark.parametrize("solver", ["admm", "inexact-admm"])
@pytest.mark.parametrize("peak", [None, 1.0])
def test_strong_noise_does_not_make_the_schedule_diverge(peak: float | None, solver: str, smoother: Denoiser) -> None:
    """A gradient step of fixed length takes no more than half of the penalty that a data step takes."""
    task, truth = PhaseRetrieval(), phantom(32, 32) * torch.tensor([1.0, 0.2])[:, None, None, None]
    y, physics = task.simulate(truth, task.setting(81))
    result = PnPilot(smoother, peak=peak, solver=solver).reconstruct(y, physics)
    assert result.warnings == []
    highest = max(result.trace[1]["parameters"]["mu"])
    assert highest > 0.51 if solver == "admm" else highest == pytest.approx(0.5)


@pytest.mark.parametrize("alpha", [9, 27])
def test_noise_that_nobody_declared_is_estimated(alpha: float) -> None:
    y, physics = PhaseRetrieval().simulate(phantom(64, 64), PhaseRetrieval.setting(alpha))
    found = open_problem(y, CodedDiffraction(physics.masks), Hints(peak=1.0)).units.sigma_n
    assert found is not None
    assert found.tolist() == pytest.approx([alpha / 510] * 2, rel=0.15)


def test_images_of_one_batch_may_have_their_own_noise() -> None:
    task, truth = PhaseRetrieval(), phantom(32, 32)
    y, physics = task.simulate(truth, [task.setting(9), task.setting(81)])
    assert open_problem(y, physics, Hints(peak=1.0)).units.sigma_n.tolist() == pytest.approx([9 / 510, 81 / 510])  # type: ignore[union-attr]
    second = selected(physics, torch.tensor([1]), 2)
    assert open_problem(y[1:], second, Hints(peak=1.0)).units.sigma_n.tolist() == pytest.approx([81 / 510])  # type: ignore[union-attr]
