"""Real scans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def example_brain(slice_index: int = 12) -> Tensor:
    """A slice of the real brain scan that nibabel ships, (1, 1, 96, 128) in [0, 1]."""
    import nibabel

    path = Path(nibabel.__file__).parent / "tests" / "data" / "example4d.nii.gz"
    volume = np.asarray(nibabel.load(path).dataobj[..., slice_index, 0], dtype=np.float32)
    upright = np.ascontiguousarray(volume.T[::-1])
    # A few bright vessel pixels would otherwise leave the tissue dark.
    return torch.from_numpy(upright / np.percentile(upright, 99.9)).clamp(0, 1)[None, None]
