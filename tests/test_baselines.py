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

from pnpilot.baselines import BASELINES, Baseline, build_baseline
from pnpilot.baselines._searched import Searched, _nearest
from pnpilot.baselines._unrolled import Unrolled
from pnpilot.errors import BadInput, BadWeights, Incompatible
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.tasks import simulated
from pnpilot.tasks.csmri import CSMRI, MaskedFourier
from tests.conftest import phantom
from tests.contracts import assert_close, problem_of

NAMES = [name for name in BASELINES if "csmri" in BASELINES[name].serves]
SEARCHED = [name for name in NAMES if issubclass(BASELINES[name], Searched)]
UNROLLED = [name for name in NAMES if issubclass(BASELINES[name], Unrolled)]
GENERAL = {"tv", "zero-filled"}
"""For any linear physics: their images have two channels and no bounds."""


built: Callable[[str], Baseline] = cache(build_baseline)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method with few iterations, where it asks how many to take."""
    for name in NAMES:
        monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 3))


def check(name: str, image: Tensor, truth: Tensor) -> None:
    """What a result must look like."""
    assert image.shape == (len(truth), 2, *truth.shape[-2:])
    assert image.dtype == torch.float32
    assert not image.requires_grad
    assert torch.isfinite(image).all()
    if name not in GENERAL:
        assert image.min() >= 0
        assert image.max() <= 1
        assert not image[:, 1].any()


# What all of them must keep to.


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_different_masks_and_noise_equals_one_by_one(name: str) -> None:
    truth = phantom(32, 32)
    y, physics = CSMRI().simulate(truth, [CSMRI.setting(2, 15), CSMRI.setting(8, 5, "cartesian")])
    given = y.clone()
    images = built(name)(y, physics)
    check(name, images, truth)
    assert torch.equal(y, given)
    for index in range(2):
        alone = built(name)(y[[index]], CSMRI().select(physics, torch.tensor([index])))
        assert_close(images[[index]], alone, 1e-4)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_one_mask_for_all_and_the_same_result_twice(name: str) -> None:
    truth = phantom(40, 32)
    y, merged = CSMRI().simulate(truth, [CSMRI.setting(4, 5), CSMRI.setting(4, 15)])
    physics = MRI(mask=merged.mask[0, 0], noise_model=GaussianNoise(torch.tensor([5, 15]) / 255))
    first = built(name)(y, physics)
    check(name, first, truth)
    assert_close(built(name)(y, merged), first)
    assert_close(build_baseline(name)(y, physics), first)  # threads of bm3d add in any order


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_odd_sizes_black_borders_and_data_without_noise(name: str) -> None:
    cut_out = phantom(32, 32, 1) * (phantom(32, 32, 1) > 0.4)
    for truth, sigma in ((phantom(33, 31, 1), 10), (cut_out, 0)):
        check(name, built(name)(*CSMRI().simulate(truth, CSMRI.setting(4, sigma))), truth)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", NAMES)
def test_another_physics_is_refused_in_one_line(name: str) -> None:
    truth = phantom(32, 32)
    pixels = Inpainting((1, 32, 32), mask=torch.ones(1, 32, 32), noise_model=GaussianNoise(0.1))
    maps = torch.ones(1, 2, 32, 32, dtype=torch.complex64)
    coils = MultiCoilMRI(coil_maps=maps, mask=torch.ones(1, 1, 32, 32), noise_model=GaussianNoise(0.1))
    for y, physics in ((pixels(truth), pixels), (coils(CSMRI().embed(truth)), coils), (truth, Physics())):
        if name in GENERAL and isinstance(physics, LinearPhysics):
            assert torch.isfinite(built(name)(y, physics)).all()
            continue
        with pytest.raises(Incompatible, match="needs") as caught:
            built(name)(y, physics)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in GENERAL])
def test_data_that_cannot_be_reconstructed_are_refused(name: str) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32), CSMRI.setting(4, 10))
    broken = y.clone()
    broken[0, 0, 3, 3] = torch.nan
    with pytest.raises(BadInput, match="1 NaN or infinite"):
        built(name)(broken, physics)
    with pytest.raises(BadInput, match="must agree"):
        built(name)(y[..., :-2], physics)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_who_published_it_how_long_it_takes_and_what_it_is_made_with(name: str) -> None:
    kind = BASELINES[name]
    assert kind.iterations == 0 if name == "zero-filled" else 1 <= kind.iterations <= 200
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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "zero-filled"])
def test_a_brain_is_better_than_zero_filled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks by two decibels, the others by one after a few of their iterations."""
    kind, truth = BASELINES[name], example_brain()
    monkeypatch.setattr(kind, "iterations", min(kind.iterations, 12))
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 10))
    gain = psnr(built(name)(y, physics)[:, :1], truth) - psnr(physics.A_adjoint(y)[:, :1], truth)
    assert gain > (2 if name in UNROLLED else 1), gain.item()


# Constants that were searched.


@pytest.mark.parametrize("name", SEARCHED)
def test_constants_are_there_for_every_setting_with_the_command_that_found_them(name: str) -> None:
    kind = BASELINES[name]
    assert issubclass(kind, Searched)
    table = kind.table()
    assert list(table["settings"]) == [setting.label for setting in CSMRI().settings]
    for setting in CSMRI().settings:
        own = table["settings"][setting.label]
        assert (own["acceleration"], own["sigma"]) == (setting["acceleration"], setting["sigma"])
        assert own["constants"].keys() == kind.grid.keys()
        assert all(np.isfinite(value) and value >= 0 for value in own["constants"].values())
    assert table["command"].startswith(f"pnpilot train baseline {name} ")


class Recorder(Searched):
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
    assert _nearest(problem_of(phantom(128, 128, 1), label), Recorder.table()["settings"]) == [nearest]


@pytest.mark.parametrize("size", [(32, 32), (128, 128), (96, 128), (230, 180)])
@pytest.mark.parametrize("kind", ["", "cartesian ", "random "])
def test_the_settings_of_the_benchmark_find_themselves_at_any_size(kind: str, size: tuple[int, int]) -> None:
    settings = [CSMRI().named(kind + setting.label) for setting in CSMRI().settings]
    problem = simulated(CSMRI(), phantom(*size, 1).repeat(len(settings), 1, 1, 1), settings)
    assert isinstance(problem, MaskedFourier)
    assert _nearest(problem, Recorder.table()["settings"]) == [setting.label for setting in CSMRI().settings]


@pytest.mark.parametrize("content", [None, "{"])
def test_missing_constants_are_said_with_the_command_that_finds_them(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "recpf.json").write_text(content)
    monkeypatch.setattr("pnpilot.baselines._searched.parameters_file", lambda name: tmp_path / f"{name}.json")
    with pytest.raises(BadInput if content is None else BadWeights, match="pnpilot train baseline recpf"):
        build_baseline("recpf")(*CSMRI().simulate(phantom(32, 32), CSMRI.setting()))
