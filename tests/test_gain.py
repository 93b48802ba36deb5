"""Gain and read noise of photographs that scikit-image ships, with noise drawn on them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pnpilot.errors import BadInput
from pnpilot.problems._gain import estimated_gain


def photograph(name: str) -> Tensor:
    """A photograph (C, H, W) in [0, 1]."""
    from skimage import data

    picture = torch.from_numpy(getattr(data, name)()).double() / 255
    return picture.permute(2, 0, 1) if picture.ndim == 3 else picture[None]


def noisy(picture: Tensor, photons: float, sigma: float = 0.0) -> Tensor:
    """So many photons where it is one, and read noise."""
    generator = torch.Generator().manual_seed(0)
    counted = torch.poisson(photons * picture, generator=generator) / photons
    return counted + sigma * torch.randn(picture.shape, generator=generator, dtype=picture.dtype)


@pytest.mark.parametrize("name", ["camera", "astronaut", "chelsea"])
@pytest.mark.parametrize("photons", [10, 30, 100])
def test_the_gain_of_photons_alone(name: str, photons: float) -> None:
    found = estimated_gain(noisy(photograph(name), photons))
    assert abs(found.gain * photons - 1) < 0.08
    assert found.sigma < 0.01
    assert abs(estimated_gain(noisy(photograph(name), photons), sigma=0.0).gain * photons - 1) < 0.08


@pytest.mark.parametrize(("photons", "sigma"), [(100, 0.05), (1000, 0.02)])
@pytest.mark.parametrize("name", ["camera", "astronaut", "chelsea"])
def test_gain_and_read_noise(name: str, photons: float, sigma: float) -> None:
    """With many photons fine detail counts for some of the noise."""
    gain, found = estimated_gain(noisy(photograph(name), photons, sigma))
    assert abs(gain * photons - 1) < 0.15
    assert abs(found / sigma - 1) < 0.15
    assert abs(estimated_gain(noisy(photograph(name), photons, sigma), sigma).gain * photons - 1) < 0.25


def test_noise_that_is_the_same_everywhere_has_no_gain() -> None:
    picture = photograph("camera")
    noise = torch.randn(picture.shape, generator=torch.Generator().manual_seed(0), dtype=picture.dtype)
    gain, sigma = estimated_gain(picture + 0.05 * noise)
    assert gain == 0
    assert abs(sigma / 0.05 - 1) < 0.05


def test_units_do_not_matter_and_full_pixels_do_not_count() -> None:
    y = noisy(photograph("astronaut"), 30)
    whole, cut = estimated_gain(y), estimated_gain((1000 * y).clamp_max(700))
    assert estimated_gain(1000 * y).gain == pytest.approx(1000 * whole.gain, rel=1e-3)
    assert cut.gain == pytest.approx(1000 * whole.gain, rel=0.1)


def test_what_is_too_small_or_flat_tells_nothing() -> None:
    assert math.isnan(estimated_gain(torch.rand(1, 30, 30)).gain)
    assert math.isnan(estimated_gain(torch.ones(1, 300, 300)).sigma)
    with pytest.raises(BadInput, match="real pictures"):
        estimated_gain(torch.ones(64, 64))
