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
