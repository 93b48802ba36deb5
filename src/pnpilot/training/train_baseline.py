"""`pnpilot train baseline`: whatever a method has to be given before it can run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from ..baselines import BASELINES
from ..baselines._searched import Searched
from ..baselines._unrolled import Unrolled
from ..errors import BadInput
from .search_constants import SearchArgs, search_constants
from .train_unrolled import UnrolledArgs, train_unrolled


def train_baseline(
    name: str,
    data: Path,
    out: Path,
    *,
    minutes: float,
    images: int,
    seed: int,
    workers: int | None,
    device: torch.device,
    smoke: bool = False,
) -> dict[str, Any]:
    """Train a network, or search constants; refuse methods that have neither."""
    kind = BASELINES[name]
    if issubclass(kind, Unrolled):
        args = UnrolledArgs(name, str(data), minutes, seed, kind.batch, learning_rate=kind.rate)
        if smoke:
            args.minutes, args.batch, args.size, args.held_out = min(minutes, 0.2), 2, 32, 2
        return train_unrolled(args, out, device=device)
    if issubclass(kind, Searched):
        search = SearchArgs(name, str(data), images, seed)
        if smoke:
            search.images, search.size, search.refinements = 1, 32, 0
        return search_constants(search, out, device=device, workers=workers or os.cpu_count() or 1)
    able = [other for other in BASELINES if issubclass(BASELINES[other], Unrolled | Searched)]
    raise BadInput(f"{name} has nothing to train or to search; those that have: {', '.join(able)}")
