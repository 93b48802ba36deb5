"""How many images fit into memory at a time."""

from __future__ import annotations

import math
import os

import torch

from ..errors import require
from .modalities import Modality

ON_CPU = 2**30
"""Bytes for images in work on a CPU, where larger batches are no faster."""
OF_GPU = 0.4
"""Share of a GPU's free memory."""
MOST = {"cpu": 8, "cuda": 64}
PER_VALUE = 750
"""Bytes that the denoiser takes per value of an image: a pixel has one for each colour, or two if it is complex."""


def room_for(scan: Modality, device: torch.device) -> int:
    """At most so many images are in work; refuses images that do not fit one at a time."""
    values = scan.channels * (2 if scan.pixels is None or scan.pixels.kind == "c" else 1)
    needed = PER_VALUE * values * math.prod(scan.sizes) + scan.cost()
    free, there = _memory(device)
    told = f"an image of {scan.sizes[0]}×{scan.sizes[1]} pixels takes about {needed / 1e9:.3g} GB of memory"
    require(needed < there, f"{told}, and there are {there / 1e9:.3g} GB: cut it into parts")
    return int(min(max(free // needed, 1), MOST.get(device.type, 8)))


def _memory(device: torch.device) -> tuple[float, float]:
    """Bytes to use for images in work, and all that there are."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return OF_GPU * free, total
    if not hasattr(os, "sysconf"):  # a system that does not tell
        return ON_CPU, math.inf
    return ON_CPU, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
