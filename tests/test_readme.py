"""What the README, the docs and the examples say works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch

from pnpilot.denoisers.base import Denoiser
from pnpilot.registry import Registry
from pnpilot.solvers import SOLVERS
from pnpilot.tasks import TASKS, Task
from tests.cli import run
from tests.conftest import block_pictures

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ADDING = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adding.md").read_text(), re.DOTALL)


def test_it_fits() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), target


def test_the_first_lines_run_and_print_what_they_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(BLOCKS[0], names)
    printed = re.search(r"tensor\(\[([\d.]+)\]\)", capsys.readouterr().out)
    said = re.search(r"# ([\d.]+) dB", BLOCKS[0])
    assert printed
    assert said
    assert float(printed[1]) == pytest.approx(float(said[1]), abs=0.02)
    exec(BLOCKS[1], names)
    assert "tensor" in capsys.readouterr().out
    assert (tmp_path / "trace.png").exists()


@pytest.mark.parametrize(("block", "room", "registry"), [(0, "solvers", SOLVERS), (2, "tasks", TASKS)])
def test_the_shortened_files_are_complete(block: int, room: str, registry: Registry[object]) -> None:
    """They run as they stand, in a room of their own."""
    own: Registry[object] = Registry("thing", "pnpilot.io")
    source = ADDING[block].replace("from .base", f"from pnpilot.{room}.base")
    name = re.search(r'register\("(.+?)"\)', source)
    assert name
    exec(source.replace(f"@{room.upper()}.", "@OWN."), {"OWN": own, "__name__": "mine"})
    assert own[name[1]].__name__ == registry[name[1]].__name__


def test_the_denoiser_of_the_docs_is_a_denoiser() -> None:
    own: Registry[Denoiser] = Registry("denoiser", "pnpilot.io")
    source = ADDING[1].replace("from .base", "from pnpilot.denoisers.base").replace("@DENOISERS.", "@OWN.")
    exec(source, {"OWN": own, "__name__": "mine"})
    denoiser = own["average"]()
    x = torch.rand(2, 3, 9, 11)
    assert denoiser(x, torch.tensor([0.0, 0.2])).shape == x.shape
    assert torch.equal(denoiser(x, 0.0), x)


def test_the_operator_of_the_readme_goes_from_file_to_trained_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: the file as it stands, both commands, and the last line."""
    monkeypatch.setattr(TASKS, "_entries", dict(TASKS._entries))
    monkeypatch.setenv("PNPILOT_WITH", "")
    file, images = tmp_path / "missing_rows.py", block_pictures(tmp_path / "images", 8, 9)
    file.write_text(next(block for block in BLOCKS if "# missing_rows.py" in block))
    train: list[str | Path] = [
        "train",
        "policy",
        "--with",
        file,
        "--task",
        "missing-rows",
        "--data",
        images,
        "--out",
        tmp_path / "rows",
    ]
    short = ["--size", "32", "--batch", "2", "--held-out", "1", "--width", "8", "--updates", "1", "--fewest", "1"]
    trained = run(*train, *short, "--minutes", "0.02", "--device", "cpu")
    assert trained.returncode == 0, trained.stderr
    bench: list[str | Path] = [
        "bench",
        "policies",
        "--task",
        "missing-rows",
        "--data",
        tmp_path,
        "--dataset",
        "images",
        "--images",
        "1",
    ]
    measured = run(*bench, "--policy", tmp_path / "rows", "--method", "learned", "--size", "32", "--device", "cpu")
    assert measured.returncode == 0, measured.stderr
    assert "learned" in measured.stdout

    from pnpilot import PnPilot

    task: Task = TASKS["missing-rows"]()
    y, physics = task.simulate(torch.rand(1, 1, 32, 32), task.settings[0])
    result = PnPilot.from_pretrained(tmp_path / "rows").reconstruct(y, physics)
    assert result.trace[0]["policy"] == "learned"


@pytest.mark.parametrize("name", ["mri_admm_schedule", "phase_retrieval_inexact_admm", "own_operator"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = [float(number) for number in re.findall(r"([\d.]+) dB", capsys.readouterr().out)]
    assert len(printed) >= 2
    assert printed[-1] > 25
