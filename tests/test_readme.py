"""What the README and the examples say works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch

from pnpilot.denoisers.base import Denoiser
from pnpilot.registry import Registry
from pnpilot.solvers import SOLVERS
from pnpilot.tasks import TASKS

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


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


@pytest.mark.parametrize(("block", "room", "registry"), [(2, "solvers", SOLVERS), (4, "tasks", TASKS)])
def test_the_shortened_files_are_complete(block: int, room: str, registry: Registry[object]) -> None:
    """They run as they stand, in a room of their own."""
    own: Registry[object] = Registry("thing", "pnpilot.io")
    source = BLOCKS[block].replace("from .base", f"from pnpilot.{room}.base")
    name = re.search(r'register\("(.+?)"\)', source)
    assert name
    exec(source.replace(f"@{room.upper()}.", "@OWN."), {"OWN": own})
    assert own[name[1]].__name__ == registry[name[1]].__name__


def test_the_denoiser_of_the_readme_is_a_denoiser() -> None:
    own: Registry[Denoiser] = Registry("denoiser", "pnpilot.io")
    exec(BLOCKS[3].replace("from .base", "from pnpilot.denoisers.base").replace("@DENOISERS.", "@OWN."), {"OWN": own})
    denoiser = own["average"]()
    x = torch.rand(2, 3, 9, 11)
    assert denoiser(x, torch.tensor([0.0, 0.2])).shape == x.shape
    assert torch.equal(denoiser(x, 0.0), x)


@pytest.mark.parametrize("name", ["mri_admm_schedule", "phase_retrieval_inexact_admm", "own_operator"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = [float(number) for number in re.findall(r"([\d.]+) dB", capsys.readouterr().out)]
    assert len(printed) >= 2
    assert printed[-1] > 25
