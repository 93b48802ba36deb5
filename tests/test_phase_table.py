"""The table of phase retrieval: draws of masks beside seeds of noise, and how both are reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pnpilot.baselines import BASELINES
from pnpilot.benchmark.cells import Cell, Cells
from pnpilot.benchmark.comparison import Comparison
from pnpilot.benchmark.examples import examples, shown_settings
from pnpilot.benchmark.methods import Method, ModelMethod, chosen_methods, comparison_methods, comparison_rows
from pnpilot.benchmark.results import Results
from pnpilot.benchmark.scores import spread
from pnpilot.benchmark.tables.phase import PhaseTable
from pnpilot.errors import BadInput, Incompatible, UnknownName
from pnpilot.physics.coded_diffraction import ShotNoise
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from pnpilot.weights import weights_folder
from tests.cli import Said
from tests.conftest import phantom
from tests.test_comparison import names_of, rows_of, save_picture, score_files, watched_calls
from tests.test_learned import saved_policy
from tests.test_report import phase_row

CHEAP = ["hio-free", "hio"]
SETTING = PhaseRetrieval.setting(27)
CPU = torch.device("cpu")


def made(*names: str) -> list[Method]:
    return chosen_methods(comparison_rows(PhaseRetrieval(), CPU), names)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three small pictures in the benchmark's test set."""
    (tmp_path / "data" / "phase12").mkdir(parents=True)
    for index, picture in enumerate(phantom(32, 24, 3)):
        save_picture(tmp_path / "data" / "phase12" / f"{index}.png", picture[0])
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHEAP:
        monkeypatch.setattr(BASELINES[name], "iterations", 20)


@pytest.fixture
def bench(data: Path) -> Comparison:
    return Comparison(PhaseRetrieval(), data, ["phase12"], [SETTING], made(*CHEAP), CPU, size=(32, 24), draws=1)


@pytest.fixture
def cells(tmp_path: Path) -> Cells:
    return Cells(tmp_path / "cells")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    return watched_calls(monkeypatch)


@pytest.fixture
def command(data: Path, tmp_path: Path) -> list[str | Path]:
    """The cheap methods in one setting at a small size; --methods and --size given later outrank these."""
    options = ["--methods", "hio-free,hio", "--setting", "alpha=27", "--size", "32x24"]
    return ["bench", "compare", "--task", "phase", "--data", data, "--out", tmp_path / "out", *options]


# Data.


@pytest.mark.parametrize(("seed", "draw"), [(0, 0), (0, 1), (5, 0), (5, 1)])
def test_noise_is_the_seeds_whatever_the_draw(seed: int, draw: int) -> None:
    truth = phantom(16, 12)
    y, physics = PhaseRetrieval().simulate(truth, SETTING, seed, draw)
    for index in range(2):
        noise = ShotNoise(27, rng=torch.Generator().manual_seed(100_003 * seed + index))
        assert torch.equal(y[[index]], noise(physics.A(truth)[[index]]))


def test_masks_are_the_draws_whatever_the_seed() -> None:
    truth, task = phantom(16, 12), PhaseRetrieval()
    (y, own), (z, same), (_, other) = (task.simulate(truth, SETTING, *pair) for pair in ((0, 0), (1, 0), (0, 1)))
    assert torch.equal(own.masks, same.masks)
    assert not torch.equal(y, z)
    drawn = [*own.masks, *other.masks]
    assert len({tuple(masks.flatten().tolist()) for masks in drawn}) == 4  # fresh for each image and draw
    first = task.simulate(truth[:1], SETTING, 0, 1)[1]
    assert torch.equal(first.masks[0], other.masks[0])


def test_masks_do_not_depend_on_the_noise_level() -> None:
    truth = phantom(16, 12)
    weak, strong = (PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(alpha), 3, 2)[1] for alpha in (9, 81))
    assert torch.equal(weak.masks, strong.masks)


def test_without_a_draw_the_seed_decides_masks_and_noise_as_ever() -> None:
    truth, task = phantom(16, 12), PhaseRetrieval()
    y, physics = task.simulate(truth, SETTING, 7)
    for index in range(2):
        generator = torch.Generator().manual_seed(100_003 * 7 + index)
        one = task.physics(SETTING, (1, 16, 12), generator)
        assert torch.equal(physics.masks[[index]], one.masks)
        assert torch.equal(y[[index]], one(truth[[index]]))
    assert not torch.equal(physics.masks, task.simulate(truth, SETTING, 8)[1].masks)
    assert not torch.equal(physics.masks, task.simulate(truth, SETTING, 7, 0)[1].masks)


# What is measured.


def test_every_seed_meets_every_draw_and_both_have_aspread(bench: Comparison, cells: Cells) -> None:
    heard: list[str] = []
    bench.seed, bench.seeds, bench.draws = 4, 2, 2
    rows = rows_of(bench, cells, heard.append)
    assert len(heard) == len(bench) == 2 * 3 * 4
    assert {row["count"] for row in rows} == {3 * 4}
    scores: dict[tuple[int, int], list[float]] = {}
    for seed in (4, 5):
        for draw in (0, 1):
            cell = Cell("phase12", "alpha=27", "hio", seed, (32, 24), draw)
            content = json.loads((cells.folder / cell.file).read_text())
            assert (content["seed"], content["draw"]) == (seed, draw)
            scores[seed, draw] = [image["psnr"] for image in content["images"].values()]
    assert len(score_files(cells)) == 2 * 4
    assert len({value for values in scores.values() for value in values}) == 12
    table = np.array([[scores[seed, draw] for draw in (0, 1)] for seed in (4, 5)])
    (row,) = [row for row in rows if row["method"] == "hio"]
    assert row["psnr"] == pytest.approx(table.mean(), abs=1e-3)
    assert row["spread"]["seeds"] == pytest.approx(np.ptp(table.mean((1, 2))), abs=1e-3)
    assert row["spread"]["draws"] == pytest.approx(np.ptp(table.mean((0, 2))), abs=1e-3)
    assert min(row["spread"].values()) > 0


@pytest.mark.parametrize(("seeds", "draws"), [(1, 1), (1, None), (2, 1), (2, None), (1, 2)])
def test_one_alone_has_nospread(seeds: int, draws: int | None, bench: Comparison, cells: Cells) -> None:
    bench.methods, bench.seeds, bench.draws = made("hio"), seeds, draws
    (row,) = rows_of(bench, cells)
    known = {kind: value is not None for kind, value in row["spread"].items()}
    assert known == {"seeds": seeds > 1, "draws": draws == 2}


def test_spreads_are_between_means() -> None:
    images = [{"psnr": p, "seed": s, "draw": d} for p, s, d in [(30, 0, 0), (32, 0, 1), (31, 1, 0), (35, 1, 1)]]
    assert (spread(images, "seed"), spread(images, "draw")) == (2.0, 3.0)
    assert spread(images[:2], "seed") is None


def test_results_with_and_without_draws_keep_apart(
    bench: Comparison, cells: Cells, calls: list[tuple[str, int]]
) -> None:
    bench.methods = made("hio")
    (drawn,) = rows_of(bench, cells)
    (seeded,) = rows_of(replace(bench, draws=None), cells)
    assert drawn["psnr"] != seeded["psnr"]
    assert calls == [("hio", 3)] * 2
    assert score_files(cells) == {
        "phase12_32x24_alpha=27_hio_seed=0_draw=0.json",
        "phase12_32x24_alpha=27_hio_seed=0.json",
    }


def test_more_draws_and_seeds_do_what_is_missing(bench: Comparison, cells: Cells, calls: list[tuple[str, int]]) -> None:
    bench.methods = made("hio")
    first = rows_of(bench, cells)
    assert calls == [("hio", 3)]
    rows_of(replace(bench, draws=2), cells)
    assert len(calls) == 2
    every = rows_of(replace(bench, draws=2, seeds=2), cells)
    assert len(calls) == 4
    assert rows_of(replace(bench, draws=2, seeds=2), cells) == every
    assert rows_of(bench, cells) == first
    assert len(calls) == 4


def test_the_size_of_a_batch_changes_nothing(bench: Comparison, tmp_path: Path) -> None:
    found = [rows_of(replace(bench, batch=batch), Cells(tmp_path / str(batch))) for batch in (1, 2)]
    for one, other in zip(*found, strict=True):
        assert one["psnr"] == pytest.approx(other["psnr"], abs=2e-3)
        assert one["ssim"] == pytest.approx(other["ssim"], abs=2e-4)


def test_iterations_are_those_that_each_image_took(
    bench: Comparison, cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.baselines.prdeep.STEPS", 2)
    bench.methods, bench.images = made("prdeep", "hio"), 1
    bench.settings = [SETTING, PhaseRetrieval.setting(81)]
    rows = rows_of(bench, cells)
    assert [row["iterations"] for row in rows] == [8, 20, 4, 20]


def test_the_papers_numbers_stand_beside_whole_sets_of_its_size(
    bench: Comparison, cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CHEAP:
        monkeypatch.setattr(BASELINES[name], "iterations", 1)
    whole = replace(bench, size=(128, 128))
    for own, paper in ((whole, 25.76), (replace(whole, images=1), None), (bench, None)):
        assert [row["paper"] for row in rows_of(own, cells)] == [paper, paper]
    (other,) = rows_of(replace(whole, methods=made("hio"), settings=[PhaseRetrieval.setting(27, masks=3)]), cells)
    assert other["paper"] is None


def test_all_methods_are_in_the_table_ours_last(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(comparison_rows(PhaseRetrieval(), CPU))
    assert names == [*PhaseTable.order, "learned"]  # in the paper's order
    methods, left_out = comparison_methods(PhaseRetrieval(), CPU, [])
    assert (names_of(methods), left_out) == (names, {})
    with pytest.raises(UnknownName, match="unknown method 'recpf'; known: hio-free, hio, "):
        comparison_methods(PhaseRetrieval(), CPU, ["hio", "recpf"])
    with pytest.raises(UnknownName, match="unknown method 'hio'; known: zero-filled, "):
        comparison_methods(CSMRI(), CPU, ["hio"])
    monkeypatch.setattr("pnpilot.baselines.base.find_spec", lambda _: None)
    methods, left_out = comparison_methods(PhaseRetrieval(), CPU, [])
    assert set(left_out) == {"spar", "bm3d-prgamp"}
    assert names_of(methods) == [name for name in names if name not in left_out]
    with pytest.raises(BadInput, match="spar needs bm3d: pip install"):
        comparison_methods(PhaseRetrieval(), CPU, ["hio", "spar"])


# Pictures.


def test_one_set_is_shown_in_the_first_the_middle_and_the_last_setting(bench: Comparison, cells: Cells) -> None:
    heard: list[str] = []
    bench.settings = [PhaseRetrieval.setting(alpha) for alpha in (5, 9, 27, 50, 81)]
    found = examples(bench, cells, heard.append)
    brightest = int(phantom(32, 24, 3).mean((1, 2, 3)).argmax())
    assert [example.title for example in found] == [f"{brightest}\nalpha={alpha}" for alpha in (5, 27, 81)]
    assert len(heard) == len(shown_settings(bench)) * 2 == 3 * 2
    assert list(found[0].images) == CHEAP
    assert all(image.shape == (1, 32, 24) for example in found for image in example.images.values())


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (2, 2), (3, 3)])
def test_no_setting_is_shown_twice(count: int, shown: int, bench: Comparison, cells: Cells) -> None:
    bench.settings = PhaseRetrieval().settings[:count]
    assert len(examples(bench, cells)) == shown == len(shown_settings(bench))


def test_a_picture_shows_what_was_measured(bench: Comparison, cells: Cells) -> None:
    bench.seed, bench.draws, bench.methods = 3, 2, made("hio")
    rows_of(bench, cells)
    (example,) = examples(bench, cells)
    index = example.title.split("\n")[0]
    content = json.loads((cells.folder / "phase12_32x24_alpha=27_hio_seed=3_draw=0.json").read_text())
    assert example.captions["hio"] == f"{content['images'][index]['psnr']:.2f} dB"


# Policies.


def copied_policy(folder: Path) -> Path:
    folder.mkdir()
    for file in weights_folder().glob("learned-phase-*"):
        shutil.copy(file, folder)
    return folder


def test_ours_may_have_another_policy_but_not_of_another_task(tmp_path: Path) -> None:
    shipped = ModelMethod("learned", PhaseRetrieval(), CPU)
    given = ModelMethod("learned", PhaseRetrieval(), CPU, copied_policy(tmp_path / "phase"))
    assert given.made_with == shipped.made_with
    with pytest.raises(Incompatible, match=r"in .*csmri was trained for task 'csmri', not for 'phase'$"):
        ModelMethod("learned", PhaseRetrieval(), CPU, saved_policy(tmp_path / "csmri"))


# The command line.


def test_the_command_writes_table_numbers_picture_and_cells(
    command: list[str | Path], tmp_path: Path, say: Callable[..., Said]
) -> None:
    out = tmp_path / "out"
    said = say(*command, "--draws", "2", "--seeds", "2", "--seed", "1")
    assert said.code == 0, said.err
    assert {path.name for path in out.iterdir()} == {"phase.md", "phase.json", "phase.png", "cells"}
    assert len(list((out / "cells").glob("*.json"))) == 2 * 4
    content = json.loads((out / "phase.json").read_text())
    assert content["command"].startswith("pnpilot bench compare --task phase --data ")
    assert (content["seed"], content["seeds"], content["draws"]) == (1, 2, 2)
    assert [(entry["dataset"], entry["method"]) for entry in content["rows"]] == [("phase12", name) for name in CHEAP]
    assert {entry["count"] for entry in content["rows"]} == {3 * 4}
    report = (out / "phase.md").read_text()
    assert report.startswith(f"# Phase retrieval\n\n`{content['command']}`\n")
    for kind, words in {"seeds": "seeds of noise", "draws": "draws of operators"}.items():
        table = report.split(f"### Largest less smallest mean PSNR of the {words}\n\n")[1].split("\n\n")[0]
        numbers = " | ".join(f"{entry['spread'][kind]:.2f}" for entry in content["rows"])
        assert table.splitlines()[-1] == f"| alpha=27 | {numbers} |"
    assert "†" not in report
    assert f"{content['rows'][1]['psnr']:.2f}" in report
    assert f"{content['rows'][1]['psnr']:.2f}" in said.out
    written = ", ".join(str(out / f"phase.{end}") for end in ("md", "json", "png"))
    assert said.out.splitlines()[-1] == f"written: {written}"
    with Image.open(out / "phase.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10


def test_three_seeds_and_one_draw_are_the_default_and_one_size_is_both_sides(
    command: list[str | Path], tmp_path: Path, say: Callable[..., Said]
) -> None:
    said = say(*command, "--size", "48", "--no-figure")
    assert said.code == 0, said.err
    content = json.loads((tmp_path / "out" / "phase.json").read_text())
    assert (content["seeds"], content["draws"]) == (3, 1)
    assert {entry["count"] for entry in content["rows"]} == {9}
    assert {path.name for path in (tmp_path / "out" / "cells").glob("*.json")} == {
        f"phase12_48x48_alpha=27_{name}_seed={seed}_draw=0.json" for name in CHEAP for seed in range(3)
    }
    report = (tmp_path / "out" / "phase.md").read_text()
    assert "seeds of noise" in report
    assert "draws of operators" not in report
    assert not (tmp_path / "out" / "phase.png").exists()


def test_the_command_goes_on_from_what_is_there(
    command: list[str | Path], say: Callable[..., Said], calls: list[tuple[str, int]]
) -> None:
    few, more = ["--seeds", "1", "--no-figure"], ["--seeds", "1", "--no-figure", "--draws", "2", "--batch", "2"]
    assert say(*command, *few, "--methods", "hio").code == 0
    assert sorted(calls) == [("hio", 3), ("hio-free", 3)]
    calls.clear()
    assert say(*command, *few).code == 0
    assert not calls
    assert say(*command, *more).code == 0
    assert sorted(calls) == [("hio", 1), ("hio", 2), ("hio-free", 1), ("hio-free", 2)]


def test_other_numbers_of_masks_are_taken_and_a_policy_in_a_folder(
    command: list[str | Path], tmp_path: Path, say: Callable[..., Said]
) -> None:
    folder = copied_policy(tmp_path / "policy")
    options = ["--methods", "learned", "--policy", folder, "--seeds", "1", "--images", "1", "--no-figure"]
    said = say(*command, *options, "--setting", "6 masks alpha=40")
    assert said.code == 0, said.err
    rows = json.loads((tmp_path / "out" / "phase.json").read_text())["rows"]
    assert [(row["setting"], row["method"], row["count"]) for row in rows] == [
        (setting, name, 1) for setting in ("alpha=27", "6 masks alpha=40") for name in (*CHEAP, "learned")
    ]
    scores = {(row["setting"], row["method"]): row["psnr"] for row in rows}
    assert scores["alpha=27", "learned"] > scores["alpha=27", "hio-free"] + 2


def test_methods_that_cannot_run_are_left_out_aloud(
    data: Path, tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.baselines.base.find_spec", lambda _: None)

    def pretended(bench: Comparison, results: Results, *_: Any) -> None:
        results.rows.extend(phase_row(name, 30.0) for name in names_of(bench.methods))

    monkeypatch.setattr(Comparison, "run", pretended)
    said = say("bench", "compare", "--task", "phase", "--data", data, "--out", tmp_path / "out", "--no-figure")
    assert said.code == 0, said.err
    assert "left out: spar needs bm3d: pip install 'pnpilot[baselines]'" in said.err
    assert "spar" not in said.out
    assert "learned" in said.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--draws", "0"], "--draws"),
        (["--draws", "two"], "--draws"),
        (["--seeds", "0"], "--seeds"),
        (["--methods", "hio,magic"], "unknown method 'magic'; known: hio-free, hio, "),
        (["--methods", "tv"], "unknown method 'tv'; known: hio-free, hio, "),
        (["--setting", "x4 sigma=10"], "unknown setting 'x4 sigma=10'"),
        (["--setting", "0 masks alpha=9"], "at least one mask is needed"),
        (["--size", "big"], "a size is a number from 16 on"),
        (["--methods", "learned", "--policy", "CSMRI"], "was trained for task 'csmri', not for 'phase'"),
        (["--methods", "learned", "--policy", "EMPTY"], "holds 0 policies"),
        (["--methods", "learned", "--policy", "/no/such"], "there is no such folder"),
        (["--methods", "hio", "--policy", "CSMRI"], "--policy is for the method 'learned'"),
        (["--device", "abacus"], "device 'abacus'"),
        (["--data", "EMPTY"], "no test set 'phase12'"),
        (["--out", "/proc/no"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    options: list[str],
    message: str,
    command: list[str | Path],
    tmp_path: Path,
    say: Callable[..., Said],
    calls: list[Any],
) -> None:
    folders = {"CSMRI": saved_policy(tmp_path / "csmri"), "EMPTY": tmp_path / "empty"}
    folders["EMPTY"].mkdir()
    said = say(*command, *(folders.get(option, option) for option in options))
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.strip().splitlines()
    assert line.startswith("pnpilot: ")
    assert message in line
    assert not calls
