"""What the loop costs on top of the denoiser: 30 ADMM iterations by PnPilot and by deepinv, with the same denoiser.

    python examples/compare_with_deepinv.py [ROUNDS]

In every round both run in one process on a batch of 4 images of 128×128, and so do the 30 denoiser calls alone; the
order changes from round to round. Whole runs differ by several percent on a shared machine, more than the loop costs,
so the denoiser is also timed inside each run. Then: peak memory of this process for 16 images of 256×256.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from deepinv.optim import ADMM, L2, PnP
from torch import Tensor, nn

from pnpilot import PnPilot
from pnpilot.denoisers import build_denoiser
from pnpilot.policies.fixed import Fixed
from pnpilot.solvers import build_solver
from pnpilot.tasks.csmri import CSMRI

SIGMA, MU, ITERATIONS = 30 / 255, 0.3, 30


class Timed(nn.Module):
    """A denoiser that adds up the time spent in it, so that what is left is the loop's own."""

    def __init__(self, denoiser: nn.Module) -> None:
        super().__init__()
        self.denoiser, self.seconds = denoiser, 0.0

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Denoise, and add up the time."""
        start = time.perf_counter()
        clean = self.denoiser(x, sigma)
        self.seconds += time.perf_counter() - start
        return clean


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


def spread(values: list[float]) -> str:
    """Median and range."""
    return f"{median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


@torch.no_grad()
def main(rounds: int) -> None:
    """Measure and print."""
    denoiser = Timed(build_denoiser("compact"))
    truth = blobs(4, 128)
    y, physics = CSMRI().simulate(truth, CSMRI.setting(4, 15))
    ours = PnPilot(denoiser, policy=Fixed(build_solver("admm"), ITERATIONS, sigma=SIGMA, mu=MU), peak=1.0)
    theirs = ADMM(
        data_fidelity=L2(),
        prior=PnP(RealPart(denoiser)),
        stepsize=1 / MU,
        sigma_denoiser=SIGMA,
        max_iter=ITERATIONS,
        g_first=True,
    )
    runs: dict[str, Callable[[], object]] = {
        "PnPilot": lambda: ours(y, physics),
        "deepinv": lambda: theirs(y, physics),
        "denoiser calls alone": lambda: [denoiser(truth, SIGMA) for _ in range(ITERATIONS)],
    }
    for run in runs.values():
        run()
    totals: dict[str, list[float]] = {name: [] for name in runs}
    overheads: dict[str, list[float]] = {name: [] for name in runs}
    for index in range(rounds):
        for name in list(runs)[:: 1 if index % 2 else -1]:
            denoiser.seconds = 0.0
            totals[name].append(seconds(runs[name]))
            overheads[name].append(totals[name][-1] / denoiser.seconds)
    print(f"{rounds} rounds, median and range")
    for name in ("PnPilot", "deepinv"):
        print(f"{name}: {spread(totals[name])} s; over its own denoiser calls: {spread(overheads[name])}")
    for name in ("deepinv", "denoiser calls alone"):
        ratios = [mine / other for mine, other in zip(totals["PnPilot"], totals[name], strict=True)]
        print(f"PnPilot / {name}, whole runs of a round: {spread(ratios)}")

    y, physics = CSMRI().simulate(blobs(16, 256), CSMRI.setting(4, 15))
    ours(y, physics)
    print(f"peak memory after 16 images of 256×256: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
