"""Where MRD's images lie: acquisitions say it line by line, in the axes of DICOM."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..geometry import Geometry
from ..raw import SLICE
from . import _mrd_header

TO_NIFTI = np.array([-1.0, -1.0, 1.0])
"""DICOM's axes point to the left and to the back."""
TOLERANCE = 0.05
"""Of the distance between slices, by which one may be off."""


def geometry(heads: np.ndarray, encoding: Any, slices: np.ndarray, notes: list[str]) -> Geometry | None:
    """That of the final images, or None where the lines do not say it."""
    ways = {"x": "read_dir", "y": "phase_dir", "z": "slice_dir"}
    directions = np.stack([heads[0][way] for way in ways.values()]).astype(float)
    lengths = np.linalg.norm(directions, axis=1)
    sizes = np.array([_mrd_header.spacing(encoding, axis) for axis in ways])
    if not (np.isfinite(lengths).all() and lengths.min() > 0 and sizes.min() > 0):
        return None
    if abs(np.linalg.det(directions / lengths[:, None])) < 0.5:  # nearly in one plane: no directions of a scan
        return None
    steps = dict(zip(ways, TO_NIFTI * directions / lengths[:, None] * sizes[:, None], strict=True))
    positions = np.stack([heads["position"][np.argmax(heads["slice"] == number)] for number in slices]).astype(float)
    if not np.isfinite(positions).all():
        return None
    steps[SLICE] = steps["z"]
    if len(slices) > 1 and np.ptp(positions, 0).max() > 0:
        step = (positions[-1] - positions[0]) / (len(slices) - 1)
        off = np.abs(positions - positions[0] - np.arange(len(slices))[:, None] * step).max()
        if off > TOLERANCE * np.linalg.norm(step):
            notes.append("its slices do not lie at equal distances in their order: their positions are not kept")
            return None
        steps[SLICE] = TO_NIFTI * step
    return Geometry(steps, TO_NIFTI * positions.mean(0))
