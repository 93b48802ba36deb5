"""prDeep, and FASTA, by which it minimises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pnpilot.baselines import prdeep
from pnpilot.baselines._fasta import Objective, fasta
from pnpilot.baselines.prdeep import PrDeep
from pnpilot.benchmark.comparison import Comparison
from pnpilot.benchmark.policy_methods import policy_methods
from pnpilot.benchmark.policy_runs import Rig
from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.tasks.phase import PhaseRetrieval
from tests.conftest import phantom
from tests.contracts import amplitude_problem, assert_close, random_like
from tests.test_comparison import save_picture

# FASTA.


def least_squares(matrix: Tensor, data: Tensor, prox: str, weight: float = 0.0) -> Objective:
    """½‖Mx − b‖² with a penalty, for a batch of matrices."""

    def residual(x: Tensor) -> Tensor:
        return (matrix @ x[..., None])[..., 0] - data

    def shrunk(v: Tensor, step: Tensor) -> Tensor:
        return v.sign() * (v.abs() - weight * step[:, None]).clamp_min(0)

    return Objective(
        lambda x: residual(x).square().sum(1) / 2,
        lambda x: (matrix.mT @ residual(x)[..., None])[..., 0],
        {"lasso": shrunk, "non-negative": lambda v, _: v.clamp_min(0), "none": lambda v, _: v}[prox],
    )


@pytest.fixture
def system() -> tuple[Tensor, Tensor]:
    """Three least-squares problems, ill-conditioned to different degrees."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(3, 20, 8, generator=generator, dtype=torch.float64)
    matrix[1, :, :4] *= 5
    matrix[2, :, :4] *= 20
    return matrix, torch.randn(3, 20, generator=generator, dtype=torch.float64)


def test_fasta_solves_least_squares_with_and_without_bounds(system: tuple[Tensor, Tensor]) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    matrix, data = system
    start = torch.zeros(3, 8, dtype=torch.float64)
    free = fasta(least_squares(matrix, data, "none"), start, 3000, 1e-10)
    assert_close(free.x, torch.linalg.lstsq(matrix, data[..., None]).solution[..., 0], 1e-6)
    bounded = fasta(least_squares(matrix, data, "non-negative"), start, 3000, 1e-10).x
    expected = [optimize.nnls(one.numpy(), other.numpy())[0] for one, other in zip(matrix, data, strict=True)]
    assert_close(bounded, torch.from_numpy(np.stack(expected)), 1e-6)
    assert (bounded == 0).any()


def test_fasta_solves_the_lasso(system: tuple[Tensor, Tensor]) -> None:
    """The gradient is as large as the weight where x is not zero, and smaller where it is."""
    matrix, data = system
    objective = least_squares(matrix, data, "lasso", weight=2.0)
    x = fasta(objective, torch.zeros(3, 8, dtype=torch.float64), 3000, 1e-10).x
    pull = -objective.gradient(x)
    assert 0 < (x == 0).sum() < x.numel()
    assert (pull - 2 * x.sign())[x != 0].abs().max() < 1e-5
    assert pull[x == 0].abs().max() <= 2 + 1e-5


def test_fasta_in_a_batch_is_fasta_one_by_one(system: tuple[Tensor, Tensor]) -> None:
    matrix, data = system
    start = torch.ones(3, 8, dtype=torch.float64)
    together = fasta(least_squares(matrix, data, "lasso", 1.0), start, 400, 1e-6)
    assert len(set(together.iterations.tolist())) > 1
    for index in range(3):
        own = slice(index, index + 1)
        alone = fasta(least_squares(matrix[own], data[own], "lasso", 1.0), start[own], 400, 1e-6)
        assert_close(alone.x, together.x[own], 1e-8)
        assert alone.iterations.item() == together.iterations[index]


def test_fasta_stops_by_its_tolerance_or_its_iterations(system: tuple[Tensor, Tensor]) -> None:
    objective, start = least_squares(*system, "lasso", 1.0), torch.ones(3, 8, dtype=torch.float64)
    loose, strict = (fasta(objective, start, 5000, tolerance).iterations for tolerance in (1e-2, 1e-8))
    assert (loose < strict).all()
    assert (strict < 5000).all()
    assert fasta(objective, start, 4, 1e-8).iterations.tolist() == [4, 4, 4]
    assert fasta(objective, start, 4, 0.0).iterations.tolist() == [4, 4, 4]


def test_fasta_keeps_the_iterate_with_the_smallest_residual(system: tuple[Tensor, Tensor]) -> None:
    """Without a penalty the residual of an iterate is the gradient at the one before it."""
    matrix, data = (one[2:] for one in system)
    objective, visited = least_squares(matrix, data, "none"), []

    def gradient(x: Tensor) -> Tensor:
        visited.append(x)
        return objective.gradient(x)

    later = 0
    for iterations in range(2, 40):
        visited.clear()
        watched = Objective(objective.value, gradient, objective.prox)
        found = fasta(watched, torch.ones(1, 8, dtype=torch.float64), iterations, 0.0)
        iterates = visited[2:]  # two random points come first
        residuals = [objective.gradient(x).norm().item() for x in iterates[:-1]]
        best = int(np.argmin(residuals))
        assert torch.equal(found.x, iterates[best + 1])
        later += best + 1 < iterations
    assert later > 3


def test_fasta_shortens_steps_that_lead_upwards() -> None:
    """A quartic, which a gradient step from afar overshoots."""
    objective = Objective(lambda x: x.pow(4).sum(1) / 4, lambda x: x.pow(3), lambda v, _: v)
    start = torch.tensor([[30.0, -20.0], [0.5, 0.1]], dtype=torch.float64)
    assert (objective.value(fasta(objective, start, 1, 0.0).x) < objective.value(start)).all()
    found = fasta(objective, start, 300, 1e-9)
    assert torch.isfinite(found.x).all()
    assert found.x.abs().max() < 1e-2


def test_fasta_takes_complex_images() -> None:
    target = torch.randn(2, 1, 4, 4, dtype=torch.complex64)
    objective = Objective(
        lambda x: (x - target).abs().square().sum((1, 2, 3)) / 2, lambda x: x - target, lambda v, _: v
    )
    found = fasta(objective, torch.zeros_like(target), 50, 1e-6)
    assert_close(found.x, target, 1e-4)
    assert (found.iterations < 50).all()


# prDeep.


class Watched(Denoiser):
    """Smooths a little, and remembers the strengths it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[float]] = []

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        self.asked.append((255 * sigma.flatten()).tolist())
        return 0.1 * (torch.nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    denoiser = Watched()
    denoiser.sha256 = "of the denoiser"
    monkeypatch.setattr(prdeep, "build_denoiser", lambda _: denoiser)
    return denoiser


def test_stages_and_strengths_follow_the_noise(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """√(2/J) of the amplitudes' noise as far as the range of the stage goes; strong noise ends after two stages."""
    monkeypatch.setattr(prdeep, "STEPS", 3)
    alphas = [9, 49, 51, 81]
    truth = phantom(16, 12, 4)
    y, physics = PhaseRetrieval().simulate(truth, [PhaseRetrieval.setting(alpha) for alpha in alphas])
    answer = PrDeep().answer(y, physics)
    assert answer.iterations.tolist() == [12, 12, 6, 6]
    assert answer.iterations.device == torch.device("cpu")
    levels = [0.5**0.5 * alpha / 2 for alpha in alphas]
    expected = [
        [min(max(level, low), high) for level in levels[:count]]
        for (low, high), count in zip(((40, 60), (20, 40), (10, 20), (0, 10)), (4, 4, 2, 2), strict=True)
    ]
    stages = list(dict.fromkeys(tuple(round(strength, 3) for strength in asked) for asked in watched.asked))
    assert stages == [tuple(round(strength, 3) for strength in own) for own in expected]
    assert len(watched.asked) >= 4 * 3


def test_its_parts_are_those_of_regularisation_by_denoising(watched: Watched) -> None:
    """The gradient is that of ½‖|Ax| − y‖²; the proximal step is one step towards the denoised image."""
    problem = amplitude_problem(phantom(16, 12), 27)
    objective = PrDeep()._objective(problem, 0, 10)
    x = (phantom(16, 12) + 0.1 * random_like(phantom(16, 12), 1) + 0.1j * random_like(phantom(16, 12), 2)).to(
        torch.complex64
    )
    variable = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(objective.value(variable).sum(), variable)
    misfit = torch.fft.fft2(problem.masks * x, norm="ortho").abs() - problem.y
    assert_close(objective.value(x), misfit.square().sum((1, 2, 3)) / 2)
    assert_close(objective.gradient(x), gradient, 1e-4)
    step, weight = torch.tensor([0.5, 2.0]), 0.1 * 13.5**2
    clean = watched(x.real, 10 / 255).clamp(0, 1)
    for index in range(2):
        pull = step[index] * weight
        assert_close(objective.prox(x, step)[index], (x[index] + pull * clean[index]) / (1 + pull))


def test_it_says_its_denoiser_and_stops_by_itself(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PrDeep().made_with() == "of the denoiser"
    assert PrDeep.iterations == 4 * 200
    monkeypatch.setattr(prdeep, "TOLERANCE", 0.5)
    y, physics = PhaseRetrieval().simulate(phantom(16, 12), PhaseRetrieval.setting(27))
    image, iterations = PrDeep().answer(y, physics)
    assert (iterations < 100).all()
    assert_close(image, PrDeep()(y, physics))


def test_the_table_of_policies_tells_the_iterations_it_took(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prdeep, "STEPS", 3)
    (tmp_path / "two").mkdir()
    for index, picture in enumerate(phantom(16, 12)):
        save_picture(tmp_path / "two" / f"{index}.png", picture[0])
    methods = policy_methods(PhaseRetrieval(), Rig("auto", freeze(watched)), {}, ["prdeep"])
    settings = [PhaseRetrieval.setting(alpha) for alpha in (27, 81)]
    plan = Comparison(PhaseRetrieval(), tmp_path, ["two"], settings, methods, torch.device("cpu"), size=(16, 12))
    for row, iterations in zip(plan.measured(), (12, 6), strict=True):
        assert row.method == "prdeep"
        assert [image["iterations"] for image in row.images] == [iterations, iterations]
