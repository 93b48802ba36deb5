"""`pnpilot train baseline`: the weights or constants that a method needs before it can run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from ..baselines import BASELINES
from ..baselines._searched import Searched
from ..baselines._unrolled import Unrolled
from ..errors import BadInput
from .arguments import SearchArgs, UnrolledArgs
from .search_constants import search_constants
from .train_unrolled import train_unrolled


def train_baseline(
    network: UnrolledArgs, search: SearchArgs, out: Path, *, device: torch.device, workers: int | None = None
) -> dict[str, Any]:
    """Train a network, or search constants, whichever the method of that name has; refuse those that have neither."""
    name = network.name
    kind = BASELINES[name]
    if issubclass(kind, Unrolled):
        return train_unrolled(network, out, device=device)
    if issubclass(kind, Searched):
        return search_constants(search, out, device=device, workers=workers or os.cpu_count() or 1)
    able = [other for other in BASELINES if issubclass(BASELINES[other], Unrolled | Searched)]
    raise BadInput(f"{name} has nothing to train or to search; those that have: {', '.join(able)}")
