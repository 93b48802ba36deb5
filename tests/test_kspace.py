"""Problems in k-space: layouts, coils, masks, and a first look at whether they fit together."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from deepinv.physics import MRI, GaussianNoise, LinearPhysics, MultiCoilMRI, Physics
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.errors import BadInput
from pnpilot.problems import Hints, open_problem
from pnpilot.problems._data import energy
from pnpilot.problems.base import problem_type
from pnpilot.problems.multi_coil import MultiCoil
from pnpilot.tasks import build_task
from pnpilot.tasks._masks import build_mask
from pnpilot.tasks.multi_coil import simulated_maps
from pnpilot.types import per_sample
from tests.conftest import phantom
from tests.contracts import assert_close, inner, own_tensors, pictures, random_like


def kspace(y: Tensor) -> Tensor:
    """deepinv's two real channels as a complex tensor (B, coils, H, W), with one coil for single-coil data."""
    found = torch.complex(y[:, 0], y[:, 1])
    return found if y.ndim == 5 else found[:, None]


@pytest.mark.parametrize("name", ["csmri", "multi-coil"])
def test_a_phase_passes_through(name: str) -> None:
    """x₀, ∇D and data step of e^{iθ}y at e^{iθ}v are those of y at v, turned by θ."""
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0], seed=3)
    plain, turn = kspace(y), torch.polar(torch.ones(()), torch.tensor(2.0))
    one, turned = (open_problem(data, physics, Hints(real=False)) for data in (plain, turn * plain))
    v, mu = random_like(one.x0(), 1), torch.tensor([0.05, 0.7])
    assert_close(turned.units.peak, one.units.peak)
    assert_close(turned.x0(), turn * one.x0())
    assert_close(turned.grad(turn * v), turn * one.grad(v))
    assert_close(turned.prox(turn * v, mu), turn * one.prox(v, mu))


@pytest.mark.parametrize("name", ["csmri", "multi-coil"])
def test_kspace_may_be_complex_or_in_deepinvs_layout(name: str) -> None:
    task = build_task(name)
    y, physics = task.simulate(pictures(task), task.settings[0], seed=3)
    real, native = open_problem(y, physics), open_problem(kspace(y), physics)
    assert own_tensors(native).keys() == own_tensors(real).keys()
    assert all(torch.equal(value, own_tensors(real)[key]) for key, value in own_tensors(native).items())
    assert torch.equal(native.x0(), real.x0())
    assert torch.equal(native.units.real, real.units.real)
    wrong = kspace(y)[:, :1].expand(-1, 2, -1, -1)
    with pytest.raises(BadInput, match=r"k-space .* complex .*, got|they must agree"):
        open_problem(wrong, physics)


def multi_coil(maps: Tensor, measured: str = "points", batch: int = 2) -> tuple[MultiCoil, MultiCoilMRI, Tensor]:
    """A problem with these maps and another random mask for each image, its physics, and its data."""
    height, width = maps.shape[-2:]
    drawn = {"points": (height, width), "rows": (height, 1), "columns": (1, width)}[measured]
    mask = (torch.rand(batch, 1, *drawn, generator=torch.Generator().manual_seed(3)) < 0.4).float()
    mask[..., drawn[0] // 2, drawn[1] // 2] = 1  # the zero frequency
    mask = mask.expand(-1, -1, height, width)
    physics = MultiCoilMRI(mask=mask, coil_maps=maps, noise_model=GaussianNoise(0.01))
    y = physics(torch.cat([phantom(height, width, batch), 0.5 * phantom(height, width, batch)], 1))
    problem = open_problem(y, physics, Hints(peak=1.0))
    assert isinstance(problem, MultiCoil)
    return problem, physics, y


@pytest.mark.parametrize("measured", ["points", "rows", "columns"])
@pytest.mark.parametrize("size", [(32, 32), (33, 40)])
def test_multi_coil_is_deepinvs_operator(size: tuple[int, int], measured: str) -> None:
    """Over its norm, with k-space un-shifted: data term, AᴴA and Aᴴy do not depend on the order of the samples."""
    maps = 3 * simulated_maps(4, *size, torch.Generator().manual_seed(1))[None]
    problem, physics, y = multi_coil(maps, measured)
    x = random_like(problem.x0(), 1)
    layout = problem.export(x)

    def native(image: Tensor) -> Tensor:
        return torch.complex(image[:, :1], image[:, 1:])

    # One number for both images: ‖A‖² is what the normal operators differ by.
    normal = native(physics.A_adjoint(physics.A(layout)))
    squared = inner(problem.normal(x), normal) / energy(problem.normal(x))
    assert_close(problem.normal(x), normal / per_sample(squared, x))
    assert_close(problem.A_adjoint(problem.A(x)), problem.normal(x))
    assert_close(problem.D(x), energy(physics.A(layout) - y) / (2 * squared), 1e-4)
    assert_close(problem.back, native(physics.A_adjoint(y)) / per_sample(squared, x))
    # Coils whose squares sum to nine have a norm of at most three, and reach it where every sample is measured.
    assert (squared < 9 * 1.001).all()
    physics.update(mask=torch.ones(1, 1, *size))
    full = open_problem(physics.A(layout), physics, Hints(peak=1.0))
    assert isinstance(full, MultiCoil)
    assert_close(full.normal(x), x)


@pytest.mark.parametrize("name", ["csmri", "multi-coil"])
def test_kspace_that_looks_wrong_is_told(name: str) -> None:
    task = build_task(name)
    y, physics = task.simulate(pictures(task, batch=3), task.settings[0], seed=3)
    assert open_problem(y, physics).notes == []

    corner = y.clone()
    corner[1] = torch.fft.ifftshift(y[1], dim=(-2, -1))
    moved = with_mask(physics, torch.ones(3, 1, 32, 32))
    (line,) = (note for note in open_problem(corner, moved).notes if "centre" in note)
    assert line.startswith("the largest sample of k-space in image 1 is (-16, -16) samples from the centre: ")

    stray = y.clone()
    stray[0, ..., 2, 3] = 1e3 * y.abs().max()
    covered = torch.ones(3, 1, 32, 32)
    covered[0, :, 2, 3] = 0
    assert not any("centre" in note for note in open_problem(stray, with_mask(physics, covered)).notes)

    hollow = torch.ones(3, 1, 32, 32)
    hollow[1, :, 13:20, 13:20] = 0
    notes = open_problem(y, with_mask(physics, physics.mask * hollow)).notes
    assert sum("nothing was measured next to the zero frequency of image 1, at [16, 16]" in note for note in notes) == 1

    padded = y.clone()
    padded[2, ..., :2] = 0
    whole = with_mask(physics, (padded[:, :1] != 0).reshape(3, -1, 32, 32)[:, :1].float())
    assert open_problem(padded, whole).notes == []
    counted = whole.mask.clone()
    counted[2, ..., :2] = 1
    whole.update(mask=counted)
    (line,) = open_problem(padded, whole).notes
    assert "of the samples that the mask of image 2 counts as measured are exactly zero" in line

    fewer = physics.mask.expand(3, -1, -1, -1).clone()
    fewer[0, ..., :12] = 0
    physics.update(mask=fewer)
    (line,) = open_problem(y, physics).notes
    assert "of the data of image 0 lie where the mask has zeros, and are ignored" in line


def with_mask(physics: Physics, mask: Tensor) -> Physics:
    """The same maps behind another mask."""
    maps = {"coil_maps": physics.coil_maps} if isinstance(physics, MultiCoilMRI) else {}
    return type(physics)(**maps, mask=mask)


@pytest.mark.parametrize("sampling", ["radial", "cartesian", "calibrated", "random"])
@pytest.mark.parametrize("sigma", [0.005, 0.1])
def test_coil_maps_that_miss_signal_are_told(sampling: str, sigma: float) -> None:
    maps = simulated_maps(6, 64, 64, torch.Generator().manual_seed(1))[None]
    mask = build_mask(sampling, 64, 64, 3.0, torch.Generator().manual_seed(2))
    physics = MultiCoilMRI(mask=mask, coil_maps=maps, noise_model=GaussianNoise(sigma))
    y = physics(torch.cat([phantom(64, 64), 0.5 * phantom(64, 64)], 1))
    assert open_problem(y, physics).notes == []
    cropped = maps.clone()
    cropped[..., 24:40, 24:40] = 0
    for wrong in (cropped, maps.roll(1, 1)):
        (line,) = open_problem(y, MultiCoilMRI(mask=mask, coil_maps=wrong)).notes
        assert re.match(r"the coil maps do not explain \d.* % of the signal .* of images 0, 1: they may be zero", line)


class Uncentred(MRI):
    """It inherits A and A_adjoint, and puts another transform under them."""

    def V_adjoint(self, x: Tensor) -> Tensor:
        return super().V_adjoint(x).roll(1, -1)

    def V(self, x: Tensor, **kwargs: Any) -> Tensor:
        return super().V(x.roll(-1, -1), **kwargs)


class MRIByName(LinearPhysics):
    """Nothing but the name is MRI's."""


MRIByName.__name__ = "MRI"


def test_what_only_derives_from_mri_or_has_its_name_is_no_fast_path_and_no_learned_policy() -> None:
    physics = Uncentred(mask=torch.ones(1, 1, 32, 32), noise_model=GaussianNoise(0.01))
    image = torch.cat([phantom(32, 32, 1), 0 * phantom(32, 32, 1)], 1)
    fake = MRIByName(A=lambda x, **_: 2 * x, A_adjoint=lambda y, **_: 2 * y, noise_model=GaussianNoise(0.01))
    model = PnPilot.from_pretrained("csmri", real=True)
    for y, own in ((physics(image), physics), (fake(image[:, :1]), fake)):
        assert problem_type(own).name == "linear"
        (line,) = [words for words in model.reconstruct(y, own).warnings if "was trained for" in words]
        assert line.startswith("the policy was trained for MRI, not for ")


def test_padding_of_kspace_is_not_taken_for_noise() -> None:
    """Nor for its absence, where the symmetry of a real image tells the noise."""
    small = torch.fft.fftshift(torch.fft.fft2(phantom(48, 48, 1), norm="ortho"))
    noisy = small + 0.05 * torch.complex(*(torch.randn(small.shape) for _ in range(2)))
    padded = torch.nn.functional.pad(noisy, (24, 24, 24, 24))
    for real in (None, True):
        problem = open_problem(padded, MRI(mask=torch.ones(1, 1, 96, 96)), Hints(real=real, peak=1.0))
        assert problem.units.sigma_n is not None
        assert 0.04 < problem.units.sigma_n.item() < 0.06


def test_coils_may_differ_between_the_images_of_a_batch() -> None:
    maps = torch.stack([simulated_maps(4, 32, 32, torch.Generator().manual_seed(seed)) for seed in (1, 2)])
    problem, physics, y = multi_coil(maps)
    x = random_like(problem.x0(), 1)
    for place in range(2):
        one = MultiCoilMRI(mask=physics.mask[place : place + 1], coil_maps=maps[place : place + 1])
        alone = open_problem(y[place : place + 1], one, Hints(peak=1.0))
        assert isinstance(alone, MultiCoil)
        assert_close(alone.normal(x[place : place + 1]), problem.normal(x)[place : place + 1])


class OffResonance(MultiCoilMRI):
    """An operator of its own behind maps and mask."""

    def A(self, x: Tensor, **kwargs: Any) -> Tensor:
        return -super().A(x, **kwargs)

    def A_adjoint(self, y: Tensor, **kwargs: Any) -> Tensor:
        return -super().A_adjoint(y, **kwargs)


def test_coils_behind_an_operator_of_their_own_do_not_take_the_fast_path() -> None:
    _, plain = build_task("multi-coil").simulate(phantom(32, 32, 1), build_task("multi-coil").settings[0])
    physics = OffResonance(mask=plain.mask, coil_maps=plain.coil_maps, noise_model=plain.noise_model)
    assert problem_type(plain).name == "multi-coil"
    assert problem_type(physics).name == "linear"


@pytest.mark.parametrize("name", ["csmri", "multi-coil"])
def test_masks_that_deepinv_would_take_for_channels_are_refused(name: str) -> None:
    y, physics = build_task(name).simulate(phantom(32, 32, 3), build_task(name).settings[0])
    physics.mask = physics.mask[:1, :1].repeat(1, 3, 1, 1)
    with pytest.raises(BadInput, match=r"masks that differ between images are \(batch, 1, height, width\)"):
        open_problem(y, physics)
