"""`pnpilot reconstruct` through its entry point: what it prints, how it ends, and what a kill leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pnpilot.recon.stream import Finished
from tests.cli import COMMAND, PLAIN, Said, run_process, wait_for
from tests.scans import saved, slices

Say = Callable[..., Said]
ROOT = Path(__file__).parent.parent


def test_a_scan_goes_in_and_an_image_comes_out(say: Say, tmp_path: Path) -> None:
    file = saved(tmp_path / "scan.npy", slices(1, coils=4)[0])
    said = say("reconstruct", file, "--out", tmp_path / "out", "--device", "cpu")
    assert said.code == 0
    assert "took axis 0 for 4 coils, axis 1 for y, 40 samples, axis 2 for x, 32 samples" in said.err
    assert "50 % of k-space measured" in said.err
    assert said.out.startswith("written: ")
    assert np.load(tmp_path / "out/scan.npy").shape == (40, 32)
    report = json.loads((tmp_path / "out/scan.json").read_text())
    assert report["command"] == f"pnpilot reconstruct {file} --out {tmp_path / 'out'} --device cpu"
    assert (tmp_path / "out/scan.html").stat().st_size > 10_000
    again = say("reconstruct", file, "--out", tmp_path / "out", "--device", "cpu")
    assert (again.code, again.out) == (0, "")
    assert "done before" in again.err


def test_every_step_can_be_switched(say: Say, tmp_path: Path) -> None:
    file = saved(tmp_path / "scan.npz", slices(1, coils=20))
    said = say("reconstruct", file, "--out", tmp_path / "out", "--without", "compression", "--always", "whitening")
    assert said.code == 0
    assert "switched off" in said.err
    assert "whitened" in said.err
    assert say("reconstruct", file, "--without", "magic").err.startswith("pnpilot: unknown step 'magic'; known: ")


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--axes", "slice,coil"], "--axes names 2"),
        (["--axes", "slice,coil,a,b"], "--axes must name an axis 'y'"),
        (["--axes", "a,b,c,y,x"], "--axes names 5"),
        (["--axes", "3"], "--axes takes names as in slice,coil,y,x"),
        (["--format", "gif"], "unknown writer 'gif'"),
        (["--maps", "nothing.npy"], "nothing.npy: there is no such file"),
        (["--mask", "MASK"], "does not fit"),
        (["--key", "nothing"], "nothing"),
        (["--device", "cuda:9"], "the device 'cuda:9' cannot be used"),
        (["--batch", "0"], "'--batch'"),
        (["--simulate", "radial x4"], "this file holds a measurement"),
    ],
)
def test_bad_orders_end_in_one_line(say: Say, tmp_path: Path, arguments: list[str], refusal: str) -> None:
    file = saved(tmp_path / "scan.npz", slices(2, coils=2))
    np.save(tmp_path / "mask.npy", np.ones((7, 9)))
    given = [str(tmp_path / "mask.npy") if word == "MASK" else word for word in arguments]
    said = say("reconstruct", file, "--out", tmp_path / "out", *given)
    assert said.code == 2
    assert refusal in said.err.splitlines()[-1]
    assert "Traceback" not in said.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_one_bad_file_ends_in_two_and_one_of_many_in_one(say: Say, tmp_path: Path) -> None:
    bad = tmp_path / "bad.npy"
    bad.write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr'")
    good = saved(tmp_path / "good.npz", slices(1))
    alone = say("reconstruct", bad, "--out", tmp_path / "out")
    assert alone.code == 2
    assert alone.err.splitlines()[-1].startswith(f"pnpilot: {bad}")
    many = say("reconstruct", bad, good, "--out", tmp_path / "out")
    assert many.code == 1
    assert f"skipped: {bad}" in many.err
    assert "1 of 2 files reconstructed, 1 failed" in many.err.splitlines()[-1]
    assert (tmp_path / "out/good.npy").exists()


WRITER = '''
from pnpilot.io.writers import WRITERS, Writer

@WRITERS.register("means")
class Means(Writer):
    """The mean of every image, one per line."""
    suffix, holds = ".means", "means"
    def write(self, folder, name, volume):
        path = folder / f"{name}.means"
        path.write_text("".join(f"{abs(image).mean()}\\n" for image in volume))
        return [path]
'''


def test_a_format_of_ones_own_is_one_file(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of docs/adding.md, and a writer, from outside the package."""
    from pnpilot.io.readers import READERS
    from pnpilot.io.writers import WRITERS

    for registry in (READERS, WRITERS):
        monkeypatch.setattr(registry, "_entries", {name: registry[name] for name in registry})
    monkeypatch.setenv("PNPILOT_WITH", "")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/adding.md").read_text(), re.DOTALL)
    (reader,) = [block for block in blocks if "READERS" in block]
    reader = reader.replace("from ..raw", "from pnpilot.io.raw").replace("from .base", "from pnpilot.io.readers.base")
    (tmp_path / "own_formats.py").write_text(reader.replace("256", "48") + WRITER)
    kspace = slices(1, height=48, width=48, noise=0.01)[0, 0]
    pairs = np.stack([kspace.real, kspace.imag], -1)
    (tmp_path / "scan.iq").write_bytes((3e4 * pairs / np.abs(pairs).max()).astype("<i2").tobytes())
    given = ("--with", tmp_path / "own_formats.py", "--out", tmp_path / "out")
    said = say("reconstruct", tmp_path / "scan.iq", *given, "--format", "means,npy")
    assert said.code == 0, said.err
    assert np.load(tmp_path / "out/scan.npy").squeeze().shape == (48, 48)
    assert float((tmp_path / "out/scan.means").read_text()) > 0
    assert "rawiq" in say("list", "readers").out


def test_help_fits_a_screen(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "slice,coil,y,x" in run_process("reconstruct", "--help").stdout
    with monkeypatch.context() as context:
        context.setitem(PLAIN, "COLUMNS", "80")
        assert len(run_process("reconstruct", "--help").stdout.splitlines()) <= 38


def test_ctrl_c_is_one_line_and_keeps_what_is_finished(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pnpilot.recon.journal import Journal

    file, keep = saved(tmp_path / "scan.npz", slices(4)), Journal.keep

    def interrupted(journal: Journal, finished: Finished) -> None:
        keep(journal, finished)
        if len(journal.done) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(Journal, "keep", interrupted)
        said = say("reconstruct", file, "--out", tmp_path / "out", "--batch", "1")
    assert said.code == 128 + signal.SIGINT
    assert said.err.splitlines()[-1] == "pnpilot: stopped; the same command goes on from here"
    assert "4 images, 3 there from before" in say("reconstruct", file, "--out", tmp_path / "out").err


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_nothing_finished_is_lost(say: Say, tmp_path: Path, end: signal.Signals) -> None:
    file = saved(tmp_path / "scan.npz", slices(12))
    command = ["reconstruct", str(file), "--out", str(tmp_path / "out"), "--batch", "2"]
    process = subprocess.Popen(
        [*COMMAND, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **PLAIN}
    )
    unfinished = tmp_path / "out/.scan.unfinished"
    wait_for(unfinished / "00000001.npz", process)
    process.send_signal(end)
    _, said = process.communicate()
    if process.returncode == 0:
        pytest.skip("it was finished before the signal came")
    assert process.returncode == (-9 if end == signal.SIGKILL else 128 + end)
    if end != signal.SIGKILL:
        assert "stopped; the same command goes on from here" in said
        assert "Traceback" not in said
    kept = {path.name: path.read_bytes() for path in unfinished.glob("*.npz")}
    assert [path.name for path in (tmp_path / "out").iterdir()] == [unfinished.name]
    done = say(*command)
    assert done.code == 0, done.err
    assert f"12 images, {len(kept)} there from before" in done.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["scan.html", "scan.json", "scan.npy"]
    found = np.load(tmp_path / "out/scan.npy")
    assert found.shape == (12, 40, 32)
    assert np.abs(found).reshape(12, -1).any(1).all()
