"""Networks with a loss, and the loop that trains them, on a toy that fits a line."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from pnpilot.denoisers.base import freeze
from pnpilot.errors import BadInput
from pnpilot.training.arguments import UnrolledArgs
from pnpilot.training.session import Session, session
from pnpilot.training.supervised import Supervised, keep_average
from tests.contracts import assert_close

STEPS = 59
"""The clock is read sixty times in a minute; at the last look the budget is spent."""


class Toy:
    """A line to fit, and a record of the random numbers it was shown."""

    run: Session

    def __init__(self, out: Path, *, stop_at: int | None = None, seed: int = 0, minutes: float = 1.0) -> None:
        torch.manual_seed(seed)
        self.generator = torch.Generator().manual_seed(3)
        self.out, self.stop_at = out, stop_at
        self.args = UnrolledArgs("toy", "", minutes=minutes, seed=seed, batch=16, learning_rate=0.2, warmup=1)
        self.trainee = Supervised(nn.Linear(1, 1), self.args, self.generator, self.loss, self.examine)
        self.shown, self.losses, self.said = list[float](), list[float](), list[nn.Module]()

    def loss(self) -> Tensor:
        if len(self.shown) == self.stop_at:
            raise KeyboardInterrupt
        x = torch.rand(16, 1, generator=self.generator)
        self.shown.append(x[0].item())
        loss = (self.trainee.network(x) - 3 * x + 1).square().mean()
        self.losses.append(loss.item())
        return loss

    def examine(self, network: nn.Module) -> str:
        self.said.append(network)
        return ""

    def go(self, save_every: float = 60.0) -> Toy:
        parts, identity = self.trainee.parts, asdict(self.args)
        with session("toy", self.out, parts, identity, device=torch.device("cpu"), save_every=save_every) as self.run:
            self.run.run(self.trainee)
        return self


@pytest.mark.usefixtures("looks")
def test_it_spends_its_budget_and_learns(tmp_path: Path) -> None:
    toy = Toy(tmp_path).go()
    assert toy.run.steps == len(toy.losses) == STEPS
    assert toy.losses[-1] < 0.3 * toy.losses[0]
    assert (tmp_path / "checkpoint.safetensors").is_file()
    assert not toy.said
    again = Toy(tmp_path).go()
    assert again.run.steps == STEPS and not again.shown  # nothing is left to do


@pytest.mark.usefixtures("looks")
def test_a_stopped_run_goes_on_from_the_saved_step(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = Toy(tmp_path / "whole").go()
    first = Toy(tmp_path / "parts", stop_at=5)
    with pytest.raises(KeyboardInterrupt):
        first.go()
    assert first.run.steps == 5
    second = Toy(tmp_path / "parts").go()
    assert second.run.steps == 5 + len(second.shown) == STEPS - 1  # the step begun at the stop took time from the clock
    assert first.shown + second.shown == whole.shown[:-1]
    assert second.losses[0] == pytest.approx(whole.losses[5])  # weights, and where the optimiser was
    assert second.losses[1] == pytest.approx(whole.losses[6], rel=0.05)
    for other in (Toy(tmp_path / "parts", seed=1), Toy(tmp_path / "parts", minutes=2.0)):
        with pytest.raises(BadInput, match="other settings"):
            other.go()


@pytest.mark.usefixtures("looks")
def test_the_average_is_examined_and_keep_averages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.training.session.EXAM_SHARE", 1e9)  # as often as possible
    toy = Toy(tmp_path)
    trainee = toy.trainee
    start = trainee.network.weight.clone()
    trainee.step(0.1, 0)
    assert_close(trainee.average.weight, start.lerp(trainee.network.weight, 0.9))
    before = trainee.average.weight.clone()
    trainee.step(0.1, 1)
    assert_close(trainee.average.weight, before.lerp(trainee.network.weight, 1 - 2 / 11))
    toy.go(save_every=-1)
    assert len(toy.said) == len(toy.shown) - 2
    assert all(network is trainee.average for network in toy.said)
    assert not trainee.average.weight.requires_grad
    assert (trainee.average.weight - trainee.network.weight).abs() < 0.5 * (start - trainee.network.weight).abs()


def test_statistics_are_averaged_and_counters_copied() -> None:
    network = nn.BatchNorm2d(2)
    average = freeze(nn.BatchNorm2d(2))
    network(torch.rand(4, 2, 3, 3))
    nn.init.constant_(network.weight, 3.0)
    keep_average(average, network, 0.75)
    assert_close(average.weight, torch.full((2,), 1.5))
    for name in ("running_mean", "running_var"):
        initial = nn.BatchNorm2d(2).get_buffer(name)
        assert_close(average.get_buffer(name), initial.lerp(network.get_buffer(name), 0.25))
    assert average.get_buffer("num_batches_tracked") == 1
