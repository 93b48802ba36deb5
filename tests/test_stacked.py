"""Several measurements of one image: every part counts by its noise; and MRI that was measured in turns."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from deepinv.physics import (
    MRI,
    BlurFFT,
    Denoising,
    Downsampling,
    DynamicMRI,
    GaussianNoise,
    Inpainting,
    MultiCoilMRI,
    NoiseModel,
    Pansharpen,
    PhaseRetrieval,
    PoissonNoise,
    SaltPepperNoise,
    SequentialMRI,
    StackedLinearPhysics,
    StackedPhysics,
)
from deepinv.physics.functional import gaussian_blur
from deepinv.utils import TensorList
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, Incompatible
from pnpilot.metrics import psnr
from pnpilot.problems import Hints, Problem, open_problem
from pnpilot.problems.photons import PhotonLimited
from pnpilot.types import to_two_channels
from tests.conftest import phantom
from tests.contracts import assert_close, inner, random_like

SIDE = 24
HELD = Hints(peak=1.0, real=True)


def noise(level: float | Tensor, seed: int = 0) -> GaussianNoise:
    return GaussianNoise(level, rng=torch.Generator().manual_seed(seed))


def several(levels: Tensor | None = None) -> StackedLinearPhysics:
    blur = BlurFFT((1, SIDE, SIDE), filter=gaussian_blur(sigma=(1, 1)), noise_model=noise(0.02))
    small = Downsampling((1, SIDE, SIDE), filter="gaussian", factor=2, noise_model=noise(0.1, 1))
    return StackedLinearPhysics([blur, small, Denoising(noise(0.2 if levels is None else levels, 2))])


def test_two_noisy_images_are_their_weighted_mean(smoother: Denoiser) -> None:
    truth, first, second = phantom(SIDE, SIDE), 0.03, 0.12
    stack = StackedLinearPhysics([Denoising(noise(first, 1)), Denoising(noise(second, 2))])
    y = stack(truth)
    weights = torch.tensor([first, second]) ** -2
    mean, level = (weights[0] * y[0] + weights[1] * y[1]) / weights.sum(), float(weights.sum() ** -0.5)
    one = Denoising(noise(level))
    model = PnPilot(smoother, peak=1.0, real=True)
    # The level of a stack is that of its parts, whose number makes the operator stronger.
    assert_close(_level(open_problem(y, stack, HELD)), torch.full((2,), level), 1e-2)
    assert_close(model(y, stack), model(mean, one), 0.02)
    assert (psnr(model(y, stack), truth) > psnr(model(y[0], Denoising(noise(first))), truth)).all()


def test_a_noisier_part_counts_less_than_an_equal_weight_would_give(smoother: Denoiser) -> None:
    physics, truth = several(), phantom(SIDE, SIDE)
    y = physics(truth)
    weighted, equal = PnPilot(smoother)(y, physics), PnPilot(smoother, sigma_n=0.1)(y, physics)
    assert (psnr(weighted, truth) > psnr(equal, truth) + 0.5).all()


def test_a_stack_is_a_linear_problem_like_others() -> None:
    physics, truth = several(torch.tensor([0.2, 0.05])), phantom(SIDE, SIDE)
    problem = open_problem(physics(truth), physics, HELD)
    x, w = random_like(problem.x0(), 1), random_like(problem.y, 2)
    assert_close(inner(problem.A(x), w), inner(x, problem.A_adjoint(w)))
    assert ((problem.fidelity(truth) - 1).abs() < 0.1).all()
    z = problem.prox(x, mu := torch.tensor([0.3, 0.7]))
    assert_close(problem.grad(z) + mu[:, None, None, None] * (z - x) + x, x, 1e-3)
    moved = problem.to(torch.device("meta"))
    assert moved.y.device.type == "meta"


def test_a_batch_of_stacks_equals_one_by_one() -> None:
    levels = torch.tensor([0.2, 0.05])
    physics, truth = several(levels), phantom(SIDE, SIDE)
    y = physics(truth)
    batch = open_problem(y, physics, HELD)
    for place in range(2):
        alone = open_problem(TensorList([part[place : place + 1] for part in y]), several(levels[place]), HELD)
        part = batch.select(torch.tensor([place]))
        v = random_like(alone.x0(), 3)
        assert_close(part.prox(v, torch.tensor([0.1])), alone.prox(v, torch.tensor([0.1])))
        assert_close(part.x0(), alone.x0())
        assert_close(_level(part), _level(alone))


def _level(problem: Problem) -> Tensor:
    assert problem.units.sigma_n is not None
    return problem.units.sigma_n


def test_what_is_not_declared_is_read_from_a_part_or_told() -> None:
    truth = phantom(SIDE, SIDE)
    quiet = StackedLinearPhysics([Denoising(noise(0.05)), Denoising()])
    y = quiet(truth)
    y[1] = y[1] + 0.2 * random_like(truth, 1)
    problem = open_problem(y, quiet, HELD)
    assert problem.notes == []
    assert_close(_level(problem), torch.full((2,), (0.05**-2 + 0.2**-2) ** -0.5), 0.2)
    numbers = StackedLinearPhysics([Denoising(noise(0.05)), Inpainting((1, SIDE, SIDE), mask=_columns())])
    (note,) = open_problem(numbers(truth), numbers, HELD).notes
    assert note.startswith("no noise level is known of part 1 of the data: it counts as having the least")


def _columns() -> Tensor:
    return (torch.arange(SIDE) % 2 == 0).float().expand(1, SIDE, SIDE)


def test_levels_that_are_told_or_to_be_estimated() -> None:
    physics, truth = several(), phantom(SIDE, SIDE)
    y = physics(truth)
    told = open_problem(y, physics, Hints(peak=1.0, sigma_n=0.1))
    assert_close(_level(told), _level(open_problem(y, physics, Hints(peak=1.0, sigma_n=0.2))) / 2, 1e-4)
    found = open_problem(y, physics, Hints(peak=1.0, sigma_n="estimate"))
    assert_close(_level(found), _level(open_problem(y, physics, HELD)), 0.5)


def test_pansharpening_is_better_than_either_picture(smoother: Denoiser) -> None:
    truth = torch.cat([phantom(SIDE, SIDE) * share for share in (1.0, 0.8, 0.5)], 1)
    physics = Pansharpen((3, SIDE, SIDE), factor=2, noise_color=noise(0.01), noise_gray=noise(0.02, 1))
    y = physics(truth)
    coarse = PnPilot(smoother)(y[0], physics.downsampling)
    assert (psnr(PnPilot(smoother)(y, physics), truth) > psnr(coarse, truth) + 1).all()


def test_stacks_of_mri_are_complex(smoother: Denoiser) -> None:
    truth = torch.cat([phantom(SIDE, SIDE), 0.5 * phantom(SIDE, SIDE)], 1)
    first, second = torch.ones(1, 1, SIDE, SIDE), _columns()[None]
    maps = torch.exp(0.3j * torch.arange(4))[None, :, None, None].expand(1, 4, SIDE, SIDE) / 2
    parts = [MRI(mask=first, noise_model=noise(0.1)), MultiCoilMRI(mask=second, coil_maps=maps, noise_model=noise(0.1))]
    physics = StackedLinearPhysics(parts)
    x = PnPilot(smoother)(physics(truth), physics)
    assert x.shape == truth.shape
    assert (x - truth).norm() < 0.3 * truth.norm()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (torch.ones(1, 1, SIDE, SIDE), "has 3 parts: give a TensorList with as many"),
        (TensorList([torch.ones(1, 1, SIDE, SIDE)]), "has 3 parts"),
        (
            TensorList([torch.ones(1, 1, SIDE, SIDE)] * 3),
            "part 1 of the data, of shape .* does not fit the Downsampling",
        ),
        (TensorList([torch.full((1, 1, SIDE, SIDE), torch.nan)] * 3), "part 0 of the data holds 576 NaN"),
        (
            TensorList([torch.ones(count, 1, SIDE // part, SIDE // part) for count, part in ((1, 1), (2, 2), (1, 1))]),
            r"the parts hold \[1, 2, 1\] images",
        ),
    ],
)
def test_data_that_do_not_fit_a_stack_are_refused(data: Tensor | TensorList, message: str, smoother: Denoiser) -> None:
    with pytest.raises(BadInput, match=message):
        PnPilot(smoother)(data, several())


def test_parts_on_another_device_are_refused(smoother: Denoiser) -> None:
    y = TensorList(
        [torch.ones(1, 1, SIDE, SIDE), torch.ones(1, 1, 12, 12, device="meta"), torch.ones(1, 1, SIDE, SIDE)]
    )
    model = PnPilot("compact")
    with pytest.raises(BadInput, match="the data are on meta, the model on cpu"):
        model(y, several())


def test_what_is_no_stack_of_linear_parts_is_refused() -> None:
    bent = StackedPhysics([Denoising(), PhaseRetrieval(Denoising())])
    with pytest.raises(Incompatible, match="no way to reconstruct from a StackedPhysics"):
        open_problem(bent(phantom(SIDE, SIDE)), bent)
    wrong = StackedLinearPhysics([Denoising(), PhaseRetrieval(Denoising())])
    with pytest.raises(BadInput, match="part 1 of the stack, a PhaseRetrieval, is not linear"):
        open_problem(wrong(phantom(SIDE, SIDE)), wrong)


def test_mri_in_turns_is_mri_of_their_mean() -> None:
    """Where a sample was measured twice, its mean has less noise."""
    masks = torch.ones(2, 2, 2, SIDE, SIDE)
    masks[:, :, 1, :, SIDE // 2 :] = 0
    physics = SequentialMRI(mask=masks, noise_model=noise(0.05))
    y = physics(to_two_channels(phantom(SIDE, SIDE)))
    problem = open_problem(y, physics, HELD)
    one, other = (random_like(problem.x0(), seed) for seed in (1, 2))
    in_turns = [(physics.A(to_two_channels(x)) - y).square().flatten(1).sum(1) for x in (one, other)]
    # Up to a constant, and the strength of the mask: what was measured twice has √2.
    assert_close(4 * (problem.D(one) - problem.D(other)), in_turns[0] - in_turns[1], 1e-3)
    assert_close(_level(problem), torch.full((2,), 0.05 / 2**0.5))


def test_films_are_refused_with_the_way_to_give_them() -> None:
    masks = torch.stack([torch.ones(1, SIDE, SIDE), _columns()], 1)[None].repeat(2, 2, 1, 1, 1)
    film = random_like(torch.zeros(2, 2, 2, SIDE, SIDE), 1)
    physics = DynamicMRI(mask=masks)
    y = physics(film)
    with pytest.raises(Incompatible, match="give its frames as a batch") as told:
        open_problem(y, physics)
    told_mask, told_y = re.findall(r"(?:mask=|with )(\w+\.transpose\(1, 2\)\.flatten\(0, 1\))", str(told.value))
    frames = MRI(mask=eval(told_mask, {"mask": physics.mask}))
    assert_close(eval(told_y, {"y": y}), frames.A(film.transpose(1, 2).flatten(0, 1)))


def test_salt_and_pepper_are_refused() -> None:
    physics = Denoising(SaltPepperNoise(0.1, 0.1))
    with pytest.raises(Incompatible, match="leaves nothing of the pixels that it hits"):
        open_problem(physics(phantom(SIDE, SIDE)), physics)


def photons(gain: float, seed: int = 0, **others: Any) -> PoissonNoise:
    return PoissonNoise(gain, clip_positive=True, rng=torch.Generator().manual_seed(seed), **others)


def blurred(width: float, noise_model: NoiseModel) -> BlurFFT:
    return BlurFFT((1, SIDE, SIDE), filter=gaussian_blur(sigma=(width, width)), noise_model=noise_model)


@pytest.mark.parametrize("normalize", [False, True])
def test_photons_of_several_cameras(smoother: Denoiser, *, normalize: bool) -> None:
    """Counts are brought to one scale by their gains, and each sample counts by the variance expected of it."""
    truth = phantom(SIDE, SIDE)
    first = blurred(1, photons(0.02, 1, normalize=normalize))
    second = Denoising(photons(0.05, 2, normalize=normalize))
    stack = StackedLinearPhysics([first, second])
    y = stack(truth)
    problem = open_problem(y, stack, HELD)
    assert isinstance(problem, PhotonLimited)
    assert problem.notes == []
    assert ((problem.fidelity(truth) - 1).abs() < 0.1).all()
    image = PnPilot(smoother)(y, stack)
    assert_close(image.mean(), truth.mean(), 0.03)
    assert (psnr(image, truth) > psnr(PnPilot(smoother)(y[1], second), truth)).all()


def test_photons_beside_other_noise() -> None:
    """∇D at zero is the sum of the data over their variances."""
    truth = torch.cat([torch.full((1, 1, 32, 16), level) for level in (1.0, 0.5)], -1)
    stack = StackedLinearPhysics([Denoising(photons(0.02, normalize=False)), Denoising(noise(0.1))])
    problem = open_problem(stack(truth), stack, HELD)
    assert isinstance(problem, PhotonLimited)
    pull = -problem.grad(torch.zeros_like(truth))
    bright, dark = 1 / 0.02 + 1 / 0.01, 0.5 / 0.01 + 0.5 / 0.01
    assert abs(pull[..., 4:12].mean() / pull[..., 20:28].mean() / (bright / dark) - 1) < 0.05
    assert ((problem.fidelity(truth) - 1).abs() < 0.1).all()


def test_a_batch_of_stacks_with_photons_equals_one_by_one() -> None:
    def stack(gain: Tensor) -> StackedLinearPhysics:
        return StackedLinearPhysics([blurred(1, PoissonNoise(gain, clip_positive=True)), Denoising(noise(0.1))])

    gains, truth = torch.tensor([0.05, 0.01]), phantom(SIDE, SIDE)
    y = stack(gains)(truth)
    batch = open_problem(y, stack(gains), HELD)
    v, mu = random_like(truth, 3), torch.tensor([0.1])
    for place in range(2):
        own = slice(place, place + 1)
        alone = open_problem(TensorList([part[own] for part in y]), stack(gains[own]), HELD)
        assert_close(batch.select(torch.tensor([place])).prox(v[own], mu), alone.prox(v[own], mu), 2e-3)


def test_a_gain_or_a_level_can_be_told_of_photons_in_a_stack() -> None:
    truth = phantom(SIDE, SIDE)
    stack = StackedLinearPhysics([Denoising(photons(0.02, seed)) for seed in range(2)])
    y = stack(truth)
    known, told = (open_problem(y, stack, Hints(peak=1.0, real=True, gain=gain)) for gain in (None, 0.08))
    assert_close(told.fidelity(truth), known.fidelity(truth) / 2, 0.05)
    counts = StackedLinearPhysics([Denoising(photons(0.02, normalize=False)), Denoising(photons(0.02))])
    level = _level(open_problem(counts(truth), counts, Hints(peak=1.0, sigma_n=0.1)))
    assert_close(level, torch.full((2,), (0.002**-2 + 0.1**-2) ** -0.5), 0.02)
    with pytest.raises(BadInput, match="a gain is for physics whose noise model is"):
        open_problem(several()(truth), several(), Hints(gain=0.1))


def test_salt_and_pepper_in_a_part_are_refused() -> None:
    stack = StackedLinearPhysics([Denoising(noise(0.1)), Denoising(SaltPepperNoise(0.1, 0.1))])
    with pytest.raises(Incompatible, match="leaves nothing of the pixels that it hits"):
        open_problem(stack(phantom(SIDE, SIDE)), stack)
