"""How training ends when it is stopped, or when disk, memory or time run out."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from pnpilot.baselines.admm_net import ADMMNet, ADMMNetwork
from pnpilot.denoisers.base import DENOISERS
from pnpilot.denoisers.compact import Compact
from pnpilot.errors import Terminated
from pnpilot.io.files import write_atomically
from pnpilot.training import checkpoint as checkpoints
from pnpilot.training.failures import mendable
from pnpilot.training.signals import StopSignals
from pnpilot.weights import store
from tests.cli import Said, wait_for
from tests.conftest import Smoother, block_pictures

ROOT = Path(__file__).parent.parent


class Small(ADMMNetwork):
    """Shorter and narrower."""

    def __init__(self) -> None:
        super().__init__(2, 4)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    DENOISERS.names()
    monkeypatch.setattr(ADMMNet, "network_class", Small)
    monkeypatch.setitem(DENOISERS._entries, "compact", lambda: Compact((16, 16), 1))
    monkeypatch.setitem(DENOISERS._entries, "smooth", type("Smooth", (Smoother,), {"name": "smooth"}))


TINY = {
    "denoiser": ["denoiser", "compact", "--batch", "2", "--patch", "32"],
    "baseline": ["baseline", "admm-net", "--batch", "2", "--size", "32", "--held-out", "2"],
    "policy": [
        *("policy", "--task", "csmri", "--denoiser", "smooth", "--batch", "2", "--size", "32", "--held-out", "1"),
        *("--updates", "1", "--decisions", "2", "--per-decision", "2", "--width", "8"),
    ],
}


@pytest.fixture(params=TINY)
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """A short command for each kind of training; results go to `out`."""
    images = block_pictures(tmp_path / "images", 8, 9)
    return ["train", *TINY[request.param], "--data", str(images), "--out", str(tmp_path / "out"), "--device", "cpu"]


def last_line(said: Said) -> str:
    assert "Traceback" not in said.err
    return said.err.strip().splitlines()[-1]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("looks")
def test_a_full_disk_is_one_line_and_the_checkpoint_stays(
    command: list[str], tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "write_atomically", full_disk)  # the weights, after the last checkpoint
    said = say(*command, "--minutes", "0.3")
    assert said.code == 2
    assert last_line(said).startswith(f"pnpilot: cannot write to {tmp_path / 'out'}: No space left on device")
    kept = (tmp_path / "out" / "checkpoint.safetensors").read_bytes()
    monkeypatch.setattr(checkpoints, "write_atomically", full_disk)
    assert say(*command, "--minutes", "0.3").code == 2
    assert (tmp_path / "out" / "checkpoint.safetensors").read_bytes() == kept
    monkeypatch.setattr(checkpoints, "write_atomically", write_atomically)
    monkeypatch.setattr(store, "write_atomically", write_atomically)
    assert say(*command, "--minutes", "0.3").code == 0  # there is room again


@pytest.mark.usefixtures("looks")
def test_a_full_disk_when_it_is_stopped_is_one_line(
    tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> Tensor:
        raise KeyboardInterrupt

    monkeypatch.setattr(ADMMNetwork, "loss", stopped)
    monkeypatch.setattr(checkpoints, "write_atomically", full_disk)
    images = block_pictures(tmp_path / "images", 8, 9)
    said = say("train", *TINY["baseline"], "--data", images, "--out", tmp_path / "out")
    assert said.code == 2
    assert "No space left on device" in last_line(said)


@pytest.mark.usefixtures("looks")
def test_a_run_without_steps_writes_no_weights(command: list[str], tmp_path: Path, say: Callable[..., Said]) -> None:
    said = say(*command, "--minutes", "0.01")  # the budget is spent at the first look at the clock
    assert said.code == 2
    assert "0.01 minutes were enough for 0 " in last_line(said)
    assert "no weights were written; give it more --minutes" in last_line(said)
    assert not list((tmp_path / "out").glob("*.safetensors"))
    assert say(*command, "--minutes", "0.3").code == 0  # in the same folder


@pytest.mark.usefixtures("looks")
def test_a_run_of_hardly_any_step_has_not_learnt(tmp_path: Path, say: Callable[..., Said]) -> None:
    images = block_pictures(tmp_path / "images", 8, 9)
    command = ["train", *TINY["denoiser"], "--data", images, "--out", tmp_path / "out", "--minutes"]
    assert "enough for 8 steps, and fewer than 10 are no training" in last_line(say(*command, "0.15"))
    assert not list((tmp_path / "out").iterdir())
    assert say(*command, "0.2").code == 0


@pytest.mark.usefixtures("looks")
def test_too_large_a_batch_is_one_line(command: list[str], say: Callable[..., Said]) -> None:
    said = say(*command, "--batch", "9999999999", "--minutes", "0.3")
    assert said.code == 2
    assert last_line(said) == "pnpilot: the machine has too little memory for this: choose a smaller --batch or size"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_what_torch_says_of_memory_is_understood(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="too little memory"), mendable(tmp_path):
        raise error
    with pytest.raises(RuntimeError, match="shapes differ"), mendable(tmp_path):
        raise RuntimeError("shapes differ")  # a fault of ours stays one


def test_a_signal_waits_until_a_file_is_written() -> None:
    before = signal.getsignal(signal.SIGTERM)
    written = []
    with pytest.raises(Terminated), StopSignals() as signals, signals.held():
        os.kill(os.getpid(), signal.SIGTERM)
        written.append("all of it")
    assert written
    with pytest.raises(KeyboardInterrupt), StopSignals():
        os.kill(os.getpid(), signal.SIGINT)
    with StopSignals() as signals:
        signals.heed()
        os.kill(os.getpid(), signal.SIGTERM)  # it is being stopped already
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("looks")
def test_sigterm_in_a_step_keeps_the_steps_before_it(
    command: list[str], tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def agreed(share: float, _: torch.device) -> float:
        looks.append(share)
        if len(looks) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return share

    monkeypatch.setattr("pnpilot.training.session.agreed", agreed)
    said = say(*command, "--minutes", "0.3")
    checkpoint = tmp_path / "out" / "checkpoint.safetensors"
    assert said.code == 143
    (line,) = said.err.strip().splitlines()
    assert "] stopped at " in line and line.endswith(f" 2; the same command goes on from {checkpoint}")
    assert kept_steps(checkpoint) == 2
    again = say(*command, "--minutes", "0.3")
    assert again.code == 0, again.err
    assert " 2, 3 s of 18 s spent" in again.err.splitlines()[0]
    assert kept_steps(checkpoint) == 2 + 14


@pytest.mark.usefixtures("looks")
def test_sigterm_while_a_checkpoint_is_written_leaves_a_whole_one(
    command: list[str], tmp_path: Path, say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    def disturbed(path: Path, data: bytes) -> None:
        write_atomically(path, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGTERM)
        write_atomically(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write_atomically", disturbed)
        said = say(*command, "--minutes", "0.3")
    assert said.code == 143
    assert " stopped at " in last_line(said)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"checkpoint.safetensors"}
    assert kept_steps(tmp_path / "out" / "checkpoint.safetensors") == 17
    again = say(*command, "--minutes", "0.3")
    assert again.code == 0, again.err
    assert "resumed at" in again.err and " 17, " in again.err


def kept_steps(checkpoint: Path) -> int:
    with safe_open(checkpoint, framework="pt") as file:
        return int(json.loads(file.metadata()["progress"])["steps"])


ENDLESS = """
import sys
from pnpilot.baselines.admm_net import ADMMNet
from pnpilot.cli import main
from pnpilot.training.train_unrolled import train_unrolled
from tests.test_session import Small
ADMMNet.network_class = Small
train_unrolled.__kwdefaults__["save_every"] = 0.0
words = "train baseline admm-net --minutes 600 --batch 2 --size 32 --held-out 2 --device cpu".split()
sys.argv = ["pnpilot", *words, "--data", sys.argv[1], "--out", sys.argv[2]]
main()
"""


def test_a_process_ends_in_order_by_sigterm(tmp_path: Path) -> None:
    images, checkpoint = block_pictures(tmp_path / "images", 8, 9), tmp_path / "out" / "checkpoint.safetensors"
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, images, checkpoint.parent], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    wait_for(checkpoint, process)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == 143, said
    stopped = said.strip().splitlines()[-1]
    assert stopped.endswith(f"] stopped at step {kept_steps(checkpoint)}; the same command goes on from {checkpoint}")
    assert {path.name for path in checkpoint.parent.iterdir()} == {checkpoint.name}
