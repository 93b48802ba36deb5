"""What a computation runs on."""

from __future__ import annotations

import torch


def device_name(device: torch.device) -> str:
    """The name of the device, for the record beside a number."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
