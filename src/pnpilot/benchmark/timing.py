"""How long things take, with all work of the device done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import torch

Found = TypeVar("Found")


def timed(call: Callable[[], Found], device: torch.device) -> tuple[Found, float]:
    """What a call gives, and its seconds."""
    wait(device)
    start = time.perf_counter()
    found = call()
    wait(device)
    return found, time.perf_counter() - start


def wait(device: torch.device) -> None:
    """A GPU works on after a call has returned: wait for it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
