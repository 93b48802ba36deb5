"""Reconstruct an undersampled slice of a real brain scan, and compare with the zero-filled image.

python examples/mri_admm_schedule.py
"""

from __future__ import annotations

from pnpilot import PnPilot
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.tasks.csmri import CSMRI

task, truth = CSMRI(), example_brain()
y, physics = task.simulate(truth, task.setting(acceleration=4, sigma=15))  # data and a deepinv MRI physics

model = PnPilot()
x = model(y, physics)

print(f"zero-filled {psnr(task.extract(physics.A_adjoint(y)), truth).item():.2f} dB")
print(f"PnPilot     {psnr(task.extract(x), truth).item():.2f} dB")
