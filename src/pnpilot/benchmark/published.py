"""The paper's numbers for denoisers; those of a task are in the task's file in `tables`."""

from __future__ import annotations

ALONE = {"set12": {"sigma=50": {"dncnn": 27.18, "memnet": 27.32, "unet": 27.40}}}
"""PSNR in dB by test set, noise level and denoiser."""
PLUGGED_IN = {"dncnn": 25.43, "memnet": 25.67, "unet": 25.76}
"""PSNR of the paper's PnP with each denoiser, on its Medical7, which is not our medical4: most likely ×8 and σ=15."""
MILLISECONDS = {"dncnn": 8.09, "memnet": 64.65, "unet": 5.65}
"""Per image of 256×256, on the authors' GPU."""
