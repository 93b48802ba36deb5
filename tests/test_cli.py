"""The command line, through its real entry point."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pnpilot import __version__
from pnpilot.benchmark import oracles
from pnpilot.denoisers import DENOISERS
from pnpilot.weights import save_weights, weights_folder
from tests.cli import COMMAND, run, run_process


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Test sets of two small pictures each, in the layout the benchmarks expect."""
    from skimage import data as pictures

    root = tmp_path_factory.mktemp("data")
    for name in ("set12", "bsd68", "brain50", "medical4", "phase12"):
        folder = root / "test" / name
        folder.mkdir(parents=True)
        for index, picture in enumerate((pictures.camera(), pictures.coins())):
            Image.fromarray(np.ascontiguousarray(picture[::4, ::4])).save(folder / f"{index}.png")
    return root


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; sys.argv = ['pnpilot', '--help']; from pnpilot.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'deepinv', 'matplotlib', 'numpy', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for command in ("demo", "bench", "train", "list"):
        assert command in done.stdout
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_it_is_a_program() -> None:
    done = run_process("bench", "policies", "--data", "/no/such/folder")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pnpilot: no test set 'brain50' in /no/such/folder")
    assert len(done.stderr.splitlines()) == 1
    assert run_process("--version").stdout.strip() == __version__


def test_list_shows_every_room() -> None:
    result = run("list")
    assert result.returncode == 0
    for name in ("csmri", "phase", "inexact-admm", "compact", "fixed-optimal", "masked-fourier", "zero-filled"):
        assert name in result.stdout


def test_bench_denoisers(data: Path, tmp_path: Path) -> None:
    result = run("bench", "denoisers", "--data", data, "--images", "1", "--no-pnp", "--json", tmp_path / "d.json")
    assert result.returncode == 0, result.stderr
    assert "left out, as their weights do not ship: memnet;" in result.stderr
    assert "pnpilot train denoiser NAME" in result.stderr
    content = json.loads((tmp_path / "d.json").read_text())
    assert {"command", "seed", "versions", "rows", "images"} <= set(content)
    assert content["command"].startswith("pnpilot bench denoisers")
    assert [(row["method"], row["dataset"], row["setting"]) for row in content["rows"]] == [
        (name, dataset, f"sigma={level}")
        for name in ("compact", "dncnn", "unet")
        for dataset in ("set12", "bsd68")
        for level in (15, 25, 50)
    ]
    scores = [row["psnr"] for row in content["rows"][:3]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 27
    assert len(content["images"]) == 18
    assert all(row["milliseconds"] > 0 for row in content["rows"])


def test_bench_denoisers_plugs_them_in(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a search of four points instead of a hundred."""
    monkeypatch.setattr(oracles, "COARSE", 2)
    monkeypatch.setattr(oracles, "REFINEMENTS", 0)
    options = ["--data", str(data), "--images", "1", "--dataset", "set12", "--json", str(tmp_path / "d.json")]
    result = run("bench", "denoisers", "--method", "compact", *options)
    assert result.returncode == 0, result.stderr
    content = json.loads((tmp_path / "d.json").read_text())
    row = content["rows"][-1]
    assert (row["dataset"], row["setting"], row["method"]) == ("medical4", "x8 sigma=15", "compact")
    assert row["psnr"] > 15
    assert {"sigma", "mu"} <= set(content["images"][-1])
    assert f"{row['psnr']:.2f}" in result.stdout.splitlines()[-1]


def test_bench_denoisers_takes_a_folder_of_weights_for_each(data: Path, tmp_path: Path) -> None:
    for name, folder in (("compact", "first=one"), ("dncnn", "second")):
        (tmp_path / folder).mkdir()
        save_weights(DENOISERS[name](), name, tmp_path / folder, {"name": name})
    options = [
        "--data",
        str(data),
        "--dataset",
        "set12",
        "--no-pnp",
        "--json",
        str(tmp_path / "d.json"),
    ]
    both = [f"--weights=dncnn={tmp_path / 'second'}", f"--weights=compact={tmp_path / 'first=one'}"]
    result = run("bench", "denoisers", *options, *both)
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "d.json").read_text())["rows"]
    assert [row["method"] for row in rows] == [name for name in ("compact", "dncnn", "unet") for _ in range(3)]
    # Only the last has its shipped weights.
    assert max(rows[0]["psnr"], rows[3]["psnr"]) < 27 < rows[6]["psnr"]
    assert (rows[5]["paper"], rows[5]["paper_milliseconds"]) == (27.18, 8.09)
    assert "27.18" in result.stdout
    result = run("bench", "denoisers", *options, "--method", "compact", "--weights", tmp_path / "first=one")
    assert result.returncode == 0, result.stderr
    assert "left out" not in result.stderr


def test_bench_denoisers_says_how_to_do_without_the_set_for_plugging_in(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data / "test" / "set12", tmp_path / "set12")
    result = run("bench", "denoisers", "--data", tmp_path, "--dataset", "set12")
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("pnpilot: no test set 'medical4'")
    assert line.endswith("--no-pnp does without it")


def test_bench_policies(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    names = ("zero-filled", "tv", "fixed", "fixed*", "schedule")
    methods = [word for name in names for word in ("--method", name)]
    result = run(
        "bench",
        "policies",
        "--data",
        data,
        "--dataset",
        "medical4",
        "--setting",
        "x4 sigma=15",
        "--json",
        file,
        *methods,
    )
    assert result.returncode == 0, result.stderr
    content = json.loads(file.read_text())
    rows = {row["method"]: row for row in content["rows"]}
    assert {row["setting"] for row in rows.values()} == {"x4 sigma=15"}
    assert rows["fixed"]["iterations"] == 30
    assert rows["fixed*"]["iterations"] < 30
    assert rows["fixed*"]["psnr"] >= rows["fixed"]["psnr"]
    assert rows["schedule"]["psnr"] > rows["tv"]["psnr"] > rows["zero-filled"]["psnr"]
    assert rows["tv"]["iterations"] == 50
    images = [image for image in content["images"] if image["method"] == "schedule"]
    assert len(images) == 2
    assert rows["schedule"]["psnr"] == pytest.approx(sum(image["psnr"] for image in images) / 2, abs=1e-3)


def test_bench_policies_of_another_task(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    words = ["--task", "phase", "--dataset", "set12", "--setting", "alpha=27", "--method", "schedule", "--images", "1"]
    result = run("bench", "policies", "--data", data, "--json", file, *words)
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(file.read_text())["rows"]
    assert row["setting"] == "alpha=27"
    assert row["psnr"] > 25


def test_bench_learned_policies_over_seeds(data: Path, tmp_path: Path) -> None:
    options = ["--method", "learned", "--setting", "cartesian x3 sigma=7", "--seeds", "2", "--size", "60x52"]
    options += ["--dataset", "brain50", "--estimate-noise", "--json", str(tmp_path / "p.json")]
    result = run("bench", "policies", "--data", data, *options)
    assert result.returncode == 0, result.stderr
    content = json.loads((tmp_path / "p.json").read_text())
    (row,) = content["rows"]
    assert (row["method"], row["setting"]) == ("learned", "cartesian x3 sigma=7")
    assert 5 <= row["iterations"] <= 30
    scores = {seed: [i["psnr"] for i in content["images"] if i["seed"] == seed] for seed in (0, 1)}
    means = [sum(values) / len(values) for values in scores.values()]
    assert row["spread"]["seeds"] == pytest.approx(abs(means[0] - means[1]), abs=1e-3)
    assert row["spread"]["seeds"] > 0


def test_bench_phase_stands_beside_the_papers_numbers(data: Path, tmp_path: Path) -> None:
    options = ["--seeds", "1", "--setting", "alpha=27", "--methods", "hio-free,learned", "--out", str(tmp_path / "out")]
    result = run("bench", "compare", "--task", "phase", "--data", data, *options, "--no-figure")
    assert result.returncode == 0, result.stderr
    rows = {row["method"]: row for row in json.loads((tmp_path / "out" / "phase.json").read_text())["rows"]}
    assert list(rows) == ["hio-free", "learned"]
    assert (rows["learned"]["paper"], rows["hio-free"]["paper"]) == (33.9, 25.76)
    assert rows["learned"]["psnr"] > rows["hio-free"]["psnr"] + 5
    assert "33.90" in result.stdout
    report = (tmp_path / "out" / "phase.md").read_text()
    assert "| hio-free † | learned † |" in report
    assert "the same twelve images" in report


def test_bench_speed(data: Path, tmp_path: Path) -> None:
    options = ["--count", "4", "--batch", "2", "--size", "32", "--json", str(tmp_path / "s.json")]
    result = run("bench", "speed", "--data", data, *options)
    assert result.returncode == 0, result.stderr
    numbers = json.loads((tmp_path / "s.json").read_text())
    assert numbers["images_per_second"] > 0
    assert numbers["one_by_one_images_per_second"] > 0
    assert 0 < numbers["share_of_peak"] < 1
    assert numbers["psnr_difference_largest"] < 0.02


def test_bench_speed_refuses_the_policy_of_another_task(data: Path, tmp_path: Path) -> None:
    for file in weights_folder().glob("learned-phase-*"):
        shutil.copy(file, tmp_path)
    result = run("bench", "speed", "--data", data, "--policy", tmp_path)
    assert result.returncode == 2
    assert "was trained for task 'phase', not for 'csmri'" in result.stderr


def test_bench_strength_draws_a_picture(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.benchmark.strength.POINTS", 3)
    monkeypatch.setattr("pnpilot.benchmark.strength.CLOSER", 1)
    result = run("bench", "strength", "--data", data, "--images", "1", "--out", tmp_path / "strength.png")
    assert result.returncode == 0, result.stderr
    with Image.open(tmp_path / "strength.png") as picture:
        assert np.asarray(picture.convert("L")).std() > 10


def test_ctrl_c_keeps_finished_rows(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    command = [*COMMAND, "bench", "policies", "--data", str(data), "--dataset", "medical4", "--json", str(file)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
    )
    try:
        while not file.exists() and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 130
    assert "pnpilot: stopped; finished rows are kept" in errors
    assert "Traceback" not in errors
    assert json.loads(file.read_text())["rows"][0]["method"] == "zero-filled"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "policies", "--data", "/no/such/folder"], "no test set 'brain50' in /no/such/folder"),
        (["bench", "policies", "--data", "DATA", "--solver", "adm"], "did you mean 'admm'?"),
        (
            ["bench", "policies", "--data", "DATA", "--task", "phase", "--dataset", "set12", "--solver", "amp"],
            "the solver 'amp' needs linear",
        ),
        (["bench", "policies", "--data", "DATA", "--denoiser", "nothing"], "unknown denoiser 'nothing'"),
        (["bench", "policies", "--data", "DATA", "--method", "magic"], "unknown method 'magic'"),
        (["bench", "policies", "--data", "DATA", "--method", "model-free"], "no policy 'model-free' ships for this"),
        (
            ["bench", "policies", "--data", "DATA", "--task", "phase", "--dataset", "set12", "--method", "learned"],
            "add --solver inexact-admm, for which one does",
        ),
        (["bench", "policies", "--data", "DATA", "--setting", "x99"], "unknown setting 'x99'"),
        (
            [
                "bench",
                "compare",
                "--task",
                "csmri",
                "--data",
                "DATA",
                "--setting",
                "x4 sigma=5",
                "--setting",
                "foo x4 sigma=5",
            ],
            "mask 'foo'",
        ),
        (
            ["bench", "compare", "--task", "csmri", "--data", "DATA", "--setting", "x0.5 sigma=5"],
            "acceleration must be at least 1",
        ),
        (["bench", "policies", "--data", "DATA", "--solver", "amp", "--device", "abacus"], "device 'abacus'"),
        (["bench", "denoisers", "--data", "DATA", "--dataset", "set99"], "no test set 'set99'"),
        (["bench", "denoisers", "--data", "DATA", "--json", "/proc/no/file.json"], "cannot write to the folder"),
        (["bench", "denoisers", "--data", "DATA", "--json", "DATA"], "is a folder; results go to a file"),
        (["bench", "denoisers", "--data", "DATA", "--method", "memnet"], "no weights ship for the denoiser 'memnet'"),
        (["bench", "denoisers", "--data", "DATA", "--weights", "net=/no"], "--weights net=/no: unknown denoiser 'net'"),
        (["bench", "denoisers", "--data", "DATA", "--weights", "unet="], "expected FOLDER or NAME=FOLDER"),
        (["bench", "denoisers", "--data", "DATA", "--weights", "/no"], "say of which denoiser, as NAME=/no"),
        (
            ["bench", "denoisers", "--data", "DATA", "--weights", "/no", "--method", "compact"],
            "/no/compact.json is not a readable",
        ),
        (
            ["bench", "denoisers", "--data", "DATA", "--weights", "unet=/no", "--weights", "unet=/nor"],
            "a folder for 'unet' already",
        ),
        (
            ["bench", "denoisers", "--data", "DATA", "--weights", "unet=/no", "--method", "compact"],
            "'unet' is not among the methods",
        ),
        (
            ["bench", "denoisers", "--data", "DATA", "--weights", "/no", "--method", "compact", "--method", "unet"],
            "say of which denoiser, as NAME=/no",
        ),
        (["bench", "policies", "--data", "DATA", "--task", "weather"], "unknown task 'weather'"),
        (["bench", "policies", "--data", "DATA", "--device", "meta"], "device 'meta' cannot be used"),
        (["train", "denoiser", "compact", "--data", "DATA", "--out", "OUT", "--test", "/no"], "/no has no subfolders"),
        (["train", "denoiser", "nothing", "--data", "DATA", "--out", "OUT"], "unknown denoiser 'nothing'"),
        (["train", "denoiser", "compact", "--data", "/no/such/folder", "--out", "OUT"], "no folder /no/such/folder"),
        (["train", "denoiser", "deepinv", "--data", "DATA", "--out", "OUT"], "the deepinv adapter wraps a model"),
        (["demo", "--out", "/proc/nothing"], "cannot write to the folder"),
        (["bench", "policies", "--data", "DATA", "--size", "12,5"], "a size is a number from 16 on"),
        (["bench", "policies", "--data", "DATA", "--setting", "x1.2.3 sigma=5"], "unknown setting 'x1.2.3 sigma=5'"),
        (["bench", "speed", "--data", "DATA", "--json", "DATA"], "is a folder; results go to a file"),
        (["bench", "strength", "--data", "DATA", "--out", "DATA"], "is a folder; results go to a file"),
        (["train", "policy", "--task", "csmri", "--data", "DATA", "--out", "OUT", "--width", "12"], "a multiple of 8"),
        (["train", "policy", "--task", "csmri", "--data", "DATA", "--out", "OUT", "--width", "264"], "from 1 to 256"),
        (["train", "policy", "--task", "csmri", "--data", "DATA", "--out", "OUT", "--decisions", "201"], "1 to 1000"),
        (["list", "--with"], "--with needs a Python file or module"),
        (["bench", "policies", "--data", "DATA", "--policy", "DATA"], "holds 0 policies"),
        (["bench", "speed", "--data", "DATA", "--task", "deblur"], "no policy for 'deblur' ships"),
        (["bench", "speed", "--data", "DATA", "--policy", "DATA"], "holds 0 policies"),
        (["train", "policy", "--task", "csmri", "--data", "/no/such/folder", "--out", "OUT"], "no folder /no/such"),
        (["train", "policy", "--task", "weather", "--data", "DATA", "--out", "OUT"], "unknown task 'weather'"),
        (["train", "policy", "--task", "phase", "--solver", "amp", "--data", "DATA", "--out", "OUT"], "needs linear"),
        (
            ["train", "policy", "--task", "csmri", "--method", "luck", "--data", "DATA", "--out", "OUT"],
            "unknown method",
        ),
        (["train", "policy", "--task", "csmri", "--data", "DATA", "--out", "/proc/no"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], message: str, data: Path, tmp_path: Path) -> None:
    result = run(*(a.replace("DATA", str(data)).replace("OUT", str(tmp_path / "out")) for a in arguments))
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("pnpilot: ")
    assert message in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "policies"], "--data"),
        (["nonsense"], "nonsense"),
        (["train", "denoiser", "compact", "--data", "x", "--minutes", "-1"], "--minutes"),
    ],
)
def test_wrong_options_are_one_line_and_exit_code_2_too(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("pnpilot: ")
    assert message in line


def test_nothing_to_do_shows_the_help() -> None:
    result = run("bench")
    assert "denoisers" in result.stdout
    assert result.stderr == ""


def test_an_unreadable_image_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "set12"
    folder.mkdir()
    (folder / "broken.png").write_bytes(b"not a picture")
    result = run("bench", "denoisers", "--data", tmp_path, "--dataset", "set12")
    assert result.returncode == 2
    assert "broken.png is not a readable image" in result.stderr


def test_an_unreadable_image_stops_a_table_before_it_begins(data: Path, tmp_path: Path) -> None:
    for name in ("set12", "bsd68"):
        shutil.copytree(data / "test" / name, tmp_path / name)
    (tmp_path / "bsd68" / "broken.png").write_bytes(b"not a picture")
    result = run("bench", "denoisers", "--data", tmp_path, "--json", tmp_path / "d.json")
    assert result.returncode == 2
    assert result.stdout == ""
    assert not (tmp_path / "d.json").exists()


def test_a_picture_does_not_replace_something_else(data: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    result = run("bench", "strength", "--data", data, "--out", tmp_path / "thesis.tex")
    assert result.returncode == 2
    assert "thesis.tex holds something else than a picture" in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("command", ["policies", "denoisers", "speed"])
def test_a_file_that_holds_something_else_is_not_overwritten(command: str, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "thesis.txt"
    file.write_text("years of work")
    result = run("bench", command, "--data", data, "--json", file)
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()[-1:]
    assert "thesis.txt holds something else than results of pnpilot" in line
    assert file.read_text() == "years of work"
