"""Methods for the paper's two tasks: one mask or many, data without noise, what is refused, and how good they are."""

from __future__ import annotations

import pytest
import torch
from deepinv.physics import MRI, GaussianNoise, LinearPhysics, Physics
from torch import Tensor

from pnpilot.baselines import BASELINES, prdeep
from pnpilot.baselines._one_task import OneTask
from pnpilot.baselines._unrolled import Unrolled
from pnpilot.baselines.dpir import DPIR
from pnpilot.benchmark.tables import TABLES
from pnpilot.errors import BadInput, Incompatible
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.physics.coded_diffraction import CodedDiffraction, ShotNoise
from pnpilot.problems._data import noise_of
from pnpilot.tasks import Setting, build_task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from tests.conftest import phantom
from tests.contracts import assert_close
from tests.test_baselines import SERVED as ALL
from tests.test_baselines import built, check, others

CLEAN: dict[str, Setting] = {"csmri": CSMRI.setting(4, 0), "phase": PhaseRetrieval.setting(0)}
"""Data without noise."""
SERVED = [(name, task) for name, task in ALL if task in CLEAN]
CHECKED = [name for name, _ in SERVED if issubclass(BASELINES[name], OneTask | DPIR)]
"""Those that look at the data first."""


def same_masks(task: str, truth: Tensor) -> tuple[Tensor, Physics, Physics]:
    """Data of two noise levels behind the same masks, which one physics holds for each image, the other once."""
    if task == "csmri":
        y, merged = CSMRI().simulate(truth, [CSMRI.setting(4, 5), CSMRI.setting(4, 15)])
        return y, merged, MRI(mask=merged.mask[0, 0], noise_model=GaussianNoise(torch.tensor([5, 15]) / 255))
    masks = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting())[1].masks[0]
    noise = ShotNoise(torch.tensor([9, 81]), rng=torch.Generator().manual_seed(0))
    once = CodedDiffraction(masks, noise)
    return once(truth), CodedDiffraction(masks.repeat(2, 1, 1, 1), noise), once


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "task"), SERVED)
def test_one_mask_for_all_images_is_the_same_as_one_for_each(name: str, task: str) -> None:
    truth = phantom(40, 32)
    y, merged, physics = same_masks(task, truth)
    image = built(name)(y, physics)
    check(name, image, build_task(task), truth)
    assert_close(built(name)(y, merged), image)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "task"), SERVED)
def test_black_borders_and_data_without_noise(name: str, task: str) -> None:
    truth = phantom(32, 32, 1) * (phantom(32, 32, 1) > 0.4)
    check(name, built(name)(*build_task(task).simulate(truth, CLEAN[task])), build_task(task), truth)


@pytest.mark.usefixtures("quick")
def test_iterations_are_counted_image_by_image_where_they_differ() -> None:
    y, physics = PhaseRetrieval().simulate(phantom(32, 32), [PhaseRetrieval.setting(9), PhaseRetrieval.setting(81)])
    assert built("prdeep").answer(y, physics).iterations.tolist() == [8, 4]


# What they refuse.


@pytest.mark.parametrize("name", [name for name in CHECKED if issubclass(BASELINES[name], OneTask)])
def test_methods_for_one_physics_take_no_other(name: str) -> None:
    for y, physics in others(name):
        with pytest.raises(Incompatible, match=f"^{name.replace('+', '[+]')} needs "):
            built(name)(y, physics)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["tv", "dpir", "zero-filled"])
def test_methods_for_any_linear_physics_take_every_one(name: str) -> None:
    """Where the noise is Gaussian, if they are told its level."""
    for y, physics in others(name):
        gaussian = name == "zero-filled" or noise_of(physics) is not None
        if isinstance(physics, LinearPhysics) and gaussian:
            assert torch.isfinite(built(name)(y, physics)).all()
        else:
            with pytest.raises(Incompatible, match="needs a linear physics"):
                built(name)(y, physics)


@pytest.mark.parametrize("name", CHECKED)
def test_data_that_cannot_be_reconstructed_are_refused(name: str) -> None:
    task = build_task(dict(SERVED)[name])
    y, physics = task.simulate(phantom(32, 32), task.settings[1])
    broken = y.clone()
    broken[0, 0, 3, 3] = torch.nan
    with pytest.raises(BadInput, match="1 NaN or infinite"):
        built(name)(broken, physics)
    with pytest.raises(BadInput, match="must agree"):
        built(name)(y[..., :-2], physics)


# How good those of the paper's tables are.


@pytest.mark.parametrize("name", [name for name in TABLES["csmri"].order if name != "zero-filled"])
def test_a_brain_is_better_than_zero_filled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks by two decibels, the others by one after a few iterations."""
    kind, truth = BASELINES[name], example_brain()
    monkeypatch.setattr(kind, "iterations", min(kind.iterations, 12))
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 10))
    gain = psnr(built(name)(y, physics)[:, :1], truth) - psnr(physics.A_adjoint(y)[:, :1], truth)
    assert gain > (2 if issubclass(kind, Unrolled) else 1), gain.item()


@pytest.mark.parametrize("name", [name for name in TABLES["phase"].order if name not in ("hio-free", "wf")])
def test_in_strong_noise_a_constraint_helps_and_a_prior_helps_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Non-negative values by one decibel against amplitudes alone, priors by five after a few iterations."""
    kind, truth = BASELINES[name], phantom(48, 48, 1)
    monkeypatch.setattr(kind, "iterations", min(kind.iterations, 60 if name == "hio" else 15))
    monkeypatch.setattr(prdeep, "STEPS", 20)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(81))
    gain = psnr(built(name)(y, physics), truth) - psnr(built("hio-free")(y, physics), truth)
    assert gain > (1 if name == "hio" else 5), gain.item()
