"""Any deepinv linear physics works: here deblurring, super-resolution, inpainting and sparse-view tomography.

python examples/own_operator.py
"""

from __future__ import annotations

from pnpilot import PnPilot
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.tasks import build_task

truth = example_brain()[..., 32:128, 32:128]
model = PnPilot()
for name in ("deblur", "super-resolution", "inpainting", "tomography"):
    task = build_task(name)
    y, physics = task.simulate(truth, task.settings[0])
    result = model.reconstruct(y, physics)
    score, used = psnr(result.image, truth).item(), result.trace[0]["solver"]
    print(f"{name:17} {task.settings[0].label:22} {used:13} {score:.2f} dB")
