"""Colour through every linear operator: three channels with one peak and one noise level, images of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from deepinv.physics import (
    Blur,
    BlurFFT,
    Demosaicing,
    Denoising,
    Downsampling,
    GaussianNoise,
    Inpainting,
    LinearPhysics,
    Tomography,
)
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.policies.schedules import Schedule
from pnpilot.solvers import build_solver
from tests.conftest import phantom
from tests.contracts import assert_close

SIZE = 24
Own = Callable[[slice], LinearPhysics]
"""The operator for some of the images of a batch of two."""


def colours() -> Tensor:
    """Two images whose channels differ."""
    grey = phantom(SIZE, SIZE)
    return torch.cat([grey, grey.flip(-1) * 0.7 + 0.1, grey.flip(-2) * 0.5], 1)


def kernels() -> Tensor:
    """A kernel for each image, not symmetric."""
    found = torch.zeros(2, 1, 5, 5)
    found[0, 0, :3, :3], found[1, 0, 1:, 2:] = 1, torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    return found / found.sum((-2, -1), keepdim=True)


def mask() -> Tensor:
    """Other pixels are missing in every colour of every image."""
    return (torch.rand(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1)) > 0.4).float()


SHAPE = (3, SIZE, SIZE)
OPERATORS: dict[str, Own] = {
    "blur without wrapping": lambda own: Blur(kernels()[own], padding="valid", use_fft=True),
    "blur by FFT": lambda own: BlurFFT(SHAPE, filter=kernels()[own]),
    "inpainting": lambda own: Inpainting(SHAPE, mask=mask()[own]),
    "super-resolution": lambda own: Downsampling(SHAPE, filter=kernels()[own], factor=2, padding="circular"),
    "tomography": lambda _: Tomography(angles=12, img_width=SIZE, normalize=True),
    "demosaicing": lambda _: Demosaicing(SHAPE),
    "denoising": lambda _: Denoising(),
}
LEVELS = torch.tensor([0.01, 0.05])


def measured(name: str, own: slice = slice(None)) -> tuple[Tensor, LinearPhysics]:
    physics = OPERATORS[name](own)
    physics.noise_model = GaussianNoise(LEVELS[own])
    clean = OPERATORS[name](slice(None)).A(colours())
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(2))
    if name in ("inpainting", "demosaicing"):
        noise = noise * (clean != 0)
    return (clean + LEVELS[:, None, None, None] * noise)[own], physics


def quick(denoiser: Denoiser, **hints: Any) -> PnPilot:
    """Few iterations do."""
    return PnPilot(denoiser, policy=Schedule(build_solver("admm", frozenset({"prox", "grad", "linear"})), 6), **hints)


@pytest.mark.parametrize("name", OPERATORS)
def test_colour_images_in_a_batch_are_those_alone(name: str, smoother: Denoiser) -> None:
    model, truth = quick(smoother), colours()
    y, physics = measured(name)
    found = model.reconstruct(y, physics)
    assert found.image.shape == truth.shape
    assert [record["solver"] for record in found.trace] == ["admm"] * 2
    for place in range(2):
        alone = model.reconstruct(*measured(name, slice(place, place + 1))).image
        assert_close(found.image[place : place + 1], alone, 1e-3)
    error = (found.image - truth).flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
    assert bool((error < 0.25).all()), error


GREY: dict[str, Callable[[Tensor], LinearPhysics]] = {
    "blur by FFT": lambda _: BlurFFT((1, SIZE, SIZE), filter=kernels()[:1]),
    "inpainting": lambda part: Inpainting((1, SIZE, SIZE), mask=part),
    "super-resolution": lambda _: Downsampling((1, SIZE, SIZE), filter=kernels()[:1], factor=2, padding="circular"),
}
"""The operator of the first image for one channel, with the mask of that."""


@pytest.mark.parametrize("name", GREY)
def test_colours_do_not_mix(name: str, smoother: Denoiser) -> None:
    """Each is what it would be as a grey image with the same peak and noise."""
    y, physics = measured(name, slice(0, 1))
    model = quick(smoother, peak=1.0, real=True)
    together = model.reconstruct(y, physics).image
    for channel in range(3):
        one = GREY[name](mask()[:1, channel : channel + 1])
        one.noise_model = GaussianNoise(LEVELS[:1])
        alone = model.reconstruct(y[:, channel : channel + 1], one).image
        assert_close(together[:, channel : channel + 1], alone, 0.02)
