"""Recover an image from the amplitudes of four coded diffraction patterns.

python examples/phase_retrieval_inexact_admm.py
"""

from __future__ import annotations

from pnpilot import PnPilot
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.tasks.phase import PhaseRetrieval

truth = example_brain()
y, physics = PhaseRetrieval().simulate(truth, PhaseRetrieval.setting(alpha=27))

for step in PnPilot().steps(y, physics):
    iteration = int(step.iterations[0])
    if iteration % 5 == 0:
        print(f"iteration {iteration:2}  PSNR {psnr(step.image, truth).item():.2f} dB")
