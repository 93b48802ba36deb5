"""Multi-coil k-space and coil maps of one slice from files, as (coils, H, W), the zero frequency in the middle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import BadInput, first_line, require
from .cfl import read_cfl


def read_coils(path: Path) -> Tensor:
    """K-space or coil maps from a pair of BART files, or from a NumPy file (coils, H, W)."""
    array = _numpy(path) if path.suffix == ".npy" else _from_bart(path)
    require(np.iscomplexobj(array), f"{path} holds {array.dtype} numbers; k-space and coil maps are complex")
    require(bool(np.isfinite(array).all()), f"{path} holds NaN or infinite values")
    require(min(array.shape[1:]) > 1, f"{path} has shape {array.shape}: a slice (coils, height, width) is needed")
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.complex64))


def _numpy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput(f"{path} is not a readable NumPy file: {first_line(error)}") from error
    require(array.ndim == 3, f"{path} has shape {array.shape}: a slice (coils, height, width) is needed")
    return np.array(array)


def _from_bart(path: Path) -> np.ndarray:
    """BART's axes are two or three of space, coils, sets of maps, and more."""
    array = read_cfl(path)
    sizes = (*array.shape, 1, 1, 1, 1)[: max(4, array.ndim)]
    space = [axis for axis in range(3) if sizes[axis] > 1]
    single = len(space) == 2 and all(size == 1 for size in sizes[4:])
    require(single, f"{path} has axes {sizes}: one slice is needed, with two axes of space, and coils as the fourth")
    return np.moveaxis(array.reshape(*(sizes[axis] for axis in space), sizes[3], order="F"), -1, 0)
