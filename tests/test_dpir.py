"""DPIR as published: its starts, its turned images, and that it is no worse than what it starts from."""

from __future__ import annotations

import pytest
import torch
from deepinv.physics import Blur, Downsampling, GaussianNoise
from deepinv.physics.functional import gaussian_blur

from pnpilot.baselines import build_baseline
from pnpilot.baselines.dpir_published import enlarged, filled, recipe_for, turned
from pnpilot.errors import Incompatible
from pnpilot.metrics import psnr
from pnpilot.tasks import build_task
from tests.conftest import phantom
from tests.contracts import assert_close


@pytest.mark.parametrize("number", range(8))
def test_images_are_turned_and_turned_back(number: int) -> None:
    image = torch.rand(2, 1, 6, 9)
    assert torch.equal(turned(turned(image, number), number, back=True), image)


def test_eight_ways_to_turn() -> None:
    image = torch.rand(1, 1, 5, 5)
    ways = {tuple(turned(image, number).flatten().tolist()) for number in range(8)}
    assert len(ways) == 8
    assert torch.equal(turned(image, 8), image)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_enlarged_images_lie_where_the_samples_were_seen(factor: int) -> None:
    """A slope comes back without a shift, but near the edges, where the operator wraps around."""
    physics = Downsampling((1, 48, 72), filter="bicubic", factor=factor, padding="circular")
    slope = (torch.arange(48.0)[:, None] / 96 + torch.arange(72.0) / 144)[None, None]
    middle = (..., slice(18, 30), slice(18, 54))
    off = (enlarged(physics.A(slope), physics) - slope)[middle]
    assert off.mean().abs() < 1e-4  # a hundredth of a pixel
    assert off.abs().max() < 4e-3


def test_gaps_are_filled_by_the_mean_of_what_is_around_them() -> None:
    colours = phantom(32, 32, 1).repeat(1, 3, 1, 1)
    task = build_task("demosaicing")
    y, physics = task.simulate(colours, task.named("bayer sigma=0"))
    green = filled(y, physics.mask)[0, 1]
    row, column = 10, 12
    assert physics.mask[0, 1, row, column] == 0
    around = colours[0, 1, [row - 1, row + 1, row, row], [column, column, column - 1, column + 1]]
    assert green[row, column] == pytest.approx(around.mean().item(), abs=1e-6)
    wide = torch.zeros(1, 1, 9, 9)
    wide[..., 0] = 1
    assert_close(filled(0.5 * wide, wide), torch.full_like(wide, 0.5))


@pytest.mark.parametrize(
    ("task", "setting", "iterations"),
    [
        ("super-resolution", "factor=2 sigma=2.55", 24),
        ("inpainting", "kept=0.5 sigma=5", 30),
        ("denoising", "sigma=25", 8),
    ],
)
def test_it_is_better_than_its_start(task: str, setting: str, iterations: int) -> None:
    kind = build_task(task)
    truth = phantom(32, 32, 1)
    y, physics = kind.simulate(truth, kind.named(setting))
    image, counted = build_baseline("dpir-published").answer(y, physics)
    assert counted.tolist() == [iterations]
    assert psnr(image, truth) > psnr(recipe_for(y, physics).start, truth) + 1


def test_what_was_measured_without_noise_is_kept() -> None:
    task = build_task("demosaicing")
    y, physics = task.simulate(phantom(16, 16, 1).repeat(1, 3, 1, 1), task.named("bayer sigma=0"))
    image = build_baseline("dpir-published")(y, physics)
    assert torch.equal(image * physics.mask, y)


def test_images_that_shrink_are_refused() -> None:
    physics = Blur(gaussian_blur(sigma=(1.0, 1.0)), padding="valid", noise_model=GaussianNoise(0.01))
    with pytest.raises(Incompatible, match="dpir-published needs a blurred image that is as large as the sharp one"):
        build_baseline("dpir-published")(physics(phantom(32, 32, 1)), physics)
