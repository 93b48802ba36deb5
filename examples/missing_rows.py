"""An operator of one's own, outside the package: rows of the image that were not measured.

pnpilot train policy --with examples/missing_rows.py --task missing-rows --data FOLDER_OF_IMAGES
pnpilot bench policies --with examples/missing_rows.py --task missing-rows --data DATA --dataset set12
"""

from __future__ import annotations

import torch
from deepinv.physics import GaussianNoise, Inpainting

from pnpilot.tasks.base import TASKS, Setting, Task


class MissingRows(Inpainting):
    """A type of its own, so that a policy trained for it is not used for other masks."""


@TASKS.register("missing-rows")
class MissingRowsTask(Task):
    """Rows of the image that were not measured, noise on the others."""

    def __init__(self) -> None:
        self.settings = [Setting("kept=0.7 sigma=5", {"kept": 0.7, "sigma": 5})]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> MissingRows:
        """Each row is kept with the same chance."""
        rows = (torch.rand(1, shape[1], 1, generator=generator) < setting["kept"]).float()
        noise = GaussianNoise(setting["sigma"] / 255, rng=generator)
        return MissingRows(shape, mask=rows.expand(shape).clone(), noise_model=noise)
