"""What a computation runs on."""

from __future__ import annotations

import os

import torch


def device_name(device: torch.device) -> str:
    """The name of the device, for the record beside a number."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def gpu_share(device: torch.device) -> dict[str, float]:
    """This run's share of the GPU, where runs were trained side by side: without it, minutes say little."""
    percent = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")
    known = device.type == "cuda" and percent.replace(".", "", 1).isdigit()
    return {"gpu_share_percent": float(percent)} if known else {}
