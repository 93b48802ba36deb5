"""Other people's methods for phase retrieval, each against code that is not ours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pnpilot.baselines import BASELINES, build_baseline, dolphin, prdeep
from pnpilot.baselines._bm3d import denoised
from pnpilot.baselines._fasta import Objective, fasta
from pnpilot.baselines._phase import aligned, direction, even_start, image_by_image, with_amplitudes
from pnpilot.baselines.dolphin import DOLPHIn, averaged, first_dictionary, patches
from pnpilot.baselines.prdeep import PrDeep
from pnpilot.baselines.prgamp import _denoised, amplitude_score
from pnpilot.baselines.spar import SPAR
from pnpilot.denoisers import Denoiser
from pnpilot.metrics import psnr
from pnpilot.solvers.base import noise_pattern
from pnpilot.tasks import simulated
from pnpilot.tasks.phase import AmplitudeProblem, PhaseRetrieval, back, fields
from pnpilot.types import per_sample
from tests.conftest import phantom
from tests.contracts import assert_close, random_like

NAMES = [name for name in BASELINES if "phase" in BASELINES[name].serves]


def problem_of(truth: Tensor, alpha: float = 27, masks: int = 4) -> AmplitudeProblem:
    problem = simulated(PhaseRetrieval(), truth, PhaseRetrieval.setting(alpha, masks))
    assert isinstance(problem, AmplitudeProblem)
    return problem


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method with few iterations."""
    for name in NAMES:
        monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 30 if name == "wf" else 3))
    monkeypatch.setattr(dolphin, "FIXED", 1)
    monkeypatch.setattr(prdeep, "EACH", 2)


# What they share.


@pytest.mark.parametrize("turn", [0.0, 0.3, 2.0, np.pi, -1.6])
def test_a_turn_of_the_whole_image_is_undone(turn: float) -> None:
    truth = phantom(16, 12, 3)
    assert_close(aligned(truth * np.exp(1j * turn)), truth)
    turns = torch.tensor([turn, 1.0, -2.5])
    assert_close(aligned(truth * per_sample(torch.polar(torch.ones(3), turns), truth)), truth)


def test_an_even_start_has_the_energy_of_the_data() -> None:
    truth = phantom(16, 12, 3) * torch.tensor([1.0, 0.5, 0.1])[:, None, None, None]
    start = even_start(problem_of(truth, alpha=0))
    assert start.is_complex()
    assert_close(start.abs().square().mean((1, 2, 3)), truth.square().mean((1, 2, 3)))
    assert_close(start, start[..., :1, :1].expand_as(start))


def test_fields_without_a_phase_stay_finite() -> None:
    assert direction(torch.tensor([0j, 3 - 4j])).tolist() == pytest.approx([0, 0.6 - 0.8j])
    problem = problem_of(phantom(16, 12))
    assert not with_amplitudes(problem, torch.zeros_like(problem.x0())).any()


def test_images_one_by_one_keep_their_data_and_order() -> None:
    problem = problem_of(phantom(16, 12, 3))
    assert torch.equal(image_by_image(problem, lambda part: part.y[:, :1]), problem.y[:, :1])
    assert torch.equal(image_by_image(problem, lambda part: part.masks[:, :1]), problem.masks[:, :1])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_masks_and_noise_on_images_of_all_kinds(name: str) -> None:
    baseline, border = build_baseline(name), torch.zeros(1, 1, 32, 32)
    border[..., 10:22, 8:26] = phantom(12, 18, 1)
    images = (phantom(32, 32, 1), border, torch.ones(1, 1, 32, 32))
    for truth, masks, alpha in zip(images, (3, 4, 8), (9, 27, 81), strict=True):
        for_all = (PhaseRetrieval.setting(alpha, masks), PhaseRetrieval.setting(27, masks))
        for setting in for_all:
            image = baseline(*PhaseRetrieval().simulate(truth, setting))
            assert image.shape == truth.shape
            assert torch.isfinite(image).all()
            assert 0 <= image.min() <= image.max() <= 1


# Hybrid input-output.


def numpy_hio(y: np.ndarray, masks: np.ndarray, iterations: int, *, constrained: bool) -> np.ndarray:
    """Fienup's loop for one image, written out."""
    x = np.ones(y.shape[1:], complex)
    for _ in range(iterations):
        spectra = np.fft.fft2(masks * x, norm="ortho")
        found = (masks.conj() * np.fft.ifft2(y * np.exp(1j * np.angle(spectra)), norm="ortho")).mean(0)
        if not constrained:
            x = found
            continue
        x = np.where(found.real > 0, found.real, x.real - 0.9 * found.real)
    return found.real if constrained else (found * np.exp(-1j * np.angle(found.sum()))).real


@pytest.mark.parametrize(("name", "constrained"), [("hio", True), ("hio-free", False)])
@pytest.mark.parametrize("iterations", [1, 2, 12])
def test_hio_is_fienups(name: str, constrained: bool, iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BASELINES[name], "iterations", iterations)
    truth = phantom(16, 12) * (phantom(16, 12) > 0.3)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(81, 3))
    images = build_baseline(name)(y, physics)
    for image, own, masks in zip(images, y.double().numpy(), physics.masks.numpy(), strict=True):
        expected = numpy_hio(own, masks.astype(complex), iterations, constrained=constrained)
        assert np.abs(image[0].numpy() - expected.clip(0, 1)).max() < 1e-4


@pytest.mark.parametrize(("name", "iterations"), [("hio", 150), ("hio-free", 400), ("wf", 1000)])
def test_without_noise_the_image_is_found(name: str, iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BASELINES[name], "iterations", iterations)
    truth = phantom(16, 20)
    image = build_baseline(name)(*PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(0, 6)))
    assert psnr(image, truth).min() > 40


# Wirtinger flow.


def test_steps_of_wirtinger_flow_follow_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Σ(|Az|² − y²)²/4J, by automatic differentiation, over the mean intensity; the first steps are short."""
    monkeypatch.setattr(BASELINES["wf"], "iterations", 3)
    problem = problem_of(phantom(16, 12))
    intensity = problem.y.square().mean((1, 2, 3), keepdim=True)
    z = problem.x0() * intensity.sqrt()
    for t in range(1, 4):
        z = z.detach().requires_grad_()
        misfit = torch.fft.fft2(problem.masks * z, norm="ortho").abs().square() - problem.y.square()
        (gradient,) = torch.autograd.grad(misfit.square().sum() / 4 / problem.y.shape[1], z)
        z = z.detach() - (1 - np.exp(-t / 330)) / intensity * gradient
    assert_close(BASELINES["wf"]().reconstruct(problem), aligned(z), 1e-5)  # type: ignore[attr-defined]


def test_more_steps_of_wirtinger_flow_lower_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(phantom(16, 12), alpha=81)
    monkeypatch.setattr("pnpilot.baselines.wirtinger_flow.aligned", lambda z: z)

    def loss(iterations: int) -> Tensor:
        monkeypatch.setattr(BASELINES["wf"], "iterations", iterations)
        image = BASELINES["wf"]().reconstruct(problem)  # type: ignore[attr-defined]
        return (fields(problem.masks, image).abs().square() - problem.y.square()).square().sum((1, 2, 3))

    losses = torch.stack([loss(iterations) for iterations in (0, 20, 60, 180, 540)])
    assert (losses.diff(dim=0) < 0).all()


# DOLPHIn.


def test_overlapping_patches_average_to_their_image() -> None:
    x = phantom(19, 23)
    columns = patches(x)
    assert columns.shape == (2, 64, (19 - 7) * (23 - 7))
    assert torch.equal(columns[0, :, 0].reshape(8, 8), x[0, 0, :8, :8])
    assert_close(averaged(columns, x), x)


def test_the_first_dictionary_is_two_orthonormal_bases() -> None:
    fft = pytest.importorskip("scipy.fft")
    atoms = first_dictionary(torch.zeros(1))
    assert atoms.shape == (64, 128)
    assert_close(atoms.norm(dim=0), torch.ones(128))
    assert torch.equal(atoms[:, :64], torch.eye(64))
    assert_close(atoms[:, 64:].mT @ atoms[:, 64:], torch.eye(64))
    image = random_like(torch.zeros(8, 8), 1)
    assert_close(atoms[:, 64:].mT @ image.flatten(), torch.from_numpy(fft.dctn(image.numpy(), norm="ortho")).flatten())


def described(codes: Tensor, dictionary: Tensor, columns: Tensor, weight: float) -> Tensor:
    """½‖columns − Da‖² + weight·‖a‖₁."""
    return (columns - dictionary @ codes).square().sum((1, 2)) / 2 + weight * codes.abs().sum((1, 2))


def test_codes_are_shrunk_towards_the_lasso() -> None:
    """Every step lowers the objective, and at the end no code can be moved to advantage."""
    columns = patches(phantom(12, 12)).double()
    dictionary = first_dictionary(columns).double().expand(2, -1, -1)
    codes, values = dictionary.mT @ columns, []
    for _ in range(800):
        values.append(described(codes, dictionary, columns, 0.05))
        codes = dolphin._sparser(codes, dictionary, columns, 0.05)
    assert (torch.stack(values).diff(dim=0) < 1e-12).all()
    pull = dictionary.mT @ (columns - dictionary @ codes)
    assert pull.abs().max() < 0.05 + 1e-4
    assert (pull - 0.05 * codes.sign())[codes.abs() > 1e-3].abs().max() < 1e-4


def test_atoms_improve_and_keep_their_norm() -> None:
    columns = patches(phantom(16, 16))
    dictionary = first_dictionary(columns).expand(2, -1, -1)
    codes = dolphin._sparser(dictionary.mT @ columns, dictionary, columns, 0.1)
    values = [described(codes, dictionary, columns, 0.0)]
    for _ in range(4):
        before = dictionary.clone()
        dictionary = dolphin._improved(dictionary, codes, columns)
        assert not torch.equal(before, dictionary)
        assert dictionary.norm(dim=1).max() < 1 + 1e-5
        values.append(described(codes, dictionary, columns, 0.0))
    assert (torch.stack(values).diff(dim=0) < 0).all()


def test_an_atom_alone_is_the_best_for_its_codes() -> None:
    """Least squares where that has norm one at most, and of norm one where it has not."""
    generator = torch.Generator().manual_seed(0)
    codes, columns = (torch.randn(1, rows, 50, generator=generator, dtype=torch.float64) for rows in (1, 64))
    best = columns @ codes.mT / codes.square().sum()
    for scale in (0.5 / best.norm(), 3 / best.norm()):
        atom = dolphin._improved(torch.zeros(1, 64, 1, dtype=torch.float64), codes, scale * columns)
        assert_close(atom, scale * best / max(1.0, (scale * best).norm().item()), 1e-10)


@pytest.mark.parametrize("alpha", [0, 27])
def test_the_image_step_never_raises_the_objective(alpha: float) -> None:
    problem = problem_of(phantom(16, 16), alpha)
    target = patches(phantom(16, 16).flip(0))

    def objective(x: Tensor) -> Tensor:
        misfit = fields(problem.masks, x).abs().square() - problem.y.square()
        return misfit.square().sum((1, 2, 3)) / 4 + 0.05 / 2 * (patches(x) - target).square().sum((1, 2))

    x, step, values = even_start(problem).real, torch.full((2,), 0.1), []
    for _ in range(60):
        values.append(objective(x))
        x, step = dolphin._fitted(problem, x, target, 0.05, step)
        assert 0 <= x.min() <= x.max() <= 1
    falls = -torch.stack(values).diff(dim=0)
    assert (falls > -1e-5 * torch.stack(values)[:-1]).all()
    assert (values[-1] < 0.2 * values[0]).all()
    free = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(objective(free).sum(), free)
    start = even_start(problem).real.requires_grad_()
    (at_start,) = torch.autograd.grad(objective(start).sum(), start)
    assert (x - (x - gradient).clamp(0, 1)).norm() < 0.05 * (start - (start - at_start).clamp(0, 1)).norm()


def test_the_dictionary_is_learnt_once_the_fixed_iterations_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = dolphin._improved

    def counted(*given: Tensor) -> Tensor:
        calls.append(1)
        return real(*given)

    monkeypatch.setattr(dolphin, "_improved", counted)
    monkeypatch.setattr(dolphin, "FIXED", 2)
    monkeypatch.setattr(DOLPHIn, "iterations", 5)
    DOLPHIn().solve(problem_of(phantom(16, 16, 1)), coupling=0.003, sparsity=0.001)
    assert len(calls) == 3


def test_more_sparsity_is_a_simpler_image() -> None:
    """Its description has less of what the truth does not have, until it has too little."""
    truth = phantom(24, 24, 1)
    problem = problem_of(truth, 81)
    images = [DOLPHIn().solve(problem, coupling=0.003, sparsity=sparsity) for sparsity in (0.0, 0.001, 1.0)]
    plain, sparse, empty = (psnr(image, truth).item() for image in images)
    assert sparse > plain + 3
    assert not images[2].any()
    assert empty < plain


# SPAR.


def test_amplitudes_are_the_most_likely_between_data_and_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poisson counts κy² of intensities κb², and κ(b − |v|)² for the distance to the image, by search."""
    optimize = pytest.importorskip("scipy.optimize")
    monkeypatch.setattr(SPAR, "iterations", 1)
    seen: list[Tensor] = []
    monkeypatch.setattr("pnpilot.baselines.spar.denoised", lambda image, _: image)

    def watched(_: Tensor, field: Tensor) -> Tensor:
        seen.append(field)
        return field[:, :1]

    monkeypatch.setattr("pnpilot.baselines.spar.back", watched)
    problem = problem_of(phantom(8, 6, 1), 81)
    SPAR({"strength": 0.1})(*PhaseRetrieval().simulate(phantom(8, 6, 1), PhaseRetrieval.setting(81)))
    start = fields(problem.masks, even_start(problem).real)
    (found,) = seen
    assert_close(direction(found), direction(start), 1e-4)
    kappa = 50.0
    for b, v, y in zip(found.abs().flatten(), start.abs().flatten(), problem.y.flatten(), strict=True):

        def unlikely(b: float, v: float = v.item(), y: float = y.item()) -> float:
            return kappa * b**2 - 2 * kappa * y**2 * np.log(b) + kappa * (b - v) ** 2

        best = optimize.minimize_scalar(unlikely, bounds=(1e-6, 3), method="bounded", options={"xatol": 1e-7})
        assert b.item() == pytest.approx(best.x, abs=1e-4)


def test_amplitudes_that_agree_with_the_data_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth is where SPAR without its filter stays, if there is no noise."""
    monkeypatch.setattr(SPAR, "iterations", 3)
    truth = phantom(16, 12)
    monkeypatch.setattr("pnpilot.baselines.spar.even_start", lambda problem: truth[: len(problem)] + 0j)
    monkeypatch.setattr("pnpilot.baselines.spar.denoised", lambda image, _: image)
    y, physics = PhaseRetrieval().simulate(truth[:1], PhaseRetrieval.setting(0))
    assert_close(SPAR({"strength": 0.1})(y, physics), truth[:1], 1e-4)


def test_its_filter_is_told_the_noise_times_its_strength(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[float] = []
    monkeypatch.setattr(SPAR, "iterations", 2)

    def watched(image: Tensor, level: float) -> Tensor:
        levels.append(level)
        return image

    monkeypatch.setattr("pnpilot.baselines.spar.denoised", watched)
    settings = [PhaseRetrieval.setting(9), PhaseRetrieval.setting(81)]
    SPAR({"strength": 0.25})(*PhaseRetrieval().simulate(phantom(16, 12), settings))
    assert levels == pytest.approx([0.25 * 9 / 510] * 2 + [0.25 * 81 / 510] * 2)


# BM3D-prGAMP.


@pytest.mark.parametrize(("noise", "variance"), [(0.01, 0.04), (0.04, 0.01), (0.02, 0.02), (0.001, 0.1), (0.1, 0.001)])
def test_fields_move_to_their_mean_given_the_amplitudes(noise: float, variance: float) -> None:
    """Against the mean and the variance by quadrature, of z = p + CN(variance) given |z + CN(noise)| = y."""
    special = pytest.importorskip("scipy.special")
    generator = torch.Generator().manual_seed(0)
    size, y = (0.05 + torch.rand(2, 40, generator=generator, dtype=torch.float64)).unbind()
    p = torch.polar(size, 6 * torch.rand(40, generator=generator, dtype=torch.float64))
    score, precision = amplitude_score(y, p, noise, variance)
    angles = np.linspace(-np.pi, np.pi, 4001)[:-1]
    share = variance / (noise + variance)
    means, spreads, exact = [], [], []
    for own, amplitude in zip(p.numpy(), y.numpy(), strict=True):
        measured = amplitude * np.exp(1j * (angles + np.angle(own)))  # z + n, were its phase known
        weights = np.exp(-(np.abs(measured - own) ** 2 - (amplitude - abs(own)) ** 2) / (noise + variance))
        weights /= weights.sum()
        given = own + share * (measured - own)
        means.append((weights * given).sum())
        spreads.append((weights * np.abs(given) ** 2).sum() + noise * share - abs(means[-1]) ** 2)
        kappa = 2 * amplitude * abs(own) / (noise + variance)
        cosine = special.ive(1, kappa) / special.ive(0, kappa)
        exact.append((1 - share) * own + share * amplitude * cosine * own / abs(own))
    assert np.abs(np.array(means) - np.array(exact)).max() < 1e-9
    ours = p.numpy() + variance * score.numpy()
    assert np.abs(ours - np.array(means)).max() < 0.06 * share
    assert variance * (1 - variance * precision) == pytest.approx(np.mean(spreads), rel=0.1, abs=0.01 * share)


def test_certain_amplitudes_are_taken_and_useless_ones_left() -> None:
    p, y = torch.tensor([0.6 + 0.8j, -0.5j]), torch.tensor([2.0, 0.25])
    score, _ = amplitude_score(y, p, 1e-9, 0.001)
    assert_close(p + 0.001 * score, y * p / p.abs(), 1e-2)
    score, precision = amplitude_score(y, p, 1e6, 0.001)
    assert_close(p + 0.001 * score, p, 1e-4)
    assert abs(precision) < 1


def test_the_divergence_of_bm3d_is_its_mean_derivative() -> None:
    """It shrinks noise, so it follows its input little; with nothing to remove, entirely."""
    noisy = phantom(32, 32, 1) + 0.1 * random_like(phantom(32, 32, 1), 1)
    image, divergence = _denoised(noisy, 0.1)
    assert psnr(image, phantom(32, 32, 1)) > psnr(noisy, phantom(32, 32, 1)) + 5
    assert 0 < divergence < 0.4
    pattern = noise_pattern((32, 32), noisy.device)
    assert _denoised(noisy, 1e-4)[1] == pytest.approx(pattern.square().mean().item(), rel=0.01)


def test_the_second_stage_of_bm3d_helps() -> None:
    from skimage import data

    truth = torch.from_numpy(data.camera()[100:228:2, 200:328:2].astype(np.float32) / 255)[None, None]
    noisy = truth + 0.1 * random_like(truth, 1)
    one, both = (psnr(denoised(noisy, 0.1, both_stages=stages), truth) for stages in (False, True))
    assert both > one + 0.1
    assert one > psnr(noisy, truth) + 3


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
    """Where the gradient is as long as the weight in what is not zero, and shorter in what is."""
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
    """A quartic that a gradient step from afar overshoots by far."""
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
    monkeypatch.setattr(prdeep, "EACH", 3)
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
    problem = problem_of(phantom(16, 12), 27)
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


def test_back_is_real_for_real_images() -> None:
    """What the methods that keep real parts rely on."""
    problem = problem_of(phantom(16, 12), 0)
    assert back(problem.masks, fields(problem.masks, phantom(16, 12))).imag.abs().max() < 1e-6
