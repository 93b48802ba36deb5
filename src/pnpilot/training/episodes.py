"""An endless stream of simulated measurements: training images with random operators and noise."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..problems import Problem
from ..simulation import simulated
from ..tasks import Task
from .augment import augmented
from .patches import PatchSource


class Simulations(IterableDataset[Any]):
    """Problems with their true images, which depend only on seed and number, not on the process that computes them.

    Where there are images large enough, every fourth batch has a quarter as many images of twice the size.
    """

    def __init__(self, task: Task, images: list[np.ndarray], batch: int, size: int, seed: int, first: int) -> None:
        self.task, self.seed, self.first = task, seed, first
        usual, large = (batch, size), (max(1, batch // 4), 2 * size)
        kinds = [usual, usual, usual, large] if any(min(image.shape) >= 2 * size for image in images) else [usual]
        sources = {kind: PatchSource(images, kind[1], torch.device("cpu")) for kind in kinds}
        self.rounds = [(count, sources[count, size]) for count, size in kinds]

    def __iter__(self) -> Iterator[tuple[Problem, Tensor]]:
        worker = get_worker_info()
        number, stride = (self.first + worker.id, worker.num_workers) if worker else (self.first, 1)
        while True:
            yield self.number(number)
            number += stride

    def number(self, number: int) -> tuple[Problem, Tensor]:
        """The batch of that number."""
        seed = (1_000_003 * (self.seed + 1) + number) % 2**40  # small enough for `Task.simulate` to multiply
        generator = torch.Generator().manual_seed(seed)
        count, patches = self.rounds[number % len(self.rounds)]
        truth = augmented(patches.sample(count, generator), generator)
        settings = self.task.draw(count, generator)
        # Users may or may not know the peak: training has both.
        told = bool(torch.rand((), generator=generator) < 0.75)
        return simulated(self.task, truth, settings, seed, peak=1.0 if told else None), truth


class Problems:
    """Simulated problems on the device, computed ahead by other processes where there are cores to spare."""

    def __init__(self, simulations: Simulations, device: torch.device, workers: int | None = None) -> None:
        self.device = device
        if workers is None:
            workers = min(4, (os.cpu_count() or 1) // 2) if device.type == "cuda" else 0
        if workers and not _travels(simulations.number(simulations.first)):
            workers = 0
        ahead = 2 if workers else None
        self._batches = iter(DataLoader(simulations, batch_size=None, num_workers=workers, prefetch_factor=ahead))

    def __next__(self) -> tuple[Problem, Tensor]:
        """The next problem with its true images."""
        problem, truth = next(self._batches)
        return problem.to(self.device), truth.to(self.device)


def _travels(thing: Any) -> bool:
    """Whether it can be sent from one process to another; a deepinv physics inside cannot."""
    try:
        pickle.dumps(thing)
    except (AttributeError, TypeError, pickle.PicklingError):
        return False
    return True
