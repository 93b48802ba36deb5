"""The table of denoisers, without the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from pnpilot.benchmark.denoisers import DenoiserResults, DenoiserTable, left_out, ready
from pnpilot.benchmark.denoising import milliseconds
from pnpilot.denoisers import Denoiser

from .conftest import phantom


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("set12", "medical4"):
        (tmp_path / name).mkdir()
        for index, picture in enumerate(phantom(128, 128, 2)):
            Image.fromarray((255 * picture[0]).numpy().astype(np.uint8)).save(tmp_path / name / f"{index}.png")
    return tmp_path


def test_every_denoiser_alone_and_plugged_in_beside_the_paper(
    smoother: Denoiser, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.benchmark.oracles.COARSE", 3)
    results = DenoiserResults(data / "d.json", seed=0)
    heard: list[str] = []
    both = {"unet": smoother, "mine": smoother}
    plan = DenoiserTable(both, data, ["set12"], batch=64)
    plan.run(results, heard.append)
    content = json.loads((data / "d.json").read_text())
    rows = {(row["method"], row["dataset"], row["setting"]): row for row in content["rows"]}
    assert len(rows) == len(heard) == len(plan) == 2 * 4
    assert {row["device"] for row in content["rows"]} == {"CPU"}

    alone, plugged_in = rows["unet", "set12", "sigma=50"], rows["unet", "medical4", "x8 sigma=15"]
    assert (alone["paper"], plugged_in["paper_medical7"], alone["paper_milliseconds"]) == (27.40, 25.76, 5.65)
    assert plugged_in["paper"] is None  # the paper's images are others
    own = [row for row in content["rows"] if row["method"] == "mine"]
    assert not any(value is not None for row in own for key, value in row.items() if key.startswith("paper"))
    assert all({"milliseconds", "parameters_millions", "gflop"} <= set(row) for row in content["rows"])
    assert (plugged_in["policy"], plugged_in["iterations"]) == ("fixed-optimal", 30)
    found = [image for image in content["images"] if image["dataset"] == "medical4" and image["method"] == "mine"]
    assert len({(image["sigma"], image["mu"]) for image in found}) == 1 < len(found)

    console = Console(width=120)
    with console.capture() as capture:
        results.show(console)
    unet, mine = capture.get().strip().splitlines()[-2:]
    assert unet.split()[0] == "unet"
    assert {"5.65", "27.40", "25.76", f"{plugged_in['psnr']:.2f}"} <= set(unet.split())
    assert len(mine.split()) == len(unet.split()) - 3


def test_without_plugging_in_no_other_set_is_needed(smoother: Denoiser, data: Path) -> None:
    results = DenoiserResults(None, seed=0)
    DenoiserTable({"mine": smoother}, data, ["set12"], pnp=False, images=1).run(results)
    assert {row["dataset"] for row in results.rows} == {"set12"}


def test_the_papers_numbers_stand_beside_whole_sets_alone(smoother: Denoiser, data: Path) -> None:
    for images, paper in ((None, 27.40), (1, None)):
        results = DenoiserResults(None, seed=0)
        DenoiserTable({"unet": smoother}, data, ["set12"], pnp=False, images=images).run(results)
        assert results.rows[-1]["paper"] == paper


def test_the_time_of_an_image_is_the_median_of_several(smoother: Denoiser, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0, 9, 9, 10, 20, 22, 30, 35, 40, 43, 50, 54])  # the first call, which is slow, and five more
    monkeypatch.setattr("pnpilot.benchmark.timing.time.perf_counter", lambda: next(ticks))
    assert milliseconds(smoother, 16, 16) == 3000


def test_every_trainable_denoiser_is_either_ready_or_left_out() -> None:
    assert set(ready()) | set(left_out(ready())) >= {"compact", "dncnn", "memnet", "unet"}
    assert not set(ready()) & set(left_out(ready()))
    assert "deepinv" not in left_out([])
