"""How many images fit into memory at a time."""

from __future__ import annotations

import math

import torch

from .modalities import Modality

ON_CPU = 2**30
"""Bytes for images in work on a CPU, where larger batches are no faster."""
OF_GPU = 0.4
"""Share of a GPU's free memory."""
MOST = {"cpu": 8, "cuda": 64}
PER_PIXEL = 1500
"""Bytes per pixel of an image that the denoiser takes, real and imaginary part."""


def room_for(scan: Modality, device: torch.device) -> int:
    """At most so many images are in work."""
    needed = PER_PIXEL * scan.channels * math.prod(scan.sizes) + scan.cost()
    free = OF_GPU * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else ON_CPU
    return int(min(max(free // needed, 1), MOST.get(device.type, 8)))
