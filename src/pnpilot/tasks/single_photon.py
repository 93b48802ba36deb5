"""Single-photon imaging."""

from __future__ import annotations

import re

import torch

from ..errors import require
from ..physics.single_photon import SinglePhoton
from .base import TASKS, Setting, Task


@TASKS.register("single-photon")
class SinglePhotonTask(Task):
    """Single-photon imaging: K×K jots a pixel, each of which tells whether any photon came."""

    def __init__(self) -> None:
        self.settings = [self.setting(K) for K in (8, 6, 4)]

    @staticmethod
    def setting(K: int = 6) -> Setting:
        """K×K jots a pixel."""
        require(isinstance(K, int) and K >= 1, f"a pixel has K×K jots for a whole number K from 1 on, got {K}")
        return Setting(f"K={K}", {"K": K})

    def named(self, label: str) -> Setting:
        """Any setting such as 'K=5'."""
        found = re.fullmatch(r"K=(\d+)", label)
        return self.setting(int(found[1])) if found else super().named(label)

    def draw(self, count: int, generator: torch.Generator) -> list[Setting]:
        """K from 3 to 10, for every image its own."""
        return [self.setting(K) for K in torch.randint(3, 11, (count,), generator=generator).tolist()]

    def physics(self, setting: Setting, shape: tuple[int, int, int], generator: torch.Generator) -> SinglePhoton:  # noqa: ARG002
        """Images in [0, 1] are photons per jot."""
        return SinglePhoton(setting["K"], generator)
