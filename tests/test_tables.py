"""A task added by one file has its table at once, in colour if it says so."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from deepinv.physics import BlurFFT, GaussianNoise
from deepinv.physics.functional import gaussian_blur
from PIL import Image
from torch import Tensor

from pnpilot.baselines import BASELINES, Baseline
from pnpilot.benchmark.methods import BaselineMethod, comparison_rows
from pnpilot.benchmark.tables import TABLES, Table, table_of
from pnpilot.cli import main
from pnpilot.registry import Registry
from pnpilot.tasks import TASKS, Setting, Task, build_task
from tests.cli import run
from tests.conftest import phantom

SIZE = 32
CPU = torch.device("cpu")


class Soft(Task):
    """Soft focus: a weak blur, in colour."""

    settings = [Setting("weak", {"sigma": 2.0}), Setting("strong", {"sigma": 10.0})]
    channels = (3,)

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> BlurFFT:
        kernel = gaussian_blur(sigma=(1.0, 1.0))
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return BlurFFT(shape, filter=kernel, noise_model=noise)


class Data(Baseline):
    """The data as they are."""

    reference = "ours"
    serves = frozenset({"soft"})

    def __call__(self, y: Tensor, physics: Any) -> Tensor:
        return y


def enter(registry: Registry[Any], name: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register for one test."""
    list(registry)  # what ships comes first
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    registry.register(name)(kind)


@pytest.fixture
def soft(monkeypatch: pytest.MonkeyPatch) -> Task:
    enter(TASKS, "soft", Soft, monkeypatch)
    enter(BASELINES, "data", Data, monkeypatch)
    return build_task("soft")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "set12"
    folder.mkdir(parents=True)
    for index, picture in enumerate(phantom(SIZE, SIZE, 2)):
        colours = torch.cat([picture, picture.flip(1), 1 - picture]).movedim(0, -1)
        Image.fromarray((255 * colours).round().numpy().astype(np.uint8)).save(folder / f"{index}.png")
    return tmp_path / "data"


def compare(monkeypatch: pytest.MonkeyPatch, data: Path, out: Path, *options: str) -> dict[str, Any]:
    words = [
        "bench",
        "compare",
        "--task",
        "soft",
        "--data",
        str(data),
        "--out",
        str(out),
        "--size",
        str(SIZE),
        "--colour",
    ]
    monkeypatch.setattr(sys, "argv", ["pnpilot", *words, *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    return json.loads((out / "soft.json").read_text())


def test_a_task_without_a_file_has_a_table(
    soft: Task, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(comparison_rows(soft, CPU)) == ["data", "schedule"]
    content = compare(monkeypatch, data, tmp_path / "out")
    assert [(row["dataset"], row["setting"], row["method"]) for row in content["rows"]] == [
        ("set12", label, name) for label in ("weak", "strong") for name in ("data", "schedule")
    ]
    assert {row["paper"] for row in content["rows"]} == {None}
    scores = {(row["setting"], row["method"]): row["psnr"] for row in content["rows"]}
    assert scores["weak", "schedule"] > scores["weak", "data"]
    report = (tmp_path / "out" / "soft.md").read_text()
    assert report.startswith("# Soft focus\n")
    assert "|  | data | schedule |" in report
    with Image.open(tmp_path / "out" / "soft.png") as picture:
        red, _, blue = np.asarray(picture.convert("RGB")).astype(float).transpose(2, 0, 1)
        assert np.abs(red - blue).max() > 50


def test_scores_are_of_all_colours(soft: Task, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = compare(monkeypatch, data, tmp_path / "out", "--method", "data", "--setting", "weak", "--no-figure")
    from pnpilot.benchmark.data import load_dataset
    from pnpilot.metrics import psnr

    _, truth = load_dataset(data, "set12", (SIZE, SIZE), channels=3)
    assert truth.shape == (2, 3, SIZE, SIZE)
    y, physics = soft.simulate(truth, soft.settings[0])
    answer = BaselineMethod("data", soft)(y, physics)
    assert answer.image.shape == truth.shape
    found = [image["psnr"] for image in content["images"]]
    assert found == pytest.approx(psnr(answer.image, truth).tolist(), abs=1e-4)
    assert load_dataset(data, "set12", (SIZE, SIZE))[1].shape == (2, 1, SIZE, SIZE)  # grey unless asked


def test_a_file_says_order_title_numbers_notes_and_draws(
    soft: Task, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SoftTable(Table):
        """Soft focus."""

        title = "In soft focus"
        published = {"set12": {"weak": {"data": 12.34}}}
        notes = {"set12": "on other images."}
        seeds, draws = 2, 1

    enter(TABLES, "soft", SoftTable, monkeypatch)
    monkeypatch.setattr("pnpilot.benchmark.comparison.SIZE", (SIZE, SIZE))
    content = compare(monkeypatch, data, tmp_path / "out", "--method", "data", "--no-figure")
    assert (content["seeds"], content["draws"]) == (2, 1)
    assert [(row["count"], row["paper"]) for row in content["rows"]] == [(4, 12.34), (4, None)]
    report = (tmp_path / "out" / "soft.md").read_text()
    assert report.startswith("# In soft focus\n")
    assert "† as the paper printed it, on other images." in report
    short = compare(monkeypatch, data, tmp_path / "out", "--method", "data", "--no-figure", "--images", "1")
    assert {row["paper"] for row in short["rows"]} == {None}


def test_policies_are_measured_on_images_that_the_task_takes(
    soft: Task, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In colour, and not too small: whatever looks at the task beforehand must not use other images."""
    real, shapes = Soft.physics, []

    def choosy(task: Soft, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> BlurFFT:
        shapes.append(shape)
        return real(task, setting, shape, generator)

    monkeypatch.setattr("pnpilot.benchmark.data.SIZE", (48, 40))  # settings are tried at this size
    monkeypatch.setattr(Soft, "physics", choosy)
    file = tmp_path / "p.json"
    words = ["bench", "policies", "--task", "soft", "--data", str(data), "--colour", "--size", "48x40"]
    words += ["--setting", "weak", "--method", "start,data,schedule", "--json", str(file)]
    result = run(*words)
    assert result.returncode == 0, result.stderr
    assert set(shapes) == {(3, 48, 40)}
    assert [row["method"] for row in json.loads(file.read_text())["rows"]] == ["start", "data", "schedule"]


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_a_table_with_ours_last(name: str) -> None:
    task = build_task(name)
    names, table = list(comparison_rows(task, CPU)), table_of(task)
    assert names[-1] == ("learned" if name in ("csmri", "phase") else "schedule")
    assert names[:-1] == table.baselines()
    assert all(name in BASELINES[baseline].serves for baseline in names[:-1])
    assert table.title
    assert set(table.notes) | set(table.published) <= set(table.datasets)


def test_every_table_is_of_a_task() -> None:
    assert set(TABLES) <= set(TASKS)
