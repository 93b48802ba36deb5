"""Contracts of the tasks: settings, and what is simulated in them."""

from __future__ import annotations

import pytest
import torch

from pnpilot.errors import BadInput
from pnpilot.tasks import TASKS, build_task
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
        ("deblur", {"width": 0}),
        ("deblur", {"sigma": -1}),
        ("super-resolution", {"factor": 0}),
        ("super-resolution", {"sigma": -1}),
        ("tomography", {"views": 0}),
        ("tomography", {"sigma": -1}),
    ],
)
def test_impossible_settings_are_refused(name: str, wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="got"):
        TASKS[name].setting(**wrong)  # type: ignore[attr-defined]


def test_colour_is_refused_where_it_makes_no_sense() -> None:
    with pytest.raises(BadInput, match=r"images must be \(batch, 1, height, width\), got shape \(1, 3, 32, 32\)"):
        build_task("csmri").simulate(phantom(32, 32, 1).repeat(1, 3, 1, 1), build_task("csmri").settings[0])
