"""Where a DICOM file says things of its frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import require
from ..geometry import Geometry
from ..raw import SLICE

FROM_LPS = np.array([-1.0, -1.0, 1.0])
"""DICOM's axes point to the left and the back of a patient, ours to the right and the front."""


def attributes(dataset: Any, frame: int, group: str) -> Any:
    """Where the attributes of a group are: with the frame, with all frames together, or in the dataset itself."""
    own = dataset.get("PerFrameFunctionalGroupsSequence") or []
    shared = dataset.get("SharedFunctionalGroupsSequence") or []
    for groups in (*own[frame : frame + 1], *shared[:1]):
        if groups.get(group):
            return groups.get(group)[0]
    return dataset


def geometry(dataset: Any, shape: tuple[int, ...]) -> Geometry | None:
    """Where frames (frame, y, x) lie, if they are told to be slices in equal steps."""
    try:
        return _geometry(dataset, shape)
    except (TypeError, ValueError):  # not told, or no numbers
        return None


def _geometry(dataset: Any, shape: tuple[int, ...]) -> Geometry:
    frames, rows, columns = shape
    positions, directions = (
        np.array([attributes(dataset, frame, group).get(name) for frame in range(frames)], float).reshape(frames, -1, 3)
        for group, name in (
            ("PlanePositionSequence", "ImagePositionPatient"),
            ("PlaneOrientationSequence", "ImageOrientationPatient"),
        )
    )
    measures = attributes(dataset, 0, "PixelMeasuresSequence")
    between_rows, between_columns = map(float, measures.get("PixelSpacing"))
    right, down = directions[0]
    corners = positions[:, 0]
    if frames == 1:
        thick = float(measures.get("SpacingBetweenSlices") or measures.get("SliceThickness") or 1)
        step = np.cross(right, down) * thick
    else:
        step = (corners[-1] - corners[0]) / (frames - 1)
        expected = corners[0] + np.arange(frames)[:, None] * step
        equal = np.allclose(corners, expected, atol=0.01) and np.allclose(directions, directions[:1], atol=1e-4)
        require(equal, "its frames are not slices in equal steps")
    steps = {"y": down * between_rows, "x": right * between_columns, SLICE: step}
    middle = (corners[0] + corners[-1] + steps["y"] * (rows - 1) + steps["x"] * (columns - 1)) / 2
    volume = float(np.linalg.det(np.stack(list(steps.values()))))
    require(np.isfinite(volume) and volume != 0 and bool(np.isfinite(middle).all()), "its pixels have no size")
    return Geometry({axis: FROM_LPS * step for axis, step in steps.items()}, FROM_LPS * middle)
