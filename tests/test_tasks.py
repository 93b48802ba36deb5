"""Contracts of the tasks: settings, and what is simulated in them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pnpilot.errors import BadInput, UnknownName
from pnpilot.tasks import TASKS, build_task
from pnpilot.tasks.inpainting import SIDE, InpaintingTask
from pnpilot.tasks.multi_coil import simulated_maps
from tests.conftest import phantom
from tests.contracts import pictures


@pytest.mark.parametrize("name", TASKS)
def test_settings_have_labels_of_their_own_and_are_found_by_them(name: str) -> None:
    task = build_task(name)
    labels = [setting.label for setting in task.settings]
    assert len(set(labels)) == len(labels) >= 1
    assert [task.named(label) for label in labels] == list(task.settings)
    assert len(task.draw(3, torch.Generator().manual_seed(0))) == 3


@pytest.mark.parametrize("name", TASKS)
def test_simulation_is_seeded_and_per_image(name: str) -> None:
    task = build_task(name)
    truth = pictures(task)
    first, _ = task.simulate(truth, task.settings[0], seed=7)
    again, _ = task.simulate(truth, task.settings[0], seed=7)
    alone, _ = task.simulate(truth[:1], task.settings[0], seed=7)
    other, _ = task.simulate(truth, task.settings[0], seed=8)
    assert torch.equal(first, again)
    assert torch.equal(first[:1], alone)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("csmri", {"sigma": -1}),
        ("phase", {"alpha": -1}),
        ("phase", {"masks": 0}),
        ("inpainting", {"kept": 0}),
        ("inpainting", {"sigma": -1}),
        ("inpainting", {"kind": "columns"}),
        ("multi-coil", {"sigma": -1}),
        ("multi-coil", {"coils": 0}),
        ("deblur", {"width": 0}),
        ("deblur", {"sigma": -1}),
        ("super-resolution", {"factor": 0}),
        ("super-resolution", {"sigma": -1}),
        ("denoising", {"sigma": -1}),
        ("motion-blur", {"side": 4}),
        ("motion-blur", {"sigma": -1}),
        ("varying-blur", {"inner": 0}),
        ("varying-blur", {"sigma": -1}),
        ("demosaicing", {"sigma": -1}),
        ("coded-fourier", {"kept": 0}),
        ("coded-fourier", {"sigma": -1}),
        ("tomography", {"views": 0}),
        ("tomography", {"sigma": -1}),
    ],
)
def test_impossible_settings_are_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="got"):
        TASKS[name].setting(**wrong)  # type: ignore[attr-defined]


def test_colour_is_refused_where_it_makes_no_sense() -> None:
    with pytest.raises(BadInput, match=r"images must be \(batch, 1, height, width\), got shape \(1, 3, 32, 32\)"):
        build_task("csmri").simulate(phantom(32, 32, 1).repeat(1, 3, 1, 1), build_task("csmri").settings[0])


def inpainting_mask(label: str, height: int = 48, width: int = 40, channels: int = 1, seed: int = 0) -> Tensor:
    """The mask (C, H, W) that is drawn for a setting by its label."""
    task, generator = InpaintingTask(), torch.Generator().manual_seed(seed)
    (mask,) = task.physics(task.named(label), (channels, height, width), generator).mask
    assert mask.shape == (channels, height, width)
    assert set(mask.unique().tolist()) <= {0.0, 1.0}
    return mask


@pytest.mark.parametrize("kind", ["", "rows ", "boxes "])
def test_a_mask_is_the_same_for_all_channels_and_drawn_anew_for_others(kind: str) -> None:
    red, green, blue = inpainting_mask(f"{kind}kept=0.5 sigma=5", channels=3)
    assert torch.equal(red, green)
    assert torch.equal(red, blue)
    assert not torch.equal(red, inpainting_mask(f"{kind}kept=0.5 sigma=5", seed=1)[0])
    assert inpainting_mask(f"{kind}kept=1 sigma=5").all()


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.8])
def test_pixels_and_rows_are_kept_at_random(kept: float) -> None:
    """Within four standard deviations of the share; rows are missing as a whole, pixels are not."""
    (pixels,), (rows,) = (inpainting_mask(f"{kind}kept={kept} sigma=5", 400, 40) for kind in ("", "rows "))
    for mask, drawn in ((pixels, 400 * 40), (rows, 400)):
        assert abs(mask.mean().item() - kept) < 4 * (kept * (1 - kept) / drawn) ** 0.5
    assert torch.equal(rows, rows[:, :1].expand(-1, 40))
    assert pixels.mean(1).std() < 1.5 * (kept * (1 - kept) / 40) ** 0.5


@pytest.mark.parametrize("size", [(48, 40), (33, 47), (6, 20)])
@pytest.mark.parametrize("kept", [0.9, 0.5])
def test_boxes_are_missing_until_the_share_is_reached(kept: float, size: tuple[int, int]) -> None:
    """Every missing pixel lies in a box that is missing as a whole, and one box less would have been too few."""
    (mask,) = inpainting_mask(f"boxes kept={kept} sigma=5", *size)
    side = min(SIDE, *size)
    missing = 1 - mask[None, None]
    whole = -torch.nn.functional.max_pool2d(-missing, side, 1)  # one where a box can begin
    covered = torch.nn.functional.max_pool2d(torch.nn.functional.pad(whole, [side - 1] * 4), side, 1)
    assert torch.equal(covered, missing)
    assert kept - side**2 / mask.numel() < mask.mean() <= kept


def test_inpainting_settings_are_found_by_any_label() -> None:
    task = InpaintingTask()
    assert [setting.label for setting in task.settings] == [
        "kept=0.5 sigma=5",
        "kept=0.2 sigma=5",
        "rows kept=0.5 sigma=5",
        "boxes kept=0.9 sigma=5",
    ]
    assert task.named("rows kept=0.25 sigma=7.5").values == {"kept": 0.25, "sigma": 7.5, "kind": "rows"}
    assert task.named("kept=0.3 sigma=10").values == {"kept": 0.3, "sigma": 10.0, "kind": "pixels"}
    with pytest.raises(BadInput, match="pixels, rows, boxes, got 'columns'"):
        task.named("columns kept=0.5 sigma=5")
    with pytest.raises(UnknownName, match="unknown setting 'rows half'"):
        task.named("rows half")


@pytest.mark.parametrize("coils", [1, 8])
def test_simulated_coils_see_everything_once_and_have_phases_of_their_own(coils: int) -> None:
    maps = simulated_maps(coils, 32, 40, torch.Generator().manual_seed(0))
    assert maps.shape == (coils, 32, 40)
    assert (maps.abs().square().sum(0) - 1).abs().max() < 1e-5
    assert len({round(angle, 3) for angle in maps[:, 16, 20].angle().tolist()}) == coils
    assert (maps[:, 1:] - maps[:, :-1]).abs().max() < 0.3
    assert not torch.equal(maps, simulated_maps(coils, 32, 40, torch.Generator().manual_seed(1)))
