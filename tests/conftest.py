from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from pnpilot.denoisers import Denoiser
from pnpilot.denoisers.base import freeze
from pnpilot.training.clock import Clock
from tests.cli import Said, speaker


class Smoother(Denoiser):
    """A stand-in for a network: differentiable in image and strength, and quick."""

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        mean = torch.nn.functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        return (mean - x) * sigma / (sigma + 0.05)


@pytest.fixture
def smoother() -> Denoiser:
    return freeze(Smoother())


def phantom(height: int, width: int, batch: int = 2) -> Tensor:
    """Smooth blobs and a sharp box, different for each image of the batch, in [0, 1]."""
    rows = torch.linspace(-1, 1, height)[:, None]
    columns = torch.linspace(-1, 1, width)[None, :]
    images = []
    for index in range(batch):
        blob = torch.exp(-4 * ((rows - 0.2 * index) ** 2 + (columns + 0.1) ** 2))
        box = ((rows.abs() < 0.4 + 0.1 * index) & (columns.abs() < 0.3)).float()
        images.append(0.1 + 0.5 * blob + 0.35 * box)
    return torch.stack(images)[:, None]


def block_pictures(folder: Path, rows: int, columns: int) -> Path:
    """Six pictures of grey blocks, 8 × 8 pixels each."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for index in range(6):
        field = np.kron(rng.uniform(40, 220, (rows, columns)), np.ones((8, 8)))
        Image.fromarray(field.astype(np.uint8)).save(folder / f"{index}.png")
    return folder


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # two threads that wait for each other on a busy machine take minutes


class Looks(Clock):
    """A clock that advances each time it is read: the same number of steps on any machine."""

    def __init__(self, minutes: float, spent: float = 0.0) -> None:
        self.budget, self.looks = 60 * minutes, spent

    @property
    def spent(self) -> float:
        return self.looks

    @property
    def share(self) -> float:
        self.looks += 1
        return min(1.0, self.looks / self.budget)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.training.session.Clock", Looks)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every baseline with few iterations, where their number can be set."""
    from pnpilot.baselines import BASELINES, dolphin, prdeep

    for name in BASELINES:
        monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 3))
    monkeypatch.setattr(dolphin, "FIXED", 1)
    monkeypatch.setattr(prdeep, "STEPS", 2)
    monkeypatch.setattr(prdeep.PrDeep, "iterations", 2 * len(prdeep.STAGES))


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The command line in this process, through its entry point."""
    return speaker(monkeypatch, capsys)
