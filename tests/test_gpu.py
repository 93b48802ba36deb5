"""On a GPU, where the denoiser runs in bf16, results are those of the CPU. Skipped where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.baselines import BASELINES, build_baseline, prdeep
from pnpilot.tasks import TASKS, build_task

from .conftest import phantom
from .contracts import pictures

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

# Not in PSNR: phantoms are restored to up to 50 dB, where half a grey level makes several tenths of a dB.
HALF_A_GREY_LEVEL = 0.5 / 255


def difference(one: Tensor, other: Tensor) -> Tensor:
    """Root mean square for each image (B,)."""
    return (one - other).square().mean((1, 2, 3)).sqrt()


@pytest.mark.parametrize("policy", ["fixed", "schedule"])
@pytest.mark.parametrize("name", TASKS)
def test_same_image_as_on_the_cpu(name: str, policy: str) -> None:
    task = build_task(name)
    truth = pictures(task, 128, 128)

    def run(device: str) -> Tensor:
        y, physics = task.simulate(truth.to(device), task.settings[-1], seed=1)
        return PnPilot(policy=policy, peak=1.0, device=device)(y, physics)[:, : truth.shape[1]].real.cpu()

    gpu, cpu = run("cuda"), run("cpu")
    # Where an image stays noisy, a twentieth of its error is 0.01 dB.
    assert (difference(gpu, cpu) < (difference(cpu, truth) / 20).clamp_min(HALF_A_GREY_LEVEL)).all()


@pytest.mark.parametrize("name", ["csmri", "phase"])
def test_a_learned_policy_does_the_same_as_on_the_cpu(name: str) -> None:
    task, truth = build_task(name), phantom(128, 128, 12)

    def run(device: str) -> tuple[Tensor, list[int]]:
        settings = [task.settings[index % len(task.settings)] for index in range(len(truth))]
        y, physics = task.simulate(truth.to(device), settings, seed=1)
        result = PnPilot.from_pretrained(name, peak=1.0, real=True, device=device).reconstruct(y, physics)
        return result.image[:, :1].real.cpu(), [record["iterations"] for record in result.trace]

    (gpu, gpu_iterations), (cpu, cpu_iterations) = run("cuda"), run("cpu")
    # An image on the edge between stopping and going on may fall to the other side.
    same = torch.tensor(gpu_iterations) == torch.tensor(cpu_iterations)
    assert same.float().mean() > 0.7
    assert difference(gpu, cpu)[same].max() < HALF_A_GREY_LEVEL


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_do_the_same_as_on_the_cpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if obstacle := BASELINES[name].obstacle():
        pytest.skip(f"{name} {obstacle}")
    monkeypatch.setattr(BASELINES[name], "iterations", min(BASELINES[name].iterations, 20))
    monkeypatch.setattr(prdeep, "STEPS", 10)
    serves = min(BASELINES[name].serves)
    task, truth = build_task(serves), phantom(64, 64, 2)

    def run(device: str) -> Tensor:
        first, last = task.settings[0], task.settings[0 if serves == "deblur" else -1]  # kernels differ in size there
        y, physics = task.simulate(truth.to(device), [first, last], seed=1)
        image, iterations = build_baseline(name).answer(y, physics)
        assert image.device == y.device
        assert iterations.shape == (2,)
        return image[:, :1].cpu()

    assert difference(run("cuda"), run("cpu")).max() < HALF_A_GREY_LEVEL
