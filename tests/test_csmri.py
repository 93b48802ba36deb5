"""CS-MRI: masks, noise and the fast data step, against other people's code."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from deepinv.physics import MRI, GaussianNoise

from pnpilot import PnPilot
from pnpilot.denoisers import Denoiser
from pnpilot.errors import BadInput, UnknownName
from pnpilot.guess import CLEAN
from pnpilot.physics import selected
from pnpilot.problems import Hints, open_problem
from pnpilot.tasks._masks import MASKS, build_mask, radial
from pnpilot.tasks.csmri import CSMRI
from tests.conftest import phantom
from tests.contracts import assert_close, random_like


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (48, 32)])
def test_prox_equals_deepinv(size: tuple[int, int]) -> None:
    y, physics = CSMRI().simulate(phantom(*size), CSMRI.setting(4, 15), seed=1)
    problem = open_problem(y, physics, Hints(peak=1.0))
    v, mu = random_like(problem.x0(), 1), torch.tensor([0.02, 0.6])
    theirs = physics.prox_l2(torch.cat([v.real, v.imag], 1), y, gamma=(1 / mu)[:, None, None, None])
    assert_close(problem.export(problem.prox(v, mu)), theirs, 1e-5)


@pytest.mark.parametrize("size", [(16, 16), (15, 22)])
def test_forward_model_equals_sigpy(size: tuple[int, int]) -> None:
    sigpy = pytest.importorskip("sigpy")
    truth = phantom(*size, 1)
    setting = CSMRI.setting(2, 0)
    y, physics = CSMRI().simulate(truth, setting)
    theirs = sigpy.fft(truth[0, 0].numpy().astype(np.complex64)) * physics.mask[0, 0].numpy()
    assert np.abs(y[0, 0].numpy() + 1j * y[0, 1].numpy() - theirs).max() < 1e-5


def test_start_is_the_zero_filled_image() -> None:
    y, physics = CSMRI().simulate(phantom(31, 40), CSMRI.setting(4, 5))
    problem = open_problem(y, physics)
    assert_close(problem.export(problem.x0()), physics.A_adjoint(y))


def test_noise_has_the_stated_level_on_each_part() -> None:
    truth = phantom(128, 128, 1)
    y, physics = CSMRI().simulate(truth, CSMRI.setting(2, 15))
    noise = (y - physics.A(CSMRI().embed(truth)))[physics.mask.bool()]
    assert abs(noise.std().item() * 255 - 15) < 0.3
    assert (y[~physics.mask.bool()] == 0).all()


@pytest.mark.parametrize("acceleration", [2, 4, 8])
@pytest.mark.parametrize("kind", MASKS)
def test_masks_sample_about_their_share(kind: str, acceleration: int) -> None:
    mask = build_mask(kind, 128, 128, acceleration, generator())
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    assert mask[64, 64] == 1
    assert abs(mask.mean().item() * acceleration - 1) < 0.12


@pytest.mark.parametrize("size", [(128, 128), (96, 128), (65, 33), (230, 180)])
def test_radial_mask_has_its_spokes(size: tuple[int, int]) -> None:
    """On a circle well outside the crowded centre, spokes are apart and can be counted."""
    mask = radial(*size, 8)
    spokes = round(max(size) / 8)
    radius = min(size) / 2 - 2
    angles = torch.linspace(0, 2 * torch.pi, 20_000)
    rows = (size[0] // 2 + radius * torch.sin(angles)).round().long()
    columns = (size[1] // 2 + radius * torch.cos(angles)).round().long()
    ring = mask[rows, columns]
    crossings = int(((ring[1:] == 1) & (ring[:-1] == 0)).sum())
    assert abs(crossings - 2 * spokes) <= 2
    assert mask[size[0] // 2].all()
    assert mask[size[0] // 2, size[1] // 2] == 1


def test_radial_x4_at_128_is_pinned() -> None:
    """32 spokes, 26.2 % of k-space; the same to the pixel as when it was compared with the published mask."""
    mask = radial(128, 128, 4)
    assert int(mask.sum()) == 4288
    assert mask[:, 64].all()
    assert mask[0].nonzero().flatten().tolist()[:5] == [0, 1, 12, 22, 30]


@pytest.mark.skipif("PNPILOT_DATA" not in os.environ, reason="PNPILOT_DATA names no folder with the published mask")
def test_radial_x4_at_128_agrees_with_the_published_mask() -> None:
    published = np.load(Path(os.environ["PNPILOT_DATA"]) / "masks" / "radial_128_x4_paper.npy").astype(bool)
    assert (radial(128, 128, 4).bool().numpy() != published).sum() <= 5


def test_own_masks_and_bad_settings() -> None:
    truth = phantom(32, 32, 1)
    own = (torch.rand(32, 32, generator=generator()) < 0.5).float()
    _, physics = CSMRI().simulate(truth, CSMRI.setting(2, 5, own))
    assert torch.equal(physics.mask[0, 0], own)
    _, physics = CSMRI().simulate(truth, CSMRI.setting(2, 5, own.numpy()))  # type: ignore[arg-type]
    assert torch.equal(physics.mask[0, 0], own)
    with pytest.raises(BadInput, match="they must agree"):
        CSMRI().simulate(truth, CSMRI.setting(2, 5, own[None, None]))
    with pytest.raises(BadInput, match=r"mask is \(16, 16\), the image \(32, 32\)"):
        CSMRI().simulate(truth, CSMRI.setting(2, 5, torch.ones(16, 16)))
    with pytest.raises(BadInput, match="noise level must be zero or more"):
        CSMRI.setting(4, -1)
    with pytest.raises(BadInput, match="acceleration must be at least 1"):
        CSMRI().simulate(truth, CSMRI.setting(0.5, 5))
    with pytest.raises(UnknownName, match="known: radial, cartesian, calibrated, random"):
        CSMRI().simulate(truth, CSMRI.setting(4, 5, "spiral"))


def test_weighted_masks_are_the_same_problem() -> None:
    """3·M, 3·y and 3·σ: the data step is a weighted mean whatever the unit of the weights."""
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 15))
    plain = open_problem(y, physics)
    weighted = open_problem(3 * y, MRI(mask=3 * physics.mask, noise_model=GaussianNoise(3 * 15 / 255)))
    v, mu = random_like(plain.x0(), 1), torch.tensor([0.02, 0.6])
    assert_close(weighted.prox(v, mu), plain.prox(v, mu))
    assert_close(weighted.grad(v), plain.grad(v))
    assert weighted.units.sigma_n is not None
    assert plain.units.sigma_n is not None
    assert_close(weighted.units.sigma_n, plain.units.sigma_n)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", [(32, 32), (33, 40)])
def test_images_with_phase_are_recognised(mask: str, size: tuple[int, int]) -> None:
    task, truth = CSMRI(), phantom(*size, 2)
    setting = task.setting(2, 15, mask)
    y, physics = task.simulate(truth, setting)
    assert open_problem(y, physics).units.real.all()
    ramp = torch.linspace(-3, 3, size[1])
    for phase in (ramp, torch.tensor(0.25), torch.tensor(3.14)):
        turned = torch.cat([truth * torch.cos(phase), truth * torch.sin(phase)], 1)
        assert not open_problem(physics(turned), physics).units.real.any()
        assert open_problem(physics(turned), physics, Hints(real=True)).units.real.all()
    signed = task.embed(truth - truth.mean((1, 2, 3), keepdim=True))
    assert not open_problem(physics(signed), physics).units.real.any()


def test_data_that_cannot_tell_a_phase_count_as_complex() -> None:
    truth = phantom(32, 32)
    half = torch.zeros(32, 32)
    half[:, 18:] = 1  # no sample has its mirror image
    y, physics = CSMRI().simulate(truth, CSMRI.setting(2, 5, half))
    assert not open_problem(y, physics).units.real.any()


def test_a_real_and_a_complex_image_in_one_batch_are_as_if_alone(smoother: Denoiser) -> None:
    truth = phantom(32, 32, 3)
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 5))
    ramp = torch.linspace(-3, 3, 32)
    y[1] = physics(torch.cat([truth * torch.cos(ramp), truth * torch.sin(ramp)], 1))[1]
    together = PnPilot(smoother)(y, physics)
    assert open_problem(y, physics).units.real.tolist() == [True, False, True]
    for index in range(3):
        one = selected(physics, torch.tensor([index]), 3)
        assert_close(PnPilot(smoother)(y[index : index + 1], one), together[index : index + 1])
    assert (together[[0, 2], 1] == 0).all()
    assert together[1, 1].abs().max() > 0.1


@pytest.mark.parametrize("real", [None, True])
@pytest.mark.parametrize("mask", ["radial", "cartesian", "random"])
@pytest.mark.parametrize("sigma", [0, 3, 15])
def test_noise_that_nobody_declared_is_estimated(sigma: float, mask: str, real: bool | None) -> None:
    """Without noise there are still the edges of the image in the outermost samples, unless it is known to be real."""
    y, physics = CSMRI().simulate(phantom(96, 80), CSMRI.setting(4, sigma, mask))
    silent = MRI(mask=physics.mask)
    found = open_problem(y, silent, Hints(peak=1.0, real=real)).units.sigma_n
    assert found is not None
    if sigma or real:
        assert found.tolist() == pytest.approx([sigma / 255] * 2, rel=0.15, abs=1e-6)
    else:
        assert (found < CLEAN).all()  # as good as none
    doubled = open_problem(2 * y, silent, Hints(peak=2.0, real=real)).units.sigma_n
    assert doubled is not None and torch.allclose(doubled, found, rtol=1e-4)


def test_masks_that_do_not_fit_or_sample_nothing() -> None:
    y = torch.randn(1, 2, 16, 16)
    with pytest.raises(BadInput, match="they must agree"):
        open_problem(y, MRI(mask=torch.ones(8, 16)))
    lopsided = torch.ones(1, 2, 16, 16)
    lopsided[:, 1] = 0
    with pytest.raises(BadInput, match="same for real and imaginary"):
        open_problem(y, MRI(mask=lopsided))
    with pytest.raises(BadInput, match=r"complex \(batch, 1, height, width\), got complex of shape \(1, 2, 16, 16\)"):
        open_problem(torch.complex(y, y), MRI(mask=torch.ones(16, 16)))
    paired = open_problem(torch.complex(y[:, :1], y[:, 1:]), MRI(mask=torch.ones(16, 16)))
    assert_close(paired.y, open_problem(y, MRI(mask=torch.ones(16, 16))).y)
    for value in (float("nan"), float("inf")):
        broken = torch.ones(16, 16)
        broken[3, 3] = value
        with pytest.raises(BadInput, match="mask holds NaN or infinite"):
            open_problem(y, MRI(mask=broken))
    with pytest.raises(BadInput, match="zero wherever the mask samples"):
        open_problem(y * (torch.arange(16) < 8), MRI(mask=(torch.arange(16) >= 8).float().expand(16, 16)))
    with pytest.raises(BadInput, match="samples nothing"):
        open_problem(y, MRI(mask=torch.zeros(16, 16)))
    with pytest.raises(BadInput, match="noise level"):
        open_problem(y, MRI(mask=torch.ones(16, 16), noise_model=GaussianNoise(torch.tensor([-0.1]))))
