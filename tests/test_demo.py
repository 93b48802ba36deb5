"""The demo: each method once in each setting, and files that a person can look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pnpilot.demo import BASELINES, POLICIES, SETTINGS
from pnpilot.model import PnPilot
from tests.cli import run


def test_it_writes_pictures_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    steps = PnPilot.steps

    def counted(self: PnPilot, *given: Any) -> Iterator[Any]:
        runs.append(self)
        return steps(self, *given)

    monkeypatch.setattr(PnPilot, "steps", counted)
    out = tmp_path / "with [brackets]"
    result = run("demo", "--out", out, "--device", "cpu")
    assert result.returncode == 0, result.stderr
    assert str(out / "images.png") in result.stdout.replace("\n", "")
    assert len(runs) == len(POLICIES) * len(SETTINGS)  # each once
    content = json.loads((out / "demo.json").read_text())
    rows = {(row["setting"], row["method"]): row for row in content["rows"]}
    assert list(rows) == [(label, name) for label in SETTINGS for name in (*BASELINES, *POLICIES)]
    noisy, sparse = ({name: rows[label, name] for name in (*BASELINES, *POLICIES)} for label in SETTINGS)
    # What the picture is there to show.
    assert max(noisy, key=lambda name: noisy[name]["psnr"]) == "learned"
    assert min(noisy, key=lambda name: noisy[name]["psnr"]) == "fixed"
    assert sparse["learned"]["psnr"] > sparse["fixed"]["psnr"] - 0.5 > sparse["tv"]["psnr"]
    for own in (noisy, sparse):
        assert own["learned"]["iterations"] < own["schedule"]["iterations"]
    for name in ("images.png", "parameters.png"):
        with Image.open(out / name) as picture:
            assert min(picture.size) > 300
            assert np.asarray(picture.convert("L")).std() > 10
    learned = content["traces"][SETTINGS[1]]["learned"]
    assert len(learned["stop_probability"]) == len(learned["psnr"]) == len(learned["decided_at"])


def test_a_folder_that_cannot_be_written_is_one_line() -> None:
    result = run("demo", "--out", "/proc/nothing")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("pnpilot: cannot write to the folder")


def test_it_replaces_nothing_of_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text("years of work")
    result = run("demo", "--out", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "demo.json holds something else than results of pnpilot" in result.stderr
    assert (tmp_path / "demo.json").read_text() == "years of work"
