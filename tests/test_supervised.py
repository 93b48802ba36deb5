"""The loop that all networks with a loss share, on a line to learn."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from pnpilot.denoisers.base import freeze
from pnpilot.errors import BadInput
from pnpilot.training.progress import ProgressLine
from pnpilot.training.supervised import Supervised, follow
from pnpilot.training.train_unrolled import UnrolledArgs
from tests.contracts import assert_close


class Toy:
    """A line to learn, and what random numbers it was shown."""

    def __init__(self, out: Path, *, stop_at: int | None = None, seed: int = 0, minutes: float = 1.0) -> None:
        torch.manual_seed(seed)
        self.generator = torch.Generator().manual_seed(3)
        args = UnrolledArgs("toy", "", minutes=minutes, seed=seed, learning_rate=0.2, warmup=1)
        self.run = Supervised(nn.Linear(1, 1), args, out, self.generator)
        self.stop_at, self.shown, self.losses, self.said = stop_at, [], [], []  # type: ignore[var-annotated]

    def loss(self) -> Tensor:
        if len(self.shown) == self.stop_at:
            raise KeyboardInterrupt
        x = torch.rand(16, 1, generator=self.generator)
        self.shown.append(x[0].item())
        loss = (self.run.network(x) - 3 * x + 1).square().mean()
        self.losses.append(loss.item())
        return loss

    def examine(self, network: nn.Module) -> str:
        self.said.append(network)
        return ""

    def go(self, save_every: float = 60.0) -> Toy:
        with ProgressLine("toy", quiet=True) as line:
            self.run.run(line, self.loss, self.examine, save_every)
        return self


@pytest.mark.usefixtures("looks")
def test_it_spends_its_budget_and_learns(tmp_path: Path) -> None:
    toy = Toy(tmp_path).go()
    assert toy.run.step == len(toy.losses) == 30  # two looks at the clock a step
    assert toy.losses[-1] < 0.3 * toy.losses[0]
    assert (tmp_path / "checkpoint.safetensors").is_file()
    assert not toy.said
    assert Toy(tmp_path).go().run.step == 30  # nothing is left to do


@pytest.mark.usefixtures("looks")
def test_a_stopped_run_goes_on_from_the_saved_step(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = Toy(tmp_path / "whole").go()
    first = Toy(tmp_path / "parts", stop_at=5)
    with pytest.raises(KeyboardInterrupt):
        first.go()
    assert first.run.step == 5
    second = Toy(tmp_path / "parts")
    assert second.run.step == 0
    second.go()
    assert second.run.step == 5 + len(second.shown) == 29  # what was begun when it stopped took its time
    assert first.shown + second.shown == whole.shown[:29]
    assert second.losses[0] == pytest.approx(whole.losses[5])  # weights, and where the optimiser was
    assert second.losses[1] == pytest.approx(whole.losses[6], rel=0.05)
    for other in (Toy(tmp_path / "parts", seed=1), Toy(tmp_path / "parts", minutes=2.0)):
        with pytest.raises(BadInput, match="other settings"):
            other.go()


@pytest.mark.usefixtures("looks")
def test_the_average_is_examined_and_follows(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    start = toy.run.network.weight.clone()
    toy.run._update(toy.loss)
    assert_close(toy.run.average.weight, start.lerp(toy.run.network.weight, 0.9))
    before, after = toy.run.average.weight.clone(), toy.run._update(toy.loss)
    assert not after.requires_grad
    assert_close(toy.run.average.weight, before.lerp(toy.run.network.weight, 1 - 2 / 11))
    toy.go(save_every=-1)
    assert len(toy.said) == len(toy.shown) - 2
    assert all(network is toy.run.average for network in toy.said)
    assert not toy.run.average.weight.requires_grad
    assert (toy.run.average.weight - toy.run.network.weight).abs() < 0.5 * (start - toy.run.network.weight).abs()


def test_statistics_are_averaged_and_counters_copied() -> None:
    network = nn.BatchNorm2d(2)
    average = freeze(nn.BatchNorm2d(2))
    network(torch.rand(4, 2, 3, 3))
    nn.init.constant_(network.weight, 3.0)
    follow(average, network, 0.75)
    assert_close(average.weight, torch.full((2,), 1.5))
    for name in ("running_mean", "running_var"):
        initial = nn.BatchNorm2d(2).get_buffer(name)
        assert_close(average.get_buffer(name), initial.lerp(network.get_buffer(name), 0.25))
    assert average.get_buffer("num_batches_tracked") == 1
