"""What the loop costs beside the denoiser: 30 ADMM iterations here and by deepinv, with the same denoiser.

    python examples/compare_with_deepinv.py

Both run in turn in one process on a batch of 4 images of 128×128. The denoiser is timed inside each run: two separate
runs differ by more than the loop costs on a machine that does other things too. Then: peak memory of this process for
16 images of 256×256.
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


class Timed(nn.Module):
    """A denoiser that adds up the time spent in it, so that what is left is the loop's own."""

    def __init__(self, denoiser: nn.Module) -> None:
        super().__init__()
        self.denoiser, self.seconds = denoiser, 0.0

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Denoise by the clock."""
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


@torch.no_grad()
def main() -> None:
    """Measure and print."""
    denoiser = Timed(build_denoiser("compact"))
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
    models = {"PnPilot": ours, "deepinv": theirs}
    ours(y, physics)
    totals: dict[str, list[float]] = {name: [] for name in models}
    overheads: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(ROUNDS):
        for name, model in models.items():
            denoiser.seconds = 0.0
            totals[name].append(seconds(lambda model=model: model(y, physics)))
            overheads[name].append(totals[name][-1] / denoiser.seconds)
    for name in models:
        low, high = min(overheads[name]), max(overheads[name])
        print(f"{name}: time over that of its own denoiser calls {low:.3f} to {high:.3f}")
    ratios = [mine / other for mine, other in zip(*totals.values(), strict=True)]
    print("PnPilot / deepinv, whole runs:", " ".join(f"{ratio:.3f}" for ratio in ratios))

    y, physics = CSMRI().simulate(blobs(16, 256), CSMRI.setting(4, 15))
    ours(y, physics)
    print(f"peak memory after 16 images of 256×256: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
