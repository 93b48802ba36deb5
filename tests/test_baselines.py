"""Other people's methods: what all of them must keep to, and the constants that were searched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deepinv.physics import MRI, GaussianNoise, Inpainting, LinearPhysics, MultiCoilMRI, Physics
from torch import Tensor

from pnpilot.baselines import BASELINES, Baseline, build_baseline, dolphin, prdeep
from pnpilot.baselines._mri import MRIBaseline
from pnpilot.baselines._phase import PhaseBaseline
from pnpilot.baselines._searched import Searched, _nearest
from pnpilot.baselines._unrolled import Unrolled
from pnpilot.errors import BadInput, BadWeights, Incompatible
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.physics import selected
from pnpilot.physics.coded_diffraction import CodedDiffraction, ShotNoise
from pnpilot.problems.amplitudes import AmplitudeProblem
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.simulation import simulated
from pnpilot.tasks import Setting, Task, build_task
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from tests.conftest import phantom
from tests.contracts import assert_close, problem_of

NAMES = list(BASELINES)
MRI_NAMES, PHASE_NAMES = ([name for name in NAMES if task in BASELINES[name].serves] for task in ("csmri", "phase"))
SEARCHED = [name for name in NAMES if issubclass(BASELINES[name], Searched)]
UNROLLED = [name for name in NAMES if issubclass(BASELINES[name], Unrolled)]
MOST = {"csmri": 200, "phase": 1000}
"""Iterations; amplitudes without a prior take many."""
GENERAL = {"tv", "zero-filled"}
"""For any linear physics: their images have two channels and no bounds."""


UNLIKE: dict[str, list[Setting]] = {
    "csmri": [CSMRI.setting(2, 15), CSMRI.setting(8, 5, "cartesian")],
    "phase": [PhaseRetrieval.setting(9), PhaseRetrieval.setting(81)],
}
"""Two settings of each task that one batch may hold."""
NOISY_AND_CLEAN: dict[str, list[Setting]] = {
    "csmri": [CSMRI.setting(4, 10), CSMRI.setting(4, 0)],
    "phase": [PhaseRetrieval.setting(27), PhaseRetrieval.setting(0)],
}


built: Callable[[str], Baseline] = cache(build_baseline)


def task_of(name: str) -> Task:
    """The one whose benchmark has a row for it."""
    (task,) = BASELINES[name].serves
    return build_task(task)


def test_every_baseline_serves_one_task_with_a_benchmark() -> None:
    assert sorted(MRI_NAMES + PHASE_NAMES) == sorted(NAMES)
    assert len(PHASE_NAMES) == 7


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method with few iterations, where their number can be set."""
    for name in NAMES:
        monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 3))
    monkeypatch.setattr(dolphin, "FIXED", 1)
    monkeypatch.setattr(prdeep, "STEPS", 2)


def check(name: str, image: Tensor, truth: Tensor) -> None:
    """What a result must look like."""
    assert image.shape == (len(truth), 2 if name in MRI_NAMES else 1, *truth.shape[-2:])
    assert image.dtype == torch.float32
    assert not image.requires_grad
    assert torch.isfinite(image).all()
    if name not in GENERAL:
        assert image.min() >= 0
        assert image.max() <= 1
        assert not image[:, 1:].any()
        assert image.flatten(1).std(dim=1).min() > 1e-3


def same_masks(name: str, truth: Tensor) -> tuple[Tensor, Physics, Physics]:
    """Data of two noise levels behind the same masks, which one physics holds for each image, the other once."""
    if name in MRI_NAMES:
        y, merged = CSMRI().simulate(truth, [CSMRI.setting(4, 5), CSMRI.setting(4, 15)])
        return y, merged, MRI(mask=merged.mask[0, 0], noise_model=GaussianNoise(torch.tensor([5, 15]) / 255))
    masks = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting())[1].masks[0]
    noise = ShotNoise(torch.tensor([9, 81]), rng=torch.Generator().manual_seed(0))
    once = CodedDiffraction(masks, noise)
    return once(truth), CodedDiffraction(masks.repeat(2, 1, 1, 1), noise), once


# What all of them must keep to.


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_different_masks_and_noise_equals_one_by_one(name: str) -> None:
    task, truth = task_of(name), phantom(32, 32)
    y, physics = task.simulate(truth, UNLIKE[task.name])
    given = y.clone()
    images = built(name)(y, physics)
    check(name, images, truth)
    assert torch.equal(y, given)
    for index in range(2):
        alone = built(name)(y[[index]], selected(physics, torch.tensor([index]), 2))
        assert_close(images[[index]], alone, 1e-4)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_one_mask_for_all_and_the_same_result_twice(name: str) -> None:
    truth = phantom(40, 32)
    y, merged, physics = same_masks(name, truth)
    first = built(name)(y, physics)
    check(name, first, truth)
    assert_close(built(name)(y, merged), first)
    assert torch.equal(build_baseline(name)(y, physics), first)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_odd_sizes_black_borders_and_data_without_noise(name: str) -> None:
    cut_out, task = phantom(32, 32, 1) * (phantom(32, 32, 1) > 0.4), task_of(name)
    noisy, clean = NOISY_AND_CLEAN[task.name]
    for truth, setting in ((phantom(33, 31, 1), noisy), (cut_out, clean)):
        check(name, built(name)(*task.simulate(truth, setting)), truth)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_another_physics_is_refused_in_one_line(name: str) -> None:
    truth = phantom(32, 32)
    pixels = Inpainting((1, 32, 32), mask=torch.ones(1, 32, 32), noise_model=GaussianNoise(0.1))
    maps = torch.ones(1, 2, 32, 32, dtype=torch.complex64)
    coils = MultiCoilMRI(coil_maps=maps, mask=torch.ones(1, 1, 32, 32), noise_model=GaussianNoise(0.1))
    other = PhaseRetrieval() if name in MRI_NAMES else CSMRI()
    cases = [(pixels(truth), pixels), (coils(CSMRI().embed(truth)), coils), (truth, Physics())]
    for y, physics in [*cases, other.simulate(truth, other.settings[0])]:
        if name in GENERAL and isinstance(physics, LinearPhysics):
            assert torch.isfinite(built(name)(y, physics)).all()
            continue
        with pytest.raises(Incompatible, match="needs") as caught:
            built(name)(y, physics)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in GENERAL])
def test_data_that_cannot_be_reconstructed_are_refused(name: str) -> None:
    task = task_of(name)
    y, physics = task.simulate(phantom(32, 32), task.settings[1])
    broken = y.clone()
    broken[0, 0, 3, 3] = torch.nan
    with pytest.raises(BadInput, match="1 NaN or infinite"):
        built(name)(broken, physics)
    with pytest.raises(BadInput, match="must agree"):
        built(name)(y[..., :-2], physics)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_who_published_it_how_long_it_takes_and_what_it_is_made_with(name: str) -> None:
    kind = BASELINES[name]
    assert kind.iterations == 0 if name == "zero-filled" else 1 <= kind.iterations <= MOST[task_of(name).name]
    assert name == "zero-filled" or re.search(r"\b(19|20)\d\d\b", kind.reference)
    assert "\n" not in kind.reference
    made_with = built(name).made_with()
    assert json.loads(json.dumps(made_with)) == made_with
    assert kind.obstacle() is None


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_module_is_said_with_the_extra_that_brings_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.baselines.base.find_spec", lambda _: None)
    kind = BASELINES[name]
    if not kind.modules:
        assert kind.obstacle() is None
        return
    obstacle = kind.obstacle()
    assert obstacle is not None
    assert all(module in obstacle for module in kind.modules)
    with pytest.raises(BadInput, match=rf"^{re.escape(name)} needs .*: pip install 'pnpilot\[baselines\]'$"):
        build_baseline(name)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_the_image_with_an_iteration_count_for_each(name: str) -> None:
    task = task_of(name)
    y, physics = task.simulate(phantom(32, 32), UNLIKE[task.name])
    image, iterations = built(name).answer(y, physics)
    assert_close(image, built(name)(y, physics))
    assert iterations.tolist() == ([8, 4] if name == "prdeep" else [BASELINES[name].iterations] * 2)


@pytest.mark.parametrize("name", [name for name in MRI_NAMES if name != "zero-filled"])
def test_a_brain_is_better_than_zero_filled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks by two decibels, the others by one after a few iterations."""
    kind, truth = BASELINES[name], example_brain()
    monkeypatch.setattr(kind, "iterations", min(kind.iterations, 12))
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 10))
    gain = psnr(built(name)(y, physics)[:, :1], truth) - psnr(physics.A_adjoint(y)[:, :1], truth)
    assert gain > (2 if name in UNROLLED else 1), gain.item()


@pytest.mark.parametrize("name", [name for name in PHASE_NAMES if name not in ("hio-free", "wf")])
def test_in_strong_noise_a_constraint_helps_and_a_prior_helps_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Non-negative values by one decibel against amplitudes alone, priors by five after a few iterations."""
    kind, truth = BASELINES[name], phantom(48, 48, 1)
    monkeypatch.setattr(kind, "iterations", min(kind.iterations, 60 if name == "hio" else 15))
    monkeypatch.setattr(prdeep, "STEPS", 20)
    y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(81))
    gain = psnr(built(name)(y, physics), truth) - psnr(built("hio-free")(y, physics), truth)
    assert gain > (1 if name == "hio" else 5), gain.item()


# Constants that were searched.


@pytest.mark.parametrize("name", SEARCHED)
def test_constants_are_there_for_every_setting_with_the_command_that_found_them(name: str) -> None:
    kind = BASELINES[name]
    assert issubclass(kind, Searched)
    table, task = kind.table(), task_of(name)
    numbers = {"csmri": ("acceleration", "sigma"), "phase": ("masks", "alpha")}[task.name]
    assert list(table["settings"]) == [setting.label for setting in task.settings]
    for setting in task.settings:
        own = table["settings"][setting.label]
        assert [own[number] for number in numbers] == [setting[number] for number in numbers]
        assert own["constants"].keys() == kind.grid.keys()
        assert all(np.isfinite(value) and value >= 0 for value in own["constants"].values())
    assert table["command"].startswith(f"pnpilot train baseline {name} ")


class Recorder(Searched[MaskedFourier], MRIBaseline):
    """Its image is its constant."""

    name = "recorder"
    grid = {"level": (0.1, 0.2)}

    @classmethod
    def table(cls) -> dict[str, Any]:
        settings = {
            setting.label: {**setting.values, "constants": {"level": 0.1 * place}}
            for place, setting in enumerate(CSMRI().settings)
        }
        return {"settings": settings}

    def solve(self, problem: MaskedFourier, *_: Any, level: float) -> Tensor:
        return torch.full_like(problem.mask, level)


def test_each_image_gets_the_constants_of_its_setting() -> None:
    settings = [CSMRI().settings[place] for place in (7, 3, 3, 0)]
    y, physics = CSMRI().simulate(phantom(32, 32, 4), settings)
    assert_close(Recorder()(y, physics)[:, 0, 5, 5], torch.tensor([0.7, 0.3, 0.3, 0.0]))
    assert_close(Recorder({"level": 0.5})(y, physics)[:, 0, 5, 5], torch.full((4,), 0.5))
    assert Recorder({"level": 0.5}).made_with() == {"level": 0.5}
    assert Recorder().made_with()["x2 sigma=10"] == {"level": 0.1}


@pytest.mark.parametrize(
    ("label", "nearest"),
    [
        ("x3 sigma=7", "x4 sigma=5"),
        ("x5 sigma=12", "x4 sigma=10"),
        ("x6 sigma=7", "x8 sigma=5"),
        ("x2.5 sigma=30", "x2 sigma=15"),
        ("x20 sigma=0", "x8 sigma=5"),
        ("cartesian x3 sigma=13", "x4 sigma=15"),
    ],
)
def test_other_settings_get_the_nearest_constants(label: str, nearest: str) -> None:
    (conditions,) = Recorder.conditions(problem_of(phantom(128, 128, 1), label))
    assert _nearest(conditions, Recorder.table()["settings"]) == nearest


@pytest.mark.parametrize("size", [(32, 32), (128, 128), (96, 128), (230, 180)])
@pytest.mark.parametrize("kind", ["", "cartesian ", "random "])
def test_the_settings_of_the_benchmark_find_themselves_at_any_size(kind: str, size: tuple[int, int]) -> None:
    settings = [CSMRI().named(kind + setting.label) for setting in CSMRI().settings]
    problem = simulated(CSMRI(), phantom(*size, 1).repeat(len(settings), 1, 1, 1), settings)
    assert isinstance(problem, MaskedFourier)
    found = [_nearest(own, Recorder.table()["settings"]) for own in Recorder.conditions(problem)]
    assert found == [setting.label for setting in CSMRI().settings]


@pytest.mark.parametrize(
    ("label", "nearest"),
    [
        *((setting.label, setting.label) for setting in PhaseRetrieval().settings),
        ("alpha=0", "alpha=9"),
        ("alpha=15", "alpha=9"),
        ("3 masks alpha=17", "alpha=27"),
        ("8 masks alpha=46", "alpha=27"),
        ("6 masks alpha=50", "alpha=81"),
        ("alpha=500", "alpha=81"),
    ],
)
def test_amplitudes_get_the_constants_of_the_nearest_noise(label: str, nearest: str) -> None:
    settings = {setting.label: setting.values for setting in PhaseRetrieval().settings}
    setting = PhaseRetrieval().named(label)
    problem = simulated(PhaseRetrieval(), phantom(24, 20, 1), setting)
    assert isinstance(problem, AmplitudeProblem)
    (conditions,) = PhaseBaseline.conditions(problem)
    assert conditions == pytest.approx(setting.values)
    assert _nearest(conditions, settings) == nearest


@pytest.mark.parametrize("content", [None, "{"])
def test_missing_constants_are_said_with_the_command_that_finds_them(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "recpf.json").write_text(content)
    monkeypatch.setattr("pnpilot.baselines._searched.parameters_file", lambda name: tmp_path / f"{name}.json")
    with pytest.raises(BadInput if content is None else BadWeights, match="pnpilot train baseline recpf"):
        build_baseline("recpf")(*CSMRI().simulate(phantom(32, 32), CSMRI.setting()))
