"""The weight of total variation in the table of operators: PSNR over weights, on photographs that are not in the table.

python examples/choose_tv_weight.py DATA
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from pnpilot.baselines.tv import TotalVariation
from pnpilot.benchmark.operators import build_operator
from pnpilot.metrics import psnr

OPERATORS = (
    "csmri-x4",
    "gaussian-blur",
    "motion-blur",
    "inpainting-half",
    "inpainting-rows",
    "super-resolution-x2",
    "super-resolution-x4",
    "coded-fourier",
    "denoising",
)
WEIGHTS = (0.125, 0.25, 0.35, 0.5, 0.7, 1.0)


def main(data: Path) -> None:
    """Two photographs of BSD68, one line for each operator, and the sum."""
    total = torch.zeros(len(WEIGHTS))
    for name in OPERATORS:
        operator = build_operator(name)
        type(operator).dataset, type(operator).every = "bsd68", 34
        _, truth = operator.images(data)
        y, physics, task = operator.simulate(truth, data)
        images = (task.extract(TotalVariation(weight, 200)(y, physics)) for weight in WEIGHTS)
        scores = torch.stack([psnr(image, truth).mean() for image in images])
        print(name, [f"{score:.2f}" for score in scores.tolist()], flush=True)
        total += scores
    print("sum", {weight: f"{score:.1f}" for weight, score in zip(WEIGHTS, total.tolist(), strict=True)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
