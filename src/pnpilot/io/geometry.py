"""Where the pixels of an image lie in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Geometry:
    """Pixels in millimetres, in the axes of NIfTI: to the right, to the front, to the head of a patient.

    Axes go by their names, so that it survives whatever order a file or a reconstruction keeps them in. It hangs on the
    centre, so that it survives cropping.
    """

    steps: Mapping[str, np.ndarray]
    """From one pixel to the next (3,) along each axis of space: "y", "x", and "z" or "slice"."""
    centre: np.ndarray
    """The middle (3,) of all pixels: that of the first and the last along each axis."""
    oriented: bool = True
    """Whether directions are known, and not only the size of pixels."""

    def affine(self, axes: Sequence[str], shape: Sequence[int]) -> np.ndarray:
        """The matrix (4, 4) that takes pixel numbers along three named axes of these lengths to millimetres."""
        matrix = np.eye(4)
        matrix[:3, :3] = np.stack([self.steps[axis] for axis in axes], 1)
        matrix[:3, 3] = self.centre - matrix[:3, :3] @ ((np.asarray(shape, float) - 1) / 2)
        return matrix

    @classmethod
    def of(cls, affine: np.ndarray, axes: Sequence[str], shape: Sequence[int]) -> Geometry:
        """The geometry behind such a matrix."""
        affine = np.asarray(affine, float)
        steps = {axis: affine[:3, index].copy() for index, axis in enumerate(axes)}
        return cls(steps, affine[:3, :3] @ ((np.asarray(shape, float) - 1) / 2) + affine[:3, 3])

    def spacing(self, axis: str) -> float:
        """Millimetres from one pixel to the next."""
        return float(np.linalg.norm(self.steps[axis]))

    def upright(self, image: np.ndarray, axes: Sequence[str]) -> np.ndarray:
        """An image (rows, columns) as it is looked at: the patient's right on the left, front or head on top.

        Oblique planes go by the nearest such view; pixels are only swapped.
        """
        if not self.oriented or not set(axes) <= self.steps.keys():
            return image
        steps = [self.steps[axis] for axis in axes]
        nearest = [int(np.abs(step).argmax()) for step in steps]
        if nearest[0] == nearest[1]:
            return image
        if nearest[0] < nearest[1]:  # columns go from right to left, or else from front to back
            image, steps, nearest = image.T, steps[::-1], nearest[::-1]
        for axis, (step, along) in enumerate(zip(steps, nearest, strict=True)):
            if step[along] > 0:
                image = np.flip(image, axis)
        return image
