"""PSNR and SSIM against deepinv and scikit-image, and what holds for any images."""

from __future__ import annotations

import math
from collections.abc import Callable

import deepinv
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pnpilot.errors import BadInput
from pnpilot.metrics import psnr, ssim
from tests.conftest import phantom

METRICS = pytest.mark.parametrize("score", [psnr, ssim])
Score = Callable[[Tensor, Tensor], Tensor]
PROPERTY = settings(max_examples=15, deadline=None, derandomize=True)


def pair(channels: int = 1) -> tuple[Tensor, Tensor]:
    """Three noisy images and their truth; the channels differ in brightness and noise."""
    factors = torch.linspace(1, 0.4, channels)[:, None, None]
    truth = phantom(48, 40, 3) * factors
    return (truth + 0.05 / factors * torch.randn(truth.shape)).clamp(0, 1), truth


@pytest.mark.parametrize("channels", [1, 3])
def test_psnr_equals_deepinv_and_skimage(channels: int) -> None:
    estimate, truth = pair(channels)
    assert torch.allclose(psnr(estimate, truth), deepinv.metric.PSNR()(estimate, truth), atol=1e-4)
    metrics = pytest.importorskip("skimage.metrics")
    for ours, x, y in zip(psnr(estimate, truth), estimate, truth, strict=True):
        assert ours.item() == pytest.approx(
            metrics.peak_signal_noise_ratio(y.numpy(), x.numpy(), data_range=1), abs=1e-4
        )


@pytest.mark.parametrize("channels", [1, 3])
def test_ssim_equals_skimage(channels: int) -> None:
    metrics = pytest.importorskip("skimage.metrics")
    estimate, truth = pair(channels)
    for ours, x, y in zip(ssim(estimate, truth), estimate, truth, strict=True):
        theirs = metrics.structural_similarity(
            y.double().numpy(),
            x.double().numpy(),
            data_range=1,
            channel_axis=0,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
        assert ours.item() == pytest.approx(theirs, abs=1e-5)


def test_ssim_of_colour_is_that_of_its_channels() -> None:
    """Not that of the grey image, in which errors of opposite sign cancel."""
    truth = phantom(32, 24).expand(-1, 3, -1, -1)
    noise = 0.1 * torch.randn(2, 1, 32, 24)
    estimate = (truth + torch.cat([noise, -noise, torch.zeros_like(noise)], 1)).clamp(0, 1)
    channels = torch.stack([ssim(estimate[:, [c]], truth[:, [c]]) for c in range(3)])
    assert torch.allclose(ssim(estimate, truth), channels.mean(0), atol=1e-6)
    assert (ssim(estimate, truth) < 0.9).all()


def test_estimates_are_clamped_and_truths_are_not() -> None:
    _, truth = pair()
    ones = torch.ones_like(truth)
    assert torch.equal(psnr(truth + 2, ones), psnr(ones, ones))
    assert psnr(ones, truth + 2).max() < 0


@METRICS
def test_of_complex_images_the_real_part_counts(score: Score) -> None:
    estimate, truth = pair()
    expected = score(estimate, truth)
    assert torch.equal(score(torch.complex(estimate, truth), truth), expected)
    assert torch.equal(score(torch.complex(estimate, truth), torch.complex(truth, estimate)), expected)


@METRICS
def test_images_that_cannot_be_compared_are_refused(score: Score) -> None:
    with pytest.raises(BadInput, match="images of one shape"):
        score(torch.zeros(1, 2, 16, 16), torch.zeros(1, 1, 16, 16))
    with pytest.raises(BadInput, match="batch, channel, height, width"):
        score(torch.zeros(16, 16), torch.zeros(16, 16))


def test_ssim_says_how_large_an_image_must_be() -> None:
    with pytest.raises(BadInput, match="at least 11 × 11 pixels, got 16 × 10"):
        ssim(torch.zeros(1, 1, 16, 10), torch.zeros(1, 1, 16, 10))


@st.composite
def images(draw: st.DrawFn) -> Tensor:
    """Random images of any shape in [¼, ¾]."""
    shape = [draw(st.integers(*bounds)) for bounds in ((1, 4), (1, 3), (11, 40), (11, 40))]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    return 0.25 + torch.rand(shape, generator=generator) / 2


def noise_like(x: Tensor) -> Tensor:
    """Within ±¼."""
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(7)) / 2 - 0.25


@METRICS
@PROPERTY
@given(truth=images())
def test_identical_images_have_the_best_score(score: Score, truth: Tensor) -> None:
    best = 120.0 if score is psnr else 1.0
    assert score(truth, truth).tolist() == pytest.approx([best] * len(truth), abs=1e-4)
    assert (score(truth + noise_like(truth), truth) < best - 1e-3).all()


@METRICS
@PROPERTY
@given(truth=images(), data=st.data())
def test_every_image_of_a_batch_has_its_own_score(score: Score, truth: Tensor, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(truth))))
    estimate = truth + noise_like(truth)
    scores = score(estimate, truth)
    assert scores.shape == (len(truth),)
    assert torch.allclose(score(estimate[order], truth[order]), scores[order], atol=1e-5)
    assert torch.allclose(score(estimate[:1], truth[:1]), scores[:1], atol=1e-5)


@PROPERTY
@given(truth=images(), factor=st.floats(0.01, 1))
def test_psnr_falls_by_20_dB_when_errors_are_ten_times_as_large(truth: Tensor, factor: float) -> None:
    gain = psnr(truth + factor * noise_like(truth), truth) - psnr(truth + noise_like(truth), truth)
    assert gain.tolist() == pytest.approx([-20 * math.log10(factor)] * len(truth), abs=1e-2)


@PROPERTY
@given(truth=images())
def test_ssim_is_symmetric_and_does_not_mind_which_way_is_up(truth: Tensor) -> None:
    estimate = truth + noise_like(truth)
    expected = ssim(estimate, truth)
    assert (expected.abs() <= 1).all()
    assert torch.allclose(ssim(truth, estimate), expected, atol=1e-5)
    assert torch.allclose(ssim(estimate.mT, truth.mT), expected, atol=1e-5)
    assert torch.allclose(ssim(estimate.flip(-1), truth.flip(-1)), expected, atol=1e-5)
