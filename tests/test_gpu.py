"""On a GPU, where the denoiser runs in bf16, results are those of the CPU. Skipped where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pnpilot import PnPilot
from pnpilot.metrics import psnr
from pnpilot.tasks import TASKS, build_task

from .conftest import phantom

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("policy", ["fixed", "schedule"])
@pytest.mark.parametrize("name", TASKS)
def test_same_psnr_as_on_the_cpu(name: str, policy: str) -> None:
    task, truth = build_task(name), phantom(128, 128, 2)

    def score(device: str) -> Tensor:
        y, physics = task.simulate(truth.to(device), task.settings[-1], seed=1)
        image = PnPilot(policy=policy, peak=1.0, device=device)(y, physics)
        return psnr(image[:, :1].real.cpu(), truth)

    difference = (score("cuda") - score("cpu")).abs()
    assert difference.max() < 0.02, f"differ by {difference.tolist()} dB"


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
    # Not in PSNR: these phantoms come back at 50 dB, where less than half a grey level makes several tenths.
    assert (gpu - cpu)[same].square().mean((1, 2, 3)).sqrt().max() < 0.5 / 255
