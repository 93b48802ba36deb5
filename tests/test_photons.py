"""Photons behind linear operators: how each sample counts, and how the gain is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from deepinv.physics import (
    MRI,
    Blur,
    BlurFFT,
    CompressedSensing,
    Denoising,
    Downsampling,
    GaussianNoise,
    Inpainting,
    LinearPhysics,
    PoissonGaussianNoise,
    PoissonNoise,
    Tomography,
)
from deepinv.physics.functional import gaussian_blur
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.errors import BadInput
from pnpilot.metrics import psnr
from pnpilot.problems import Hints, open_problem
from pnpilot.problems._least_squares import operator_norm
from pnpilot.problems.base import problem_type
from pnpilot.problems.linear import LinearProblem
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.problems.photons import PhotonLimited
from pnpilot.tasks.poisson_deblurring import PoissonDeblurring
from tests.conftest import phantom
from tests.contracts import assert_close, random_like

SIZE = 48


def scene(batch: int = 2, channels: int = 1) -> Tensor:
    """Bright things before a background without any light."""
    picture = phantom(SIZE, SIZE, batch).repeat(1, channels, 1, 1)
    return (picture - 0.2).clamp_min(0)


def counted(physics: LinearPhysics, gain: float | Tensor = 0.02, **others: Any) -> LinearPhysics:
    """The same physics with photons for noise."""
    generator = torch.Generator().manual_seed(0)
    physics.noise_model = PoissonNoise(gain, clip_positive=True, rng=generator, **others)
    return physics


def operators(channels: int) -> dict[str, LinearPhysics]:
    shape, kernel = (channels, SIZE, SIZE), gaussian_blur(sigma=(1.0, 1.0))
    mask = (torch.rand(1, *shape, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    return {
        "denoising": Denoising(),
        "blur": Blur(kernel, padding="circular"),
        "blur by FFT": BlurFFT(shape, filter=kernel),
        "inpainting": Inpainting(shape, mask=mask),
        "super-resolution": Downsampling(shape, filter="gaussian", factor=2, padding="circular"),
        "tomography": Tomography(torch.arange(12) * 15.0, SIZE, circle=False, normalize=True),
    }


@pytest.mark.parametrize(("name", "channels"), [*((name, 1) for name in operators(1)), ("blur by FFT", 3)])
def test_the_truth_is_one_noise_level_from_its_data_behind_any_operator(name: str, channels: int) -> None:
    """With gains that differ between the images, and where nothing shines."""
    truth = scene(channels=channels)
    physics = operators(channels)[name]
    brightest = physics.A(truth).max()
    physics = counted(physics, brightest * torch.tensor([0.1, 0.01]))
    y = physics(truth)
    problem = open_problem(y, physics, Hints(peak=1.0))
    assert isinstance(problem, PhotonLimited)
    assert problem.made_from is type(physics)
    assert problem.notes == []
    assert not problem.closed_form
    # With ten photons at most, the start shows light where there is none.
    assert ((problem.fidelity(truth) > torch.tensor([0.8, 0.95])) & (problem.fidelity(truth) < 1.1)).all()
    assert operator_norm(problem.normal, problem.x0()).max() < 1.01
    assert problem.x0().isfinite().all()
    alone = open_problem(y[1:], counted(operators(channels)[name], brightest * 0.01), Hints(peak=1.0))
    assert_close(problem.select(torch.tensor([1])).grad(truth[1:]), alone.grad(truth[1:]), 2e-3)


def test_a_sample_counts_by_the_variance_that_is_expected_of_it() -> None:
    """∇D at zero is −AᴴW²y, for denoising the data over their variance."""
    truth = torch.cat([torch.full((1, 1, 32, 16), level) for level in (1.0, 0.5)], -1)
    physics = counted(Denoising(), 0.01)
    problem = open_problem(physics(truth), physics, Hints(peak=1.0))
    pull = -problem.grad(torch.zeros_like(truth))
    assert abs(pull[..., 4:12].mean() / pull[..., 20:28].mean() - 1) < 0.05
    assert abs(pull[..., 4:12].std() / pull[..., 20:28].std() - 0.5**0.5) < 0.1


def test_counts_are_the_same_problem_as_photons_times_gain() -> None:
    task, truth = PoissonDeblurring(), scene()
    y, physics = task.simulate(truth, task.settings[0])
    counts = counted(BlurFFT((1, SIZE, SIZE), filter=gaussian_blur(sigma=(1.6, 1.6))), 0.01, normalize=False)
    for hints in (Hints(peak=1.0), Hints()):
        one, other = open_problem(y, physics, hints), open_problem(100 * y, counts, hints)
        assert_close(other.export(other.x0()), one.export(one.x0()))
        assert_close(other.grad(truth), one.grad(truth))
    level = open_problem(100 * y, counts, Hints(peak=1.0, sigma_n=10.0)).units.sigma_n
    assert level is not None
    assert_close(level, torch.full((2,), 0.1), 0.01)


def test_a_level_that_is_told_is_one_for_all_samples() -> None:
    physics = counted(Denoising())
    problem = open_problem(physics(scene()), physics, Hints(sigma_n=0.1))
    assert type(problem) is LinearProblem


def test_k_space_is_not_counted_and_other_noise_has_no_gain() -> None:
    k_space = MRI(mask=torch.ones(1, 1, 8, 8), noise_model=PoissonGaussianNoise())
    assert problem_type(k_space) is MaskedFourier
    assert problem_type(Denoising(noise_model=GaussianNoise(0.1))) is LinearProblem
    with pytest.raises(BadInput, match="a gain is for physics whose noise model is"):
        PnPilot(gain=0.1)(scene(), Denoising(noise_model=GaussianNoise(0.1)))


def test_data_need_not_be_a_picture() -> None:
    """But 600 mixtures of its pixels; a batch is divided as elsewhere."""
    physics = CompressedSensing(m=600, img_size=(1, 16, 16), rng=torch.Generator().manual_seed(0))
    with torch.no_grad():
        physics._A.abs_()
        physics._A_adjoint.abs_()
    counted(physics, 0.01)
    truth = phantom(16, 16, 2)
    problem = open_problem(physics(truth), physics, Hints(peak=1.0))
    assert (problem.fidelity(truth) - 1).abs().max() < 0.1
    v, mu = random_like(truth, 1), torch.tensor([0.1, 0.5])
    assert_close(problem.select(torch.tensor([1])).prox(v[1:], mu[1:]), problem.prox(v, mu)[1:], 1e-4)


def test_weights_are_worth_something() -> None:
    """Dark things beside bright ones: called Gaussian, the noise of the bright ones is taken for theirs."""
    truth = torch.cat([0.05 + 0.1 * phantom(32, 32, 1), phantom(32, 32, 1)], -1)
    physics = counted(Denoising(), 0.02)
    y = physics(truth)
    level = (0.02 * y.mean()).sqrt().item()
    gaussian, photons = (PnPilot(peak=1.0, real=True, **told)(y, physics) for told in ({"sigma_n": level}, {}))
    assert psnr(photons, truth) > psnr(gaussian, truth) + 0.3


def test_read_noise_counts_too() -> None:
    physics = Denoising(PoissonGaussianNoise(0.02, 0.1, rng=torch.Generator().manual_seed(0)))
    problem = open_problem(physics(scene()), physics, Hints(peak=1.0))
    assert isinstance(problem, PhotonLimited)
    assert (problem.fidelity(scene()) - 1).abs().max() < 0.06


def test_a_gain_is_found_where_it_is_asked_for() -> None:
    truth = phantom(96, 96)
    physics = counted(Denoising(), torch.tensor([0.05, 0.01]))
    y = physics(truth)
    known, found = (open_problem(y, physics, Hints(peak=1.0, gain=gain)) for gain in (None, "estimate"))
    assert_close(found.fidelity(truth), known.fidelity(truth), 0.1)
    told = open_problem(y, physics, Hints(peak=1.0, gain=torch.tensor([0.2, 0.04])))
    assert_close(told.fidelity(truth), known.fidelity(truth) / 2, 0.1)


@pytest.mark.parametrize(
    ("physics", "gain", "message"),
    [
        (Denoising(PoissonNoise(0.1)), "guess", "a number, or 'estimate', got 'guess'"),
        (Denoising(PoissonNoise(0.1)), -1.0, "a gain must be a positive number"),
        (Denoising(PoissonNoise(0.1)), torch.ones(3), "3 gains for 2 images"),
        (Denoising(PoissonNoise(0.1, normalize=False)), "estimate", "the data are counts"),
        (operators(1)["inpainting"], "estimate", "a picture without gaps"),
        (Denoising(PoissonGaussianNoise(0.001, 0.5)), "estimate", "the gain of images 0, 1 does not show"),
    ],
    ids=["word", "negative", "number", "counts", "gaps", "hidden"],
)
def test_gains_that_cannot_be_are_refused(physics: LinearPhysics, gain: Any, message: str) -> None:
    if isinstance(physics, Inpainting):
        counted(physics)
    y = physics.A(scene())
    with pytest.raises(BadInput, match=message):
        open_problem(y, physics, Hints(gain=gain))
