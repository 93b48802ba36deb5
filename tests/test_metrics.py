"""PSNR and SSIM against deepinv and scikit-image."""

from __future__ import annotations

import deepinv
import pytest
import torch

from pnpilot.errors import BadInput
from pnpilot.metrics import psnr, ssim
from tests.conftest import phantom


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    truth = phantom(48, 40, 3)
    return (truth + 0.05 * torch.randn(truth.shape)).clamp(0, 1), truth


def test_psnr_equals_deepinv_and_skimage() -> None:
    estimate, truth = pair()
    assert torch.allclose(psnr(estimate, truth), deepinv.metric.PSNR()(estimate, truth), atol=1e-4)
    metrics = pytest.importorskip("skimage.metrics")
    theirs = metrics.peak_signal_noise_ratio(truth[0, 0].numpy(), estimate[0, 0].numpy(), data_range=1)
    assert psnr(estimate, truth)[0].item() == pytest.approx(theirs, abs=1e-4)


def test_ssim_equals_skimage() -> None:
    metrics = pytest.importorskip("skimage.metrics")
    estimate, truth = pair()
    for index in range(3):
        theirs = metrics.structural_similarity(
            truth[index, 0].double().numpy(),
            estimate[index, 0].double().numpy(),
            data_range=1,
            gaussian_weights=True,
            sigma=1.5,
            use_sample_covariance=False,
        )
        assert ssim(estimate, truth)[index].item() == pytest.approx(theirs, abs=1e-3)


def test_estimates_are_clamped_and_complex_ones_lose_their_imaginary_part() -> None:
    _, truth = pair()
    assert torch.equal(psnr(truth + 2, torch.ones_like(truth)), psnr(torch.ones_like(truth), torch.ones_like(truth)))
    assert torch.equal(psnr(torch.complex(truth, truth), truth), psnr(truth, truth))


def test_images_of_different_shapes_are_not_compared() -> None:
    for score in (psnr, ssim):
        with pytest.raises(BadInput, match="images of one shape"):
            score(torch.zeros(1, 2, 16, 16), torch.zeros(1, 1, 16, 16))
