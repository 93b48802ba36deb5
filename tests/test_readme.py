"""What the README and the examples say works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch

from pnpilot.denoisers.base import Denoiser
from pnpilot.registry import Registry

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_ten_lines_run() -> None:
    names: dict[str, object] = {}
    exec(BLOCKS[0], names)
    image = names["x"]
    assert isinstance(image, torch.Tensor)
    assert image.shape == (1, 2, 96, 128)


def test_the_denoiser_of_the_readme_is_a_denoiser() -> None:
    registry: Registry[Denoiser] = Registry("denoiser", "pnpilot.io")
    exec(BLOCKS[2], {"DENOISERS": registry, "Denoiser": Denoiser, "torch": torch})
    denoiser = registry["gaussian"]()
    x = torch.rand(2, 3, 9, 11)
    assert denoiser(x, torch.tensor([0.0, 0.2])).shape == x.shape
    assert torch.equal(denoiser(x, 0.0), x)


@pytest.mark.parametrize("name", ["mri_admm_schedule", "phase_retrieval_inexact_admm", "own_operator"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = [float(number) for number in re.findall(r"([\d.]+) dB", capsys.readouterr().out)]
    assert len(printed) >= 2
    assert printed[-1] > 25
