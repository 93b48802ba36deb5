"""Other people's methods for phase retrieval, each against code that is not ours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pnpilot.baselines import BASELINES, build_baseline, dolphin, prdeep
from pnpilot.baselines._bm3d import denoised
from pnpilot.baselines._one_task import image_by_image
from pnpilot.baselines._phase import aligned, direction, even_start, with_amplitudes
from pnpilot.baselines.prgamp import _denoised, amplitude_score
from pnpilot.baselines.spar import SPAR
from pnpilot.metrics import psnr
from pnpilot.physics.coded_diffraction import back, fields
from pnpilot.solvers.base import noise_pattern
from pnpilot.tasks.phase import PhaseRetrieval
from pnpilot.types import per_sample
from tests.conftest import phantom
from tests.contracts import amplitude_problem, assert_close, random_like

NAMES = [name for name in BASELINES if "phase" in BASELINES[name].serves]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method with few iterations."""
    for name in NAMES:
        monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 30 if name == "wf" else 3))
    monkeypatch.setattr(dolphin, "FIXED", 1)
    monkeypatch.setattr(prdeep, "STEPS", 2)


# What they share.


@pytest.mark.parametrize("turn", [0.0, 0.3, 2.0, np.pi, -1.6])
def test_a_turn_of_the_whole_image_is_undone(turn: float) -> None:
    truth = phantom(16, 12, 3)
    assert_close(aligned(truth * np.exp(1j * turn)), truth)
    turns = torch.tensor([turn, 1.0, -2.5])
    assert_close(aligned(truth * per_sample(torch.polar(torch.ones(3), turns), truth)), truth)


def test_an_even_start_has_the_energy_of_the_data() -> None:
    truth = phantom(16, 12, 3) * torch.tensor([1.0, 0.5, 0.1])[:, None, None, None]
    start = even_start(amplitude_problem(truth, alpha=0))
    assert start.is_complex()
    assert_close(start.abs().square().mean((1, 2, 3)), truth.square().mean((1, 2, 3)))
    assert_close(start, start[..., :1, :1].expand_as(start))


def test_fields_without_a_phase_stay_finite() -> None:
    assert direction(torch.tensor([0j, 3 - 4j])).tolist() == pytest.approx([0, 0.6 - 0.8j])
    problem = amplitude_problem(phantom(16, 12))
    assert not with_amplitudes(problem, torch.zeros_like(problem.x0())).any()


def test_images_one_by_one_keep_their_data_and_order() -> None:
    problem = amplitude_problem(phantom(16, 12, 3))
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


def test_back_is_real_for_real_images() -> None:
    """What the methods that keep real parts rely on."""
    problem = amplitude_problem(phantom(16, 12), 0)
    assert back(problem.masks, fields(problem.masks, phantom(16, 12))).imag.abs().max() < 1e-6


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
    problem = amplitude_problem(phantom(16, 12))
    intensity = problem.y.square().mean((1, 2, 3), keepdim=True)
    z = problem.x0() * intensity.sqrt()
    for t in range(1, 4):
        z = z.detach().requires_grad_()
        misfit = torch.fft.fft2(problem.masks * z, norm="ortho").abs().square() - problem.y.square()
        (gradient,) = torch.autograd.grad(misfit.square().sum() / 4 / problem.y.shape[1], z)
        z = z.detach() - (1 - np.exp(-t / 330)) / intensity * gradient
    assert_close(BASELINES["wf"]().reconstruct(problem), aligned(z), 1e-5)  # type: ignore[attr-defined]


def test_more_steps_of_wirtinger_flow_lower_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = amplitude_problem(phantom(16, 12), alpha=81)
    monkeypatch.setattr("pnpilot.baselines.wirtinger_flow.aligned", lambda z: z)

    def loss(iterations: int) -> Tensor:
        monkeypatch.setattr(BASELINES["wf"], "iterations", iterations)
        image = BASELINES["wf"]().reconstruct(problem)  # type: ignore[attr-defined]
        return (fields(problem.masks, image).abs().square() - problem.y.square()).square().sum((1, 2, 3))

    losses = torch.stack([loss(iterations) for iterations in (0, 20, 60, 180, 540)])
    assert (losses.diff(dim=0) < 0).all()


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
    problem = amplitude_problem(phantom(8, 6, 1), 81)
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
    """It removes noise, so it follows its input little; with nothing to remove, entirely."""
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
