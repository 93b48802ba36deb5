"""Ours against everyone: what is measured, what is kept and not done again, and how it is reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from pnpilot.benchmark.examples import examples
from pnpilot.benchmark.methods import Method, chosen_methods, comparison_methods, comparison_rows
from pnpilot.benchmark.results import Results
from pnpilot.benchmark.scores import means
from pnpilot.benchmark.tables.csmri import PUBLISHED_METHODS, CSMRITable
from pnpilot.errors import BadInput, UnknownName
from pnpilot.plots import compare_crops
from pnpilot.tasks.csmri import CSMRI
from tests.cli import Said
from tests.conftest import phantom
from tests.test_report import row

CHEAP = ["zero-filled", "recpf"]
SETTING = CSMRI.setting(4, 10)
CPU = torch.device("cpu")


def made(*names: str) -> list[Method]:
    """The methods of these names, made anew."""
    return chosen_methods(comparison_rows(CSMRI(), CPU), names)


def names_of(methods: Sequence[Method]) -> list[str]:
    return [method.name for method in methods]


def save_picture(path: Path, image: torch.Tensor) -> None:
    Image.fromarray((255 * image).round().numpy().astype(np.uint8)).save(path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two small pictures in each of the benchmark's test sets."""
    for name in CSMRITable.datasets:
        (tmp_path / "data" / name).mkdir(parents=True)
        for index, picture in enumerate(phantom(48, 40, 2)):
            save_picture(tmp_path / "data" / name / f"{index}.png", picture[0])
    return tmp_path / "data"


@pytest.fixture
def bench(data: Path) -> Comparison:
    return Comparison(CSMRI(), data, ["brain50"], [SETTING], made(*CHEAP), CPU, size=(48, 40))


@pytest.fixture
def cells(tmp_path: Path) -> Cells:
    return Cells(tmp_path / "cells")


def rows_of(bench: Comparison, cells: Cells, tick: Callable[[str], Any] = lambda _: None) -> list[dict[str, Any]]:
    results = Results(None, bench.seed, bench.seeds, bench.draws)
    bench.run(results, cells, tick)
    return results.rows


def score_files(cells: Cells) -> set[str]:
    return {path.name for path in cells.folder.glob("*.json")}


def watched_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The method and the number of images of each call."""
    real: Any = Comparison.reconstruct
    found: list[tuple[str, int]] = []

    def watched(plan: Comparison, cells: Any, cell: Cell, method: Method, condition: Any, places: list[int]) -> Any:
        found.append((method.name, len(places)))
        return real(plan, cells, cell, method, condition, places)

    monkeypatch.setattr(Comparison, "reconstruct", watched)
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    return watched_calls(monkeypatch)


# What is measured.


def test_rows_and_cells_of_ours_and_others(bench: Comparison, cells: Cells) -> None:
    heard: list[str] = []
    bench.methods = made(*CHEAP, "learned")
    rows = rows_of(bench, cells, heard.append)
    assert len(heard) == len(bench) == 3 * 2  # two images each
    assert [(row["dataset"], row["setting"], row["method"]) for row in rows] == [
        ("brain50", "x4 sigma=10", name) for name in (*CHEAP, "learned")
    ]
    scores = {row["method"]: row for row in rows}
    assert scores["learned"]["psnr"] > scores["zero-filled"]["psnr"] + 3
    assert scores["learned"]["ssim"] > scores["zero-filled"]["ssim"]
    assert 5 <= scores["learned"]["iterations"] <= 30
    assert (scores["recpf"]["iterations"], scores["zero-filled"]["iterations"]) == (100, 0)
    assert all(row["seconds"] > 0 or row["method"] == "zero-filled" for row in rows)
    assert {(row["count"], row["device"]) for row in rows} == {(2, "CPU")}

    assert score_files(cells) == {Cell("brain50", "x4 sigma=10", name, size=(48, 40)).file for name in scores}
    content = json.loads((cells.folder / "brain50_48x40_x4_sigma=10_recpf_seed=0.json").read_text())
    assert (content["dataset"], content["method"], content["seed"]) == ("brain50", "recpf", 0)
    assert content["command"].startswith("pnpilot")
    assert {"pnpilot", "torch", "deepinv", "python"} <= set(content["versions"])
    assert list(content["images"]) == ["0", "1"]
    assert means(list(content["images"].values())) == {
        key: scores["recpf"][key] for key in ("psnr", "ssim", "iterations", "seconds")
    }


def test_more_seeds_are_more_reconstructions(bench: Comparison, cells: Cells) -> None:
    bench.methods, bench.seed, bench.seeds = made("zero-filled"), 3, 2
    (row,) = rows_of(bench, cells)
    assert row["count"] == 4
    own = [Cell("brain50", "x4 sigma=10", "zero-filled", seed, (48, 40)) for seed in (3, 4)]
    found = [cells.read(cell, _made_with(cells)) for cell in own]
    assert found[0]["0"]["psnr"] != found[1]["0"]["psnr"]
    assert row["psnr"] == pytest.approx(sum(image["psnr"] for own in found for image in own.values()) / 4, abs=1e-3)


def _made_with(cells: Cells) -> Any:
    return json.loads(next(cells.folder.glob("*.json")).read_text())["made_with"]


def test_the_size_of_a_batch_changes_nothing(bench: Comparison, tmp_path: Path) -> None:
    found = [rows_of(replace(bench, batch=batch), Cells(tmp_path / str(batch))) for batch in (1, 2)]
    for one, other in zip(*found, strict=True):
        assert one["psnr"] == pytest.approx(other["psnr"], abs=2e-3)
        assert one["ssim"] == pytest.approx(other["ssim"], abs=2e-4)


def test_all_methods_are_in_the_table_ours_last(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(comparison_rows(CSMRI(), CPU))
    assert set(names) == {name for name in BASELINES if "csmri" in BASELINES[name].serves} | {"learned"}
    assert len(names) == len(set(names))
    assert (names[0], names[-1]) == ("zero-filled", "learned")
    assert [name for name in names if name in PUBLISHED_METHODS] == list(PUBLISHED_METHODS)  # in the paper's order
    methods, left_out = comparison_methods(CSMRI(), CPU, [])
    assert (names_of(methods), left_out) == (names, {})
    methods, left_out = comparison_methods(CSMRI(), CPU, ["tv", "recpf"])
    assert (names_of(methods), left_out) == (["tv", "recpf"], {})
    with pytest.raises(UnknownName, match="unknown method 'magic'; known: zero-filled, "):
        comparison_methods(CSMRI(), CPU, ["tv", "magic"])
    monkeypatch.setattr("pnpilot.baselines.base.find_spec", lambda _: None)
    methods, left_out = comparison_methods(CSMRI(), CPU, [])
    assert set(left_out) == {"recpf", "fcsa", "bm3d-mri"}
    assert names_of(methods) == [name for name in names if name not in left_out]
    with pytest.raises(BadInput, match="bm3d-mri needs bm3d: pip install"):
        comparison_methods(CSMRI(), CPU, ["tv", "bm3d-mri"])


# What is kept and not done again.


def test_what_is_known_is_not_computed_again(bench: Comparison, cells: Cells, calls: list[tuple[str, int]]) -> None:
    first = rows_of(replace(bench, images=1), cells)
    assert calls == [("zero-filled", 1), ("recpf", 1)]
    assert rows_of(replace(bench, images=1), cells) == first
    assert len(calls) == 2
    both = rows_of(bench, cells)
    assert calls[2:] == [("zero-filled", 1), ("recpf", 1)]  # the new image alone
    assert [row["count"] for row in both] == [2, 2]
    assert rows_of(bench, cells) == both
    assert rows_of(replace(bench, images=1), cells) == first
    assert len(calls) == 4


def test_another_image_of_the_same_name_is_computed_anew(
    bench: Comparison, cells: Cells, calls: list[tuple[str, int]]
) -> None:
    before = rows_of(bench, cells)
    calls.clear()
    save_picture(bench.data / "brain50" / "1.png", 1 - phantom(48, 40, 1)[0, 0])
    after = rows_of(bench, cells)
    assert calls == [("zero-filled", 1), ("recpf", 1)]
    assert after[0]["psnr"] != before[0]["psnr"]


def test_other_constants_and_sizes_are_computed_anew(
    bench: Comparison, cells: Cells, calls: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shipped(tv: float) -> None:
        own = {"acceleration": 4, "sigma": 10, "constants": {"tv": tv, "wavelet": 0.0}}
        (tmp_path / "recpf.json").write_text(json.dumps({"settings": {"x4 sigma=10": own}}))

    monkeypatch.setattr("pnpilot.baselines._searched.parameters_file", lambda name: tmp_path / f"{name}.json")
    shipped(0.02)
    bench.methods = made(*CHEAP)
    before = rows_of(bench, cells)
    calls.clear()
    shipped(0.002)
    bench.methods = made(*CHEAP)
    after = rows_of(bench, cells)
    assert calls == [("recpf", 2)]
    assert after[0] == before[0]
    assert after[1]["psnr"] < before[1]["psnr"]
    calls.clear()
    rows_of(replace(bench, size=(32, 32)), cells)
    assert calls == [("zero-filled", 2), ("recpf", 2)]
    calls.clear()
    assert rows_of(bench, cells) == after  # the other size has its own cells
    assert not calls


def test_runs_that_share_a_cell_keep_what_both_found(cells: Cells) -> None:
    cell = Cell("brain50", "x4 sigma=10", "tv")
    first, second, third = ({"psnr": n, "ssim": 0.5, "iterations": 1, "seconds": 0.1} for n in range(3))
    cells.write(cell, "this", {"0": first})
    cells.write(cell, "this", {"1": second})
    assert cells.read(cell, "this") == {"0": first, "1": second}
    cells.write(cell, "that", {"1": third})
    assert cells.read(cell, "that") == {"1": third}


@pytest.mark.parametrize("images", [3, None, [], {"0": {"psnr": "x"}, "1": []}])
def test_damaged_scores_are_computed_again(
    images: Any, bench: Comparison, cells: Cells, calls: list[tuple[str, int]]
) -> None:
    bench.methods = made("zero-filled")
    rows = rows_of(bench, cells)
    (file,) = cells.folder.glob("*.json")
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "images": images}))
    assert [row["psnr"] for row in rows_of(bench, cells)] == [row["psnr"] for row in rows]
    assert calls == [("zero-filled", 2)] * 2


def test_an_operator_that_has_changed_under_its_name_is_measured_again(bench: Comparison, cells: Cells) -> None:
    bench.methods = made("zero-filled")
    sparse, dense = (CSMRI.setting(factor, 10) for factor in (8, 2))
    bench.settings = [replace(sparse, label="plain")]
    (first,) = rows_of(bench, cells)
    bench.settings = [replace(dense, label="plain")]
    (second,) = rows_of(bench, cells)
    assert second["psnr"] > first["psnr"] + 2
    (alone,) = rows_of(bench, Cells(cells.folder / "fresh"))
    assert second["psnr"] == alone["psnr"]


def test_the_papers_numbers_stand_beside_whole_sets_of_its_size(bench: Comparison, cells: Cells) -> None:
    bench.methods = made("recpf")
    cases = [(bench, None), (replace(bench, size=(128, 128)), 30.21), (replace(bench, size=(128, 128), images=1), None)]
    for own, paper in cases:
        assert [row["paper"] for row in rows_of(own, cells)] == [paper]


def test_images_of_one_name_in_two_folders_are_told_apart(
    bench: Comparison, cells: Cells, calls: list[tuple[str, int]]
) -> None:
    folder = bench.data / "brain50" / "more"
    folder.mkdir()
    save_picture(folder / "1.png", 1 - phantom(48, 40, 1)[0, 0])
    bench.methods = made("zero-filled")
    (first,) = rows_of(bench, cells)
    assert rows_of(bench, cells) == [first]
    assert calls == [("zero-filled", 3)]
    cell = Cell("brain50", "x4 sigma=10", "zero-filled", size=(48, 40))
    content = json.loads((cells.folder / cell.file).read_text())
    assert list(content["images"]) == ["0", "1", "1 (2)"]
    assert len({image["psnr"] for image in content["images"].values()}) == 3


@pytest.mark.parametrize("content", [b'{"made_with": {', b"\xff\xfe\x00", b"[]", b"{}", b"null", b"", b"[" * 100_000])
def test_a_broken_cell_is_computed_anew(
    content: bytes, bench: Comparison, cells: Cells, calls: list[tuple[str, int]]
) -> None:
    before = rows_of(bench, cells)
    calls.clear()
    (cells.folder / Cell("brain50", "x4 sigma=10", "zero-filled", size=(48, 40)).file).write_bytes(content)
    after = rows_of(bench, cells)
    assert calls == [("zero-filled", 2)]
    assert after[0]["psnr"] == before[0]["psnr"]


def test_a_stopped_run_keeps_the_batches_that_are_done(
    bench: Comparison, cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = Comparison.reconstruct
    done: list[str] = []

    def stopping(plan: Comparison, cells: Any, cell: Cell, method: Method, *others: Any) -> Any:
        if len(done) == 1:
            done.append("stop")
            raise KeyboardInterrupt
        done.append(method.name)
        return real(plan, cells, cell, method, *others)

    monkeypatch.setattr(Comparison, "reconstruct", stopping)
    bench.batch = 1
    with pytest.raises(KeyboardInterrupt):
        rows_of(bench, cells)
    rows_of(bench, cells)
    assert done == ["zero-filled", "stop", "zero-filled", "recpf", "recpf"]


def test_cells_have_names_that_are_files() -> None:
    names = {
        Cell("brain50", "cartesian x4 sigma=15", "ista-net+", 2).file,
        Cell("brain50", "x4 sigma=15", "ista-net+", 2).file,
    }
    signs = {Cell("a", f"kept{sign}0.9", "tv").stem for sign in "<>:/"}
    assert len(signs) == 4
    assert all(set("<>:/").isdisjoint(name) for name in signs)
    assert names == {
        "brain50_128x128_cartesian_x4_sigma=15_ista-net+_seed=2.json",
        "brain50_128x128_x4_sigma=15_ista-net+_seed=2.json",
    }


# Pictures.


def test_examples_are_drawn(bench: Comparison, cells: Cells, tmp_path: Path) -> None:
    heard: list[str] = []
    bench.datasets, bench.settings = ["brain50", "medical4"], [SETTING, CSMRI.setting(8, 10), CSMRI.setting(8, 15)]
    found = examples(bench, cells, heard.append)
    assert len(heard) == 4
    brightest = max(range(2), key=lambda index: phantom(48, 40, 2)[index].mean())
    assert found[0].title == f"{brightest}\nx8 sigma=10"
    assert list(found[0].images) == CHEAP
    assert all(image.shape == found[0].truth.shape == (1, 48, 40) for image in found[0].images.values())
    assert found[0].truth[..., found[0].crop[0], found[0].crop[1]].shape == (1, 24, 20)
    assert all(caption.endswith(" dB") for caption in found[0].captions.values())
    colourful = {"recpf": found[1].truth.expand(3, -1, -1)}
    compare_crops(
        tmp_path / "picture.png",
        [found[0], found[1]._replace(images=colourful, truth=found[1].truth.expand(3, -1, -1))],
    )
    with Image.open(tmp_path / "picture.png") as picture:
        assert min(picture.size) > 300
        assert np.asarray(picture.convert("L")).std() > 10


def test_pictures_reuse_what_was_measured(bench: Comparison, cells: Cells, calls: list[tuple[str, int]]) -> None:
    rows_of(bench, cells)
    calls.clear()
    (first,) = examples(bench, cells)
    assert not calls
    index = first.title.split("\n")[0]
    content = json.loads((cells.folder / "brain50_48x40_x4_sigma=10_recpf_seed=0.json").read_text())
    assert first.captions["recpf"] == f"{content['images'][index]['psnr']:.2f} dB"
    (lost,) = cells.folder.glob("*recpf*.npy")
    kept = lost.read_bytes()
    for damage in (None, b"no picture", b""):
        lost.unlink() if damage is None else lost.write_bytes(damage)
        calls.clear()
        (again,) = examples(bench, cells)
        assert calls == [("recpf", 1)]  # what is missing alone, and it is kept for the next time
        assert torch.allclose(again.images["recpf"], first.images["recpf"], atol=1e-5)
        assert len(lost.read_bytes()) == len(kept)
        calls.clear()
        examples(bench, cells)
        assert not calls


def test_a_picture_of_another_image_is_not_shown(bench: Comparison, cells: Cells, calls: list[tuple[str, int]]) -> None:
    rows_of(bench, cells)
    for index in range(2):
        save_picture(bench.data / "brain50" / f"{index}.png", phantom(48, 40, 2)[1 - index, 0].flip(0))
    calls.clear()
    (example,) = examples(bench, cells)
    assert calls == [("zero-filled", 1), ("recpf", 1)]
    assert float(example.captions["recpf"].split()[0]) > 20


# The command line.


def test_the_command_writes_table_numbers_picture_and_cells(
    data: Path, tmp_path: Path, say: Callable[..., Said], calls: list[tuple[str, int]]
) -> None:
    out = tmp_path / "out"
    options = ["--images", "1", "--methods", "zero-filled,recpf", "--setting", "x4 sigma=10", "--size", "48x40"]
    said = say("bench", "compare", "--task", "csmri", "--data", data, "--out", out, *options)
    assert said.code == 0, said.err
    assert {path.name for path in out.iterdir()} == {"csmri.md", "csmri.json", "csmri.png", "cells"}
    assert len(list((out / "cells").glob("*.json"))) == 4
    content = json.loads((out / "csmri.json").read_text())
    assert content["command"].startswith("pnpilot bench compare --task csmri --data ")
    assert (content["seed"], content["seeds"], content["draws"]) == (0, 1, None)
    assert len(content["images"]) == len(calls) == 4  # none was made again for the picture
    assert [(entry["dataset"], entry["method"]) for entry in content["rows"]] == [
        (dataset, method) for dataset in ("brain50", "medical4") for method in CHEAP
    ]
    report = (out / "csmri.md").read_text()
    assert f"`{content['command']}`" in report
    assert f"{content['rows'][1]['psnr']:.2f}" in report
    assert f"{content['rows'][1]['psnr']:.2f}" in said.out
    assert said.out.splitlines()[-1].startswith("written: ")
    with Image.open(out / "csmri.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10


def test_the_command_goes_on_from_what_is_there(
    data: Path, tmp_path: Path, say: Callable[..., Said], calls: list[tuple[str, int]]
) -> None:
    options = [
        "bench",
        "compare",
        "--task",
        "csmri",
        "--data",
        data,
        "--out",
        tmp_path / "out",
        "--size",
        "32",
        "--no-figure",
    ]
    options += ["--setting", "x2 sigma=5", "--dataset", "brain50"]
    assert say(*options, "--method", "zero-filled").code == 0
    said = say(*options, "--method", "zero-filled", "--method", "recpf", "--batch", "1")
    assert said.code == 0, said.err
    assert calls == [("zero-filled", 2), ("recpf", 1), ("recpf", 1)]
    assert not (tmp_path / "out" / "csmri.png").exists()


def test_methods_that_cannot_run_are_left_out_aloud(
    data: Path, tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pnpilot.baselines.base.find_spec", lambda _: None)

    def pretended(bench: Comparison, results: Results, *_: Any) -> None:
        results.rows.extend(row(name, 30.0) for name in names_of(bench.methods))

    monkeypatch.setattr(Comparison, "run", pretended)
    said = say("bench", "compare", "--task", "csmri", "--data", data, "--out", tmp_path / "out", "--no-figure")
    assert said.code == 0, said.err
    assert "left out: recpf needs pywt: pip install 'pnpilot[baselines]'" in said.err
    assert "left out: bm3d-mri needs bm3d: " in said.err
    assert "recpf" not in said.out
    assert "learned" in said.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "zero-filled,magic"], "unknown method 'magic'; known: zero-filled, "),
        (["--setting", "x99"], "unknown setting 'x99'"),
        (["--dataset", "brain99"], "no test set 'brain99'"),
        (["--size", "big"], "a size is a number from 16 on"),
        (["--methods", "zero-filled", "--out", "/proc/no"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    options: list[str], message: str, data: Path, tmp_path: Path, say: Callable[..., Said]
) -> None:
    said = say("bench", "compare", "--task", "csmri", "--data", data, "--out", tmp_path / "out", *options)
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.strip().splitlines()
    assert line.startswith("pnpilot: ")
    assert message in line


def test_baselines_are_listed_with_their_references(say: Callable[..., Said]) -> None:
    said = say("list", "baselines")
    assert said.code == 0
    for name in BASELINES:
        (line,) = [line for line in said.out.splitlines() if line.split()[0] == name]
        assert BASELINES.summary(name) in line
        assert BASELINES[name].reference in line
    assert "pip install" not in said.out
    assert "admm-net" not in say("list", "solvers").out


def test_unknown_kinds_are_not_listed(say: Callable[..., Said]) -> None:
    said = say("list", "nonsense")
    assert said == (
        2,
        "",
        "pnpilot: unknown kind 'nonsense'; known: problems, tasks, solvers, denoisers, policies, baselines, "
        "readers, writers, oracles\n",
    )
