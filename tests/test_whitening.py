"""The covariance of the noise of coils, and data and maps without it."""

from __future__ import annotations

import pytest
import torch
from deepinv.physics import MultiCoilMRI
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.benchmark.scan import centred_fft2
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput
from pnpilot.problems import open_problem
from pnpilot.tasks._masks import build_mask
from pnpilot.tasks.multi_coil import simulated_maps
from pnpilot.whitening import coil_covariance, whitened
from tests.conftest import phantom
from tests.contracts import assert_close

COILS, HEIGHT, WIDTH = 4, 96, 80


def covariance() -> Tensor:
    """Coils of different levels, two of them correlated."""
    mixing = torch.diag(torch.tensor([0.02, 0.05, 0.03, 0.04])).to(torch.complex64)
    mixing = mixing + torch.tensor([[0, 0, 0, 0], [0.02 + 0.01j, 0, 0, 0], [0, 0, 0, 0], [0, 0, -0.015j, 0]])
    return mixing @ mixing.mH


def scan_of(seed: int = 0, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """K-space with noise of a covariance, and maps."""
    generator = torch.Generator().manual_seed(seed)
    maps = simulated_maps(COILS, HEIGHT, WIDTH, generator)
    factor = torch.linalg.cholesky(covariance() if noise is None else noise)
    white = torch.view_as_complex(torch.randn(COILS, HEIGHT, WIDTH, 2, generator=generator))
    image = phantom(HEIGHT, WIDTH, 1)[0, 0] + 0j
    return centred_fft2(maps * image) + torch.einsum("dc,chw->dhw", factor, white), maps


@pytest.mark.parametrize("sampled", [None, "random", "radial"])
def test_the_covariance_is_read_from_the_outermost_samples(sampled: str | None) -> None:
    kspace, _ = scan_of()
    mask = None if sampled is None else build_mask(sampled, HEIGHT, WIDTH, 2, torch.Generator().manual_seed(0))
    found = coil_covariance(kspace if mask is None else mask * kspace, mask)
    assert_close(found, found.mH)
    if mask is not None:
        assert torch.equal(coil_covariance(mask * kspace, mask.expand(1, 2, -1, -1)), found), "as a physics holds it"
    level = covariance().diagonal().real.sqrt()
    assert ((found.diagonal().real.sqrt() / level - 1).abs() < 0.15).all()
    correlation = (found - covariance()) / (level[:, None] * level)
    assert correlation.abs().max() < 0.15
    for one, other in ((1, 0), (3, 2)):  # their correlation coefficients are 0.4 and 0.35
        assert found[one, other].abs() > 0.25 * level[one] * level[other]


def test_a_scale_passes_through_and_coils_may_be_in_any_order() -> None:
    kspace, _ = scan_of()
    found, order = coil_covariance(kspace), torch.tensor([2, 0, 3, 1])
    assert_close(coil_covariance(1e3 * kspace), 1e6 * found, 1e-4)
    assert_close(coil_covariance(kspace[order]), found[order][:, order], 1e-3)


def test_whitened_noise_has_level_one_and_no_correlation() -> None:
    kspace, maps = scan_of()
    clean, _ = scan_of(noise=1e-12 * torch.eye(COILS, dtype=torch.complex64))
    data, _ = whitened(kspace, maps, covariance())
    silent, _ = whitened(clean, maps, covariance())
    noise = (data - silent).flatten(1)
    found = noise @ noise.mH / (2 * noise.shape[1])
    assert_close(found, torch.eye(COILS, dtype=found.dtype), 0.05)


def test_the_image_behind_whitened_data_is_the_same(smoother: Denoiser) -> None:
    """The same operator on the same image; and nearer to the truth than without, as loud coils count for less."""
    noise = covariance()
    noise = noise + torch.diag(torch.tensor([0.0, 0.3, 0.0, 0.2])).to(noise.dtype)
    kspace, maps = scan_of(noise=noise)
    data, coils = whitened(kspace, maps, noise)
    image = phantom(HEIGHT, WIDTH, 1)
    assert_close(centred_fft2(coils * image[0, 0]), whitened(centred_fft2(maps * image[0, 0]), maps, noise)[0], 1e-4)
    mask = torch.ones(HEIGHT, WIDTH)
    plain, white = (
        PnPilot(smoother)(measured[None], MultiCoilMRI(mask=mask, coil_maps=own[None], img_size=(2, HEIGHT, WIDTH)))
        for measured, own in ((kspace, maps), (data, coils))
    )
    truth = torch.cat([image, 0 * image], 1)
    assert (white - truth).norm() < 0.8 * (plain - truth).norm()
    physics = MultiCoilMRI(mask=mask, coil_maps=coils[None], img_size=(2, HEIGHT, WIDTH))
    problem = open_problem(data[None], physics)
    assert problem.units.sigma_n is not None
    in_units_of_data = problem.units.sigma_n * problem.units.peak * coils.abs().square().sum(0).sqrt().max()
    assert in_units_of_data.item() == pytest.approx(1, rel=0.1)


def test_what_does_not_fit_is_refused() -> None:
    kspace, maps = scan_of()
    with pytest.raises(BadInput, match=r"k-space must be complex \(coils, H, W\), got torch.float32"):
        coil_covariance(kspace.abs())
    with pytest.raises(BadInput, match="a coil without noise: is it empty"):
        coil_covariance(torch.cat([kspace[:3], 0 * kspace[:1]]))
    with pytest.raises(BadInput, match="too few for the covariance of 60 coils"):
        coil_covariance(torch.randn(60, 8, 8, dtype=torch.complex64))
    with pytest.raises(BadInput, match="does not fit k-space"):
        coil_covariance(kspace, torch.ones(3, 3))
    with pytest.raises(BadInput, match="k-space is zero wherever the mask samples it"):
        coil_covariance(kspace, torch.zeros(HEIGHT, WIDTH))
    with pytest.raises(BadInput, match="two coils may be copies of each other"):
        coil_covariance(kspace[:1].expand(4, -1, -1))
    with pytest.raises(BadInput, match="do not agree"):
        whitened(kspace, maps[:3], covariance())
    twice = torch.ones(COILS, COILS, dtype=torch.complex64)
    with pytest.raises(BadInput, match="not positive definite"):
        whitened(kspace, maps, twice)
