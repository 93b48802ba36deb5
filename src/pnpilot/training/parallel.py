"""Several processes under torchrun: each plays its own episodes, gradients are averaged; a single one is unaffected."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor


@contextmanager
def processes(device: torch.device) -> Iterator[tuple[int, int, torch.device]]:
    """Rank, number of processes, and this process's device."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0, 1, device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    _import_what_keeps_the_group()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size(), device
    finally:
        dist.destroy_process_group()


def _import_what_keeps_the_group() -> None:
    """Modules that, imported later, would keep the process group in default arguments, and its threads alive."""
    importlib.import_module("torch.distributed.nn.functional")
    importlib.import_module("torch._dynamo")


def average_gradients(parameters: Sequence[Tensor]) -> None:
    """The mean of the gradients of all processes."""
    if not dist.is_initialized():
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for gradient, part in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def agreed(number: float, device: torch.device) -> float:
    """The first process's number for all, so that they end together."""
    if not dist.is_initialized():
        return number
    value = torch.tensor(number, dtype=torch.float64, device=device)
    dist.broadcast(value, 0)
    return float(value)
