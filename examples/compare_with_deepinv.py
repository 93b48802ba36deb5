"""What the loop costs: 30 ADMM iterations here, deepinv's ADMM with the same denoiser, and the denoiser alone.

    python examples/compare_with_deepinv.py

All three run in turn in one process on a batch of 4 images of 128×128, so that the ratios mean something on any
machine. Then: peak memory of this process for 16 images of 256×256.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import torch
from deepinv.optim import ADMM, L2, PnP
from torch import Tensor, nn

from pnpilot import PnPilot
from pnpilot.denoisers import build_denoiser
from pnpilot.policies.fixed import Fixed
from pnpilot.solvers import build_solver
from pnpilot.tasks.csmri import CSMRI

SIGMA, MU, ITERATIONS, ROUNDS = 30 / 255, 0.3, 30, 5


class RealPart(nn.Module):
    """What PnPilot does with an MR image: the denoiser sees the real part alone."""

    def __init__(self, denoiser: nn.Module) -> None:
        super().__init__()
        self.denoiser = denoiser

    def forward(self, x: Tensor, sigma: Tensor, **_: object) -> Tensor:
        """Denoise channel 0, drop channel 1."""
        return torch.cat([self.denoiser(x[:, :1], sigma).clamp(0, 1), torch.zeros_like(x[:, :1])], 1)


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def blobs(batch: int, size: int) -> Tensor:
    """Smooth random images in [0, 1]."""
    coarse = torch.rand(batch, 1, 9, 9, generator=torch.Generator().manual_seed(0))
    return nn.functional.interpolate(coarse, (size, size), mode="bicubic").clamp(0, 1)


@torch.no_grad()
def main() -> None:
    """Measure and print."""
    denoiser = build_denoiser("compact")
    y, physics = CSMRI().simulate(blobs(4, 128), CSMRI.setting(4, 15))
    solver = build_solver("admm")
    ours = PnPilot(denoiser, policy=Fixed(solver, ITERATIONS, sigma=SIGMA, mu=MU), peak=1.0)
    theirs = ADMM(
        data_fidelity=L2(),
        prior=PnP(RealPart(denoiser)),
        stepsize=1 / MU,
        sigma_denoiser=SIGMA,
        max_iter=ITERATIONS,
        g_first=True,
    )
    x, sigma = torch.rand(4, 1, 128, 128), torch.full((4,), SIGMA)
    calls = {
        "PnPilot ADMM": lambda: ours(y, physics),
        "deepinv ADMM": lambda: theirs(y, physics),
        "denoiser alone": lambda: [denoiser(x, sigma) for _ in range(ITERATIONS)],
    }
    print("fastest of five rounds, and PnPilot's time over it")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds(call))
    best = {name: min(values) for name, values in times.items()}  # the rest is what else the machine was doing
    for name, value in best.items():
        print(f"{name:15} {value:.3f} s   {best['PnPilot ADMM'] / value:.3f}")

    y, physics = CSMRI().simulate(blobs(16, 256), CSMRI.setting(4, 15))
    ours(y, physics)
    print(f"peak memory after 16 images of 256×256: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
