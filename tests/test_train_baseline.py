"""What other people's methods are given before they run: trained networks, searched constants."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from pnpilot.baselines import BASELINES
from pnpilot.baselines._searched import Searched
from pnpilot.baselines._unrolled import Unrolled
from pnpilot.baselines.admm_net import ADMMNet, ADMMNetwork
from pnpilot.baselines.dolphin import DOLPHIn
from pnpilot.baselines.recpf import RecPF
from pnpilot.metrics import psnr
from pnpilot.problems import Hints, open_problem
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.tasks.csmri import CSMRI
from pnpilot.tasks.phase import PhaseRetrieval
from pnpilot.training import search_constants as searching
from pnpilot.training.arguments import SearchArgs, UnrolledArgs
from pnpilot.training.mri_exam import MRIExam, Simulator
from pnpilot.training.search_constants import search_constants
from pnpilot.training.train_unrolled import train_unrolled
from tests.cli import Said
from tests.conftest import block_pictures, phantom
from tests.contracts import assert_close

CPU = torch.device("cpu")
LABELS = [setting.label for setting in CSMRI().settings]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return block_pictures(tmp_path / "images", 5, 4)


def refused(said: Said) -> str:
    """The one line of a refusal."""
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.strip().splitlines()
    assert line.startswith("pnpilot: ")
    return line


# The command line.


class Small(ADMMNetwork):
    """Shorter and narrower."""

    def __init__(self) -> None:
        super().__init__(2, 4)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ADMMNet, "network_class", Small)


@pytest.mark.usefixtures("small", "looks")
def test_a_network_is_trained_and_its_weights_load(images: Path, tmp_path: Path, say: Callable[..., Said]) -> None:
    command = ["train", "baseline", "admm-net", "--smoke", "--data", images, "--out", tmp_path / "out"]
    said = say(*command, "--minutes", "0.1")
    assert said.code == 0, said.err
    assert f"weights in {tmp_path / 'out' / 'admm-net.safetensors'}" in said.err
    card = json.loads((tmp_path / "out" / "admm-net.json").read_text())
    told = "--size 32 --batch 2 --held-out 2 --fewest 1"
    assert card["command"] == f"pnpilot train baseline admm-net --data DIR --minutes 0.1 --seed 0 {told}"
    assert (card["arguments"]["batch"], card["arguments"]["learning_rate"]) == (2, ADMMNet.rate)
    assert card["arguments"]["data"] == "images"
    assert (card["images"], card["device"]) == (4, "CPU")
    assert card["steps"] == 5
    assert list(card["held_out"]) == LABELS
    assert ADMMNet(weights=tmp_path / "out").made_with() == card["sha256"]

    again = say(*command, "--minutes", "0.1")  # the budget is spent
    assert again.code == 0, again.err
    assert f"resumed at step {card['steps']}" in again.err
    assert json.loads((tmp_path / "out" / "admm-net.json").read_text())["sha256"] == card["sha256"]
    assert "other settings" in refused(say(*command, "--minutes", "0.1", "--seed", "1"))


@pytest.mark.usefixtures("small", "looks")
def test_ctrl_c_keeps_what_was_trained(
    images: Path, tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = ADMMNetwork.loss, []

    def stopping(self: ADMMNetwork, problem: MaskedFourier, truth: Tensor) -> Tensor:
        calls.append(truth.shape)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, problem, truth)

    monkeypatch.setattr(ADMMNetwork, "loss", stopping)
    said = say("train", "baseline", "admm-net", "--smoke", "--data", images, "--out", tmp_path / "out")
    assert said.code == 130
    assert "stopped at step 2; the same command goes on from" in said.err
    assert calls[0] == (2, 1, 32, 32)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"checkpoint.safetensors"}


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, float]]:
    """A search of four points with few iterations; the constants of everything that it solved."""
    real, found = RecPF.solve, []

    def watched(self: RecPF, problem: MaskedFourier, **constants: float) -> Tensor:
        found.append(constants)
        return real(self, problem, **constants)

    monkeypatch.setattr(RecPF, "grid", {"tv": (0.001, 0.03), "wavelet": (0.0, 0.01)})
    monkeypatch.setattr(RecPF, "iterations", 3)
    monkeypatch.setattr(RecPF, "solve", watched)
    return found


def test_constants_are_searched_once_per_setting(
    images: Path, tmp_path: Path, say: Callable[..., Said], solved: list[dict[str, float]]
) -> None:
    command = ["train", "baseline", "recpf", "--smoke", "--workers", "1", "--data", images, "--out", tmp_path / "out"]
    said = say(*command)
    assert said.code == 0, said.err
    assert len(solved) == 9 * 4
    table = json.loads((tmp_path / "out" / "recpf.json").read_text())
    assert table["command"] == "pnpilot train baseline recpf --data DIR --images 1 --seed 0 --size 32 --refinements 0"
    assert table["arguments"]["data"] == "images"
    assert list(table["settings"]) == LABELS
    for setting in CSMRI().settings:
        own = table["settings"][setting.label]
        assert (own["acceleration"], own["sigma"]) == (setting["acceleration"], setting["sigma"])
        assert own["constants"] in solved
        assert math.isfinite(own["psnr"])
        assert setting.label in said.err

    assert say(*command).code == 0
    assert len(solved) == 9 * 4  # nothing is searched again
    del table["settings"]["x4 sigma=10"]
    (tmp_path / "out" / "recpf.json").write_text(json.dumps(table))
    assert say(*command).code == 0
    assert len(solved) == 10 * 4
    assert set(json.loads((tmp_path / "out" / "recpf.json").read_text())["settings"]) == set(LABELS)

    assert "belongs to a search with other settings" in refused(say(*command, "--seed", "1"))
    (tmp_path / "out" / "recpf.json").write_text("{")
    assert "choose another folder or delete it" in refused(say(*command))
    assert len(solved) == 10 * 4


def test_constants_for_another_task_are_searched_in_its_settings(
    images: Path, tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DOLPHIn, "grid", {"coupling": (0.003, 0.03), "sparsity": (0.0003, 10.0)})
    monkeypatch.setattr(DOLPHIn, "iterations", 4)
    command = ["train", "baseline", "dolphin", "--smoke", "--workers", "1", "--data", images, "--out", tmp_path / "out"]
    said = say(*command)
    assert said.code == 0, said.err
    table = json.loads((tmp_path / "out" / "dolphin.json").read_text())
    assert table["command"] == "pnpilot train baseline dolphin --data DIR --images 1 --seed 0 --size 32 --refinements 0"
    assert list(table["settings"]) == [setting.label for setting in PhaseRetrieval().settings]
    for setting in PhaseRetrieval().settings:
        own = table["settings"][setting.label]
        assert own.keys() == {"alpha", "masks", "constants", "psnr"}
        assert (own["alpha"], own["masks"]) == (setting["alpha"], 4)
        assert own["constants"]["sparsity"] == 0.0003  # the other leaves nothing
        assert own["psnr"] > 5
    scores = [own["psnr"] for own in table["settings"].values()]
    assert scores == sorted(scores, reverse=True)
    monkeypatch.setattr("pnpilot.baselines._searched.parameters_file", lambda _: tmp_path / "out" / "dolphin.json")
    assert DOLPHIn().made_with()["alpha=9"] == table["settings"]["alpha=9"]["constants"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zero-filled", "zero-filled has nothing to train or to search; those that have: admm-net, bm3d-mri, "),
        ("dpir", "dpir has nothing to train or to search"),
        ("prdeep", "prdeep has nothing to train or to search"),
        ("recpv", "unknown baseline 'recpv'; did you mean 'recpf'?"),
    ],
)
def test_names_with_nothing_to_train_are_refused(
    name: str, message: str, images: Path, tmp_path: Path, say: Callable[..., Said]
) -> None:
    out = tmp_path / "out"
    assert message in refused(say("train", "baseline", name, "--data", images, "--out", out))
    assert not out.exists()


@pytest.mark.parametrize("name", ["admm-net", "recpf"])
def test_useless_folders_are_refused(name: str, images: Path, tmp_path: Path, say: Callable[..., Said]) -> None:
    command = ["train", "baseline", name, "--workers", "1", "--out", tmp_path / "out", "--data"]
    assert "there is no folder" in refused(say(*command, tmp_path / "nowhere"))
    assert "at least 128×128" in refused(say(*command, images))  # these are smaller
    (tmp_path / "file").write_text("")
    assert "cannot write to the folder" in refused(say(*command, images, "--out", tmp_path / "file" / "out"))


def test_a_network_needs_images_to_hold_out(tmp_path: Path, say: Callable[..., Said]) -> None:
    (tmp_path / "one").mkdir()
    Image.new("L", (40, 40), 90).save(tmp_path / "one" / "0.png")
    command = ["train", "baseline", "ista-net+", "--smoke", "--data", tmp_path / "one", "--out", tmp_path / "out"]
    assert "none of the 0 held-out images is at least 32×32" in refused(say(*command))


# The search.


def test_the_best_of_all_that_was_tried_is_kept(
    images: Path, tmp_path: Path, solved: list[dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecPF, "task", OneSetting)
    args = SearchArgs("recpf", str(images), images=2, size=32, refinements=1)
    table = search_constants(args, tmp_path / "out", device=CPU)
    (own,) = table["settings"].values()
    tried = [dict(point) for point in {tuple(constants.items()) for constants in solved}]
    assert len(tried) == len(solved) > 4  # no point twice, and some beyond the grid
    truth = searching._images(args)
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 10), seed=1)
    scores = {
        tuple(constants.values()): psnr(RecPF(constants)(y, physics)[:, :1], truth).mean().item() for constants in tried
    }
    assert own["psnr"] == pytest.approx(max(scores.values()), abs=1e-3)
    best = max(scores, key=scores.__getitem__)
    assert tuple(own["constants"].values()) == pytest.approx(best, rel=1e-3)


class OneSetting(CSMRI):
    def __init__(self) -> None:
        self.settings = [self.setting(4, 10)]


class Pickling(ThreadPoolExecutor):
    """A pool of processes as far as its work can tell, without the seconds that they take to start."""

    def __init__(self, workers: int, *_: object) -> None:
        assert workers == 3
        super().__init__(1)

    def map(self, fn: Any, *iterables: Any, **_: Any) -> Any:
        return super().map(fn, *([pickle.loads(pickle.dumps(job)) for job in jobs] for jobs in iterables))


def test_processes_find_what_one_finds(
    images: Path, tmp_path: Path, solved: list[dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecPF, "task", OneSetting)
    monkeypatch.setattr(searching, "ProcessPoolExecutor", Pickling)
    args = SearchArgs("recpf", str(images), images=2, size=32, refinements=0)
    alone, together = (
        search_constants(args, tmp_path / str(workers), device=CPU, workers=workers)["settings"]["x4 sigma=10"]
        for workers in (1, 3)
    )
    assert alone["constants"] == together["constants"]
    assert alone["psnr"] == pytest.approx(together["psnr"], abs=2e-3)
    assert len(solved) == 4 + 2 * 4  # all images at once, or one by one


def test_finer_grids_lie_around_the_best_point_and_beyond_the_ends() -> None:
    assert searching._denser([1, 4, 16], 4) == [1, 2, 4, 8, 16]
    assert searching._denser([1, 4, 16], 1) == pytest.approx([0.5, 1, 2, 4, 16])
    assert searching._denser([1, 4, 16], 16) == pytest.approx([1, 4, 8, 16, 32])
    assert searching._denser([0, 4, 16], 0) == [0, 2, 4, 16]
    assert searching._denser([0, 4, 16], 4) == [0, 2, 4, 8, 16]
    assert searching._denser([0, 4], 4) == pytest.approx([0, 2, 4, math.sqrt(32)])
    assert searching._around([1, 2, 4, 8], 4) == [2, 4, 8]
    assert searching._around([1, 2, 4, 8], 1) == [1, 2]


@pytest.mark.parametrize("name", [name for name in BASELINES if issubclass(BASELINES[name], Searched)])
def test_grids_rise_and_can_be_made_finer(name: str) -> None:
    kind = BASELINES[name]
    assert issubclass(kind, Searched)
    for values in kind.grid.values():
        assert len(values) > 1
        assert list(values) == sorted(set(values))
        for value in values:
            assert set(values) <= set(searching._denser(values, value))


# Data for training.


def test_simulated_data_are_those_of_the_benchmark() -> None:
    truth = phantom(32, 32, 9)
    simulator = Simulator(32, CPU)
    simulator.levels.zero_()
    ours = simulator.measure(truth, torch.Generator(), torch.arange(9))
    settings = [CSMRI.setting(setting["acceleration"], 0) for setting in CSMRI().settings]
    theirs = open_problem(*CSMRI().simulate(truth, settings), Hints(peak=1.0, real=True))
    assert isinstance(theirs, MaskedFourier)
    assert torch.equal(ours.mask, theirs.mask)
    assert_close(ours.y, theirs.y)
    assert torch.equal(ours.measurements, theirs.measurements)
    assert_close(ours.x0(), theirs.x0())
    assert torch.equal(ours.units.peak, theirs.units.peak)
    assert torch.equal(ours.units.real, theirs.units.real)


def test_simulated_noise_has_the_level_of_the_setting() -> None:
    truth, simulator = phantom(64, 64, 9), Simulator(64, CPU)
    settings, generator = torch.arange(9), torch.Generator().manual_seed(0)
    y, physics = CSMRI().simulate(truth, CSMRI().settings)
    theirs = open_problem(y, physics, Hints(peak=1.0, real=True))
    for problem in (simulator.measure(truth, generator, settings), theirs):
        assert isinstance(problem, MaskedFourier)
        assert problem.units.sigma_n is not None
        assert_close(problem.units.sigma_n * 255, torch.tensor([5.0, 10, 15] * 3))
        noise = problem.y - problem.A(truth)
        for one, mask, level in zip(noise, problem.mask, problem.units.sigma_n.tolist(), strict=True):
            sampled = one[mask > 0]
            assert sampled.real.std().item() == pytest.approx(level, rel=0.15)
            assert sampled.imag.std().item() == pytest.approx(level, rel=0.15)
            assert one[mask == 0].abs().max() < 1e-6


def test_settings_are_drawn_at_random_and_by_the_seed() -> None:
    truth, simulator = phantom(32, 32, 1).repeat(200, 1, 1, 1), Simulator(32, CPU)
    first, again = (simulator.measure(truth, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first.y, again.y)
    assert first.units.sigma_n is not None
    drawn = list(zip(first.measurements.tolist(), first.units.sigma_n.tolist(), strict=True))
    assert len(set(drawn)) == 9
    assert min(drawn.count(one) for one in set(drawn)) > 8


def test_the_exam_is_the_same_every_time_and_takes_images_that_are_large_enough() -> None:
    pictures = [(255 * image[0]).byte().numpy() for image in phantom(40, 36, 2)]
    simulator = Simulator(32, CPU)

    class Truthful(nn.Module):
        def forward(self, problem: MaskedFourier) -> Tensor:
            return problem.x0().real

    first, again = (MRIExam([*pictures, pictures[0][:20]], simulator).take(Truthful()) for _ in range(2))  # type: ignore[arg-type]
    assert first == again
    assert list(first) == LABELS
    assert first["x2 sigma=5"] > first["x8 sigma=5"]
    assert len(MRIExam(pictures, simulator).truth) == 4  # plain and altered


# Training.


@pytest.mark.parametrize("name", [name for name in BASELINES if issubclass(BASELINES[name], Unrolled)])
def test_a_few_steps_lower_the_loss_on_one_batch(name: str) -> None:
    kind = BASELINES[name]
    assert issubclass(kind, Unrolled)
    network, truth = kind.network_class(), phantom(16, 16)
    problem = Simulator(16, CPU).measure(truth, torch.Generator().manual_seed(0), torch.tensor([0, 4]))
    optimizer = torch.optim.AdamW(network.parameters(), kind.rate, weight_decay=0.0)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = network.loss(problem, truth)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0], losses


@pytest.mark.usefixtures("looks", "small")
def test_a_network_that_was_stopped_goes_on(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, steps = ADMMNetwork.loss, []

    def stopping(self: ADMMNetwork, *given: Any) -> Tensor:
        steps.append(real(self, *given))
        if len(steps) == 4:
            raise KeyboardInterrupt
        return steps[-1]

    monkeypatch.setattr(ADMMNetwork, "loss", stopping)
    args = UnrolledArgs("admm-net", str(images), minutes=0.25, batch=2, size=32, held_out=2)
    with pytest.raises(KeyboardInterrupt):
        train_unrolled(args, tmp_path / "out", device=CPU)
    card = train_unrolled(args, tmp_path / "out", device=CPU)
    assert card["steps"] == len(steps) - 1 == 13
