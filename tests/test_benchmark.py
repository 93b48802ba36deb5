"""The tables, without the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pnpilot.benchmark.policies import Bench, bench_policies, learned_policies
from pnpilot.benchmark.results import Results
from pnpilot.denoisers import Denoiser, build_denoiser
from pnpilot.errors import Incompatible
from pnpilot.tasks.csmri import CSMRI

from .conftest import phantom
from .test_learned import saved_policy


def test_searched_rows_say_what_was_found(smoother: Denoiser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.benchmark.oracles.COARSE", 4)
    (tmp_path / "two").mkdir()
    for index, picture in enumerate(phantom(128, 128, 2)):
        Image.fromarray((255 * picture[0]).numpy().astype(np.uint8)).save(tmp_path / "two" / f"{index}.png")
    methods = ["fixed", "fixed-optimal", "oracle", "oracle*"]
    results = Results(tmp_path / "p.json", seed=0)
    bench = Bench(CSMRI(), "admm", smoother, batch=64)
    bench_policies(bench, tmp_path, results, datasets=["two"], methods=methods, settings=[CSMRI.setting(4, 15)])

    content = json.loads((tmp_path / "p.json").read_text())
    scores = {row["method"]: row["psnr"] for row in content["rows"]}
    assert scores["fixed"] <= scores["fixed-optimal"] <= scores["oracle"] + 1e-3 <= scores["oracle*"] + 2e-3
    found = {method: [i for i in content["images"] if i["method"] == method] for method in methods}
    assert not {"sigma", "mu"} & set(found["fixed"][0])
    assert found["fixed-optimal"][0]["sigma"] == found["fixed-optimal"][1]["sigma"]
    for image in found["oracle"] + found["oracle*"]:
        assert 3 / 255 - 1e-4 <= image["sigma"] <= 70 / 255 + 1e-4
        assert 1e-3 <= image["mu"] <= 1.0


def test_learned_rows_are_those_that_ship_and_those_in_folders(tmp_path: Path) -> None:
    bench = Bench(CSMRI(), "auto", build_denoiser("compact"))
    assert list(learned_policies(bench, [])) == ["learned"]
    folders = [saved_policy(tmp_path / name / "run") for name in ("one", "two", "three")]
    found = learned_policies(bench, folders)
    assert list(found) == ["learned", "run", str(folders[2])]
    assert list(learned_policies(bench, [saved_policy(tmp_path / "four", method="model-free")])) == [
        "model-free",
        "learned",
    ]
    assert learned_policies(Bench(CSMRI(), "amp", bench.denoiser), []) == {}


def test_no_learned_row_with_other_weights_of_its_denoiser(tmp_path: Path) -> None:
    denoiser = build_denoiser("compact")
    denoiser.sha256 = "another"
    bench = Bench(CSMRI(), "auto", denoiser)
    assert learned_policies(bench, []) == {}
    with pytest.raises(Incompatible, match="other weights of the denoiser 'compact'"):
        learned_policies(bench, [saved_policy(tmp_path / "run", denoiser_sha256="abc")])
