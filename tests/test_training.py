"""Training a denoiser: that it learns, resumes, and writes weights that load again and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pnpilot.denoisers import build_denoiser
from pnpilot.denoisers.base import DENOISERS, Denoiser, freeze
from pnpilot.denoisers.compact import Compact
from pnpilot.denoisers.memnet import MemNet
from pnpilot.errors import BadInput, BadWeights
from pnpilot.metrics import psnr
from pnpilot.training import train_denoiser as module
from pnpilot.training.arguments import DenoiserArgs
from pnpilot.training.checkpoint import load_checkpoint, save_checkpoint
from pnpilot.training.clock import Clock, cosine
from pnpilot.training.patches import PatchSource
from pnpilot.training.supervised import Supervised
from pnpilot.training.train_denoiser import train_denoiser
from pnpilot.weights import has_weights, load_weights, save_weights
from tests.conftest import block_pictures, phantom


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return block_pictures(tmp_path / "images", 6, 7)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped architecture, narrower."""
    monkeypatch.setitem(DENOISERS._entries, "compact", lambda: Compact((16, 24), 1))


def arguments(images: Path, minutes: float) -> DenoiserArgs:
    return DenoiserArgs(
        "compact", str(images), minutes=minutes, batch=8, patch=32, warmup=5, held_out=1, learning_rate=2e-3
    )


CPU = torch.device("cpu")


def interrupted(monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Ctrl-C in that step; the list has an entry for every step begun."""
    real, calls = Supervised.step, list[int]()

    def step(self: Supervised[Any], share: float, done: int) -> None:
        calls.append(done)
        if len(calls) == at:
            raise KeyboardInterrupt
        real(self, share, done)

    monkeypatch.setattr(Supervised, "step", step)
    return calls


@pytest.mark.usefixtures("small", "looks")
def test_it_learns_and_ships_what_it_learnt(images: Path, tmp_path: Path) -> None:
    test = tmp_path / "test"
    test.mkdir()
    (test / "tiny").symlink_to(images)
    card = train_denoiser(arguments(images, 5), tmp_path / "out", device=CPU, test=test)
    denoiser = Compact((16, 24), 1)
    load_weights(denoiser, "compact", tmp_path / "out")
    truth = phantom(32, 32)
    noisy = truth + 50 / 255 * torch.randn(truth.shape)
    assert (psnr(freeze(denoiser)(noisy, 50 / 255), truth) > psnr(noisy, truth) + 5).all()
    assert card["psnr"]["tiny"]["sigma=50"] > 18
    assert card["steps"] == 299
    assert card["command"] == (
        "pnpilot train denoiser compact --data DIR --minutes 5 --seed 0 --batch 8 --patch 32 --learning-rate 0.002 "
        "--warmup 5 --held-out 1"
    )
    assert json.loads((tmp_path / "out" / "compact.json").read_text())["arguments"]["seed"] == 0


@pytest.mark.usefixtures("small", "looks")
def test_a_stopped_run_goes_on(images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = interrupted(monkeypatch, 4)
    with pytest.raises(KeyboardInterrupt):
        train_denoiser(arguments(images, 0.25), tmp_path / "out", device=CPU)
    assert (tmp_path / "out" / "checkpoint.safetensors").is_file()
    assert not has_weights("compact", tmp_path / "out")
    card = train_denoiser(arguments(images, 0.25), tmp_path / "out", device=CPU)
    assert card["steps"] == len(calls) - 1
    with pytest.raises(BadInput, match="other settings"):
        train_denoiser(arguments(images, 0.3), tmp_path / "out", device=CPU)
    with pytest.raises(BadInput, match="other settings"):
        train_denoiser(replace(arguments(images, 0.25), name="unet"), tmp_path / "out", device=CPU)


@pytest.mark.usefixtures("looks")
def test_normalisation_is_saved_with_its_statistics(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run that is stopped and goes on: the statistics belong to the average, the counter to all steps."""
    averages: list[Denoiser] = []
    calls = interrupted(monkeypatch, 4)

    def watched(network: Denoiser, *others: Any) -> Path:
        averages.append(network)
        return save_weights(network, *others)

    monkeypatch.setitem(DENOISERS._entries, "memnet", lambda: MemNet(2, 2, 8))
    monkeypatch.setattr(module, "save_weights", watched)
    args = replace(arguments(images, 0.5), name="memnet")
    with pytest.raises(KeyboardInterrupt):
        train_denoiser(args, tmp_path / "out", device=CPU)
    card = train_denoiser(args, tmp_path / "out", device=CPU)

    loaded = MemNet(2, 2, 8)
    load_weights(loaded, "memnet", tmp_path / "out")
    for name, initial in MemNet(2, 2, 8).named_buffers():
        assert not torch.equal(loaded.get_buffer(name), initial), name
        if name.endswith("num_batches_tracked"):
            assert loaded.get_buffer(name) == card["steps"] == len(calls) - 1 > 20
    x = phantom(32, 32)
    difference = (freeze(loaded)(x, 0.1) - averages[-1](x, 0.1)).abs().max()
    assert difference < 1e-3 < (averages[-1](x, 0.1) - x).abs().max()


def test_statistics_too_large_for_fp16_are_kept(tmp_path: Path) -> None:
    network, loaded = MemNet(1, 1, 8), MemNet(1, 1, 8)
    network.get_buffer("outlet.0.running_var").fill_(1e6)
    save_weights(network, "mine", tmp_path, {"name": "mine"})
    load_weights(loaded, "mine", tmp_path)
    assert (loaded.get_buffer("outlet.0.running_var") == 1e6).all()


def test_the_card_says_what_share_of_the_gpu_a_run_had(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def card(device: str) -> dict[str, Any]:
        return module._card(Compact((16, 16), 1), arguments(images, 1), torch.device(device), 1, 60.0)

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
    monkeypatch.delenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", raising=False)
    assert "gpu_share_percent" not in card("cuda")
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "33.3")
    assert card("cuda")["gpu_share_percent"] == 33.3
    assert "gpu_share_percent" not in card("cpu")


@pytest.mark.parametrize("name", ["compact", "dncnn", "memnet", "unet"])
def test_the_networks_learn_to_denoise_one_batch(name: str, images: Path) -> None:
    """The real architectures, on one fixed batch: the loss falls below that of doing nothing."""
    torch.manual_seed(0)
    denoiser = DENOISERS[name]()
    args = DenoiserArgs(name, str(images), batch=2, patch=32, learning_rate=1e-3, warmup=1)
    source = PatchSource([np.asarray(Image.open(path)) for path in sorted(images.iterdir())], args.patch, CPU)
    losses = []

    def loss() -> torch.Tensor:
        found = module._loss(denoiser, source, torch.Generator().manual_seed(1), args)
        losses.append(found.item())
        return found

    run = Supervised(denoiser, args, torch.Generator(), loss, str)
    for done in range(8):
        run.step(0.0, done)
    assert losses[-1] < 0.9 * losses[0]


def test_checkpoints_restore_everything(tmp_path: Path) -> None:
    def parts() -> dict[str, object]:
        torch.manual_seed(1)
        network = Compact((16, 16), 1)
        return {
            "network": network,
            "optimizer": torch.optim.AdamW(network.parameters(), 1e-2),
            "generator": torch.Generator().manual_seed(5),
        }

    def advance(parts: dict[str, object], steps: int) -> torch.Tensor:
        network, optimizer, generator = parts["network"], parts["optimizer"], parts["generator"]
        assert isinstance(network, Denoiser)
        assert isinstance(optimizer, torch.optim.Optimizer)
        assert isinstance(generator, torch.Generator)
        loss = torch.zeros(())
        for _ in range(steps):
            loss = network(torch.rand(1, 1, 16, 16, generator=generator), 0.1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    first = parts()
    advance(first, 3)
    save_checkpoint(tmp_path / "c.safetensors", first, {"step": 3})
    expected = advance(first, 3)
    second = parts()
    assert load_checkpoint(tmp_path / "c.safetensors", second) == {"step": 3}
    optimizer = second["optimizer"]
    assert isinstance(optimizer, torch.optim.Optimizer)
    for parameter, moments in optimizer.state.items():
        # Fused optimisers refuse moments whose memory layout is not the parameter's.
        assert moments["exp_avg"].stride() == parameter.stride()
    assert torch.equal(advance(second, 3), expected)


def test_a_broken_checkpoint_is_said_to_be_broken(tmp_path: Path) -> None:
    (tmp_path / "c.safetensors").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match="not a readable checkpoint"):
        load_checkpoint(tmp_path / "c.safetensors", {})
    network = torch.nn.Linear(2, 2)
    save_checkpoint(tmp_path / "c.safetensors", {"other": network}, {})
    with pytest.raises(BadInput, match="not a readable checkpoint"):
        load_checkpoint(tmp_path / "c.safetensors", {"network": network})
    with pytest.raises(BadInput, match="not a readable checkpoint"):
        load_checkpoint(tmp_path / "c.safetensors", {"other": network}, {"seed": 0})


def test_patches_are_pieces_of_the_images() -> None:
    image = np.arange(20 * 30, dtype=np.int64).reshape(20, 30)
    source = PatchSource([(image % 251).astype(np.uint8)], 4, CPU)
    patches = (source.sample(200, torch.Generator().manual_seed(0)) * 255).round().long()[:, 0]
    views = np.lib.stride_tricks.sliding_window_view(image % 251, (4, 4)).reshape(-1, 4, 4)
    allowed = {np.rot90(turned, k).tobytes() for v in views for turned in (v, v.T) for k in range(4)}
    assert all(patch.numpy().tobytes() in allowed for patch in patches)
    corners = {tuple(patch[:2, 0].tolist()) for patch in patches}
    assert len(corners) > 100


def test_patches_need_large_enough_images() -> None:
    with pytest.raises(BadInput, match="at least 64×64"):
        PatchSource([np.zeros((32, 100), np.uint8)], 64, CPU)


def test_the_schedule_stretches_to_the_budget() -> None:
    assert cosine(0.0, 10_000, 500) == 1.0
    assert cosine(0.5, 10_000, 500) == pytest.approx(0.5)
    assert cosine(1.0, 10_000, 500) == pytest.approx(0.0)
    assert cosine(0.0, 49, 500) == pytest.approx(0.1)
    assert cosine(0.02, 49, 500) == pytest.approx(0.4, abs=1e-3)  # few steps: warm after a twentieth of the time
    assert cosine(0.05, 49, 500) == cosine(0.05, 10_000, 500)
    assert Clock(1.0, spent=30.0).share == pytest.approx(0.5, abs=1e-3)


def test_altered_or_missing_weights_are_refused(tmp_path: Path) -> None:
    network = Compact((16, 16), 1)
    path = save_weights(network, "mine", tmp_path, {"name": "mine"})
    load_weights(Compact((16, 16), 1), "mine", tmp_path)
    with pytest.raises(BadWeights, match="does not fit Compact"):
        load_weights(Compact((16, 24), 1), "mine", tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(BadWeights, match="not the file its card describes"):
        load_weights(network, "mine", tmp_path)
    path.unlink()
    with pytest.raises(BadWeights, match="cannot read the weights"):
        load_weights(network, "mine", tmp_path)
    path.with_suffix(".json").write_text('{"sha256": 5}')
    with pytest.raises(BadWeights, match="sha256 is no text"):
        load_weights(network, "mine", tmp_path)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(BadWeights, match="not a readable weight card"):
        load_weights(network, "mine", tmp_path)


def test_missing_test_sets_are_said_before_training(images: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no subfolders with test images"):
        train_denoiser(arguments(images, 1), tmp_path / "out", device=CPU, test=tmp_path / "nowhere")


def test_own_weights_are_loaded_by_folder(tmp_path: Path) -> None:
    torch.manual_seed(3)
    network = DENOISERS["unet"]()
    save_weights(network, "unet", tmp_path, {"name": "unet"})
    loaded = build_denoiser("unet", weights=tmp_path)
    x = torch.rand(1, 1, 32, 32)
    assert (loaded(x, 0.1) - network(x, 0.1)).abs().max() < 1e-2  # fp16 on disk


def test_an_unwritable_folder_is_said_before_training(images: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot write to the folder"):
        train_denoiser(arguments(images, 1), tmp_path / "file" / "out", device=CPU)
