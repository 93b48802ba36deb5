"""Where the images of a volume go: the order of their axes, their place in space, the names of their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..raw import SLICE, SPACE
from .base import Volume, Writer


def slice_axis(volume: Volume) -> str | None:
    """The axis that counts images along a line in space, if there is one."""
    return next((axis for axis in (SLICE, *SPACE) if axis in volume.axes[:-2]), None)


def counting_axes(volume: Volume) -> tuple[str, ...]:
    """The axes that count images in the order of imaging formats: the one in space, then time, then the others."""
    first = (slice_axis(volume), "time")
    return tuple(sorted(volume.axes[:-2], key=lambda axis: first.index(axis) if axis in first else len(first)))


def length(volume: Volume, axis: str | None) -> int:
    """How long an axis is; one, if the volume has none of that name."""
    return volume.shape[volume.axes.index(axis)] if axis in volume.axes else 1


def image_numbers(volume: Volume, axes: Sequence[str | None]) -> np.ndarray:
    """The numbers of all images in an array of these axes: those that count images in any order, and of length one."""
    numbers = np.arange(len(volume)).reshape(volume.shape[:-2])
    counting = [volume.axes.index(axis) for axis in axes if axis in volume.axes]
    return numbers.transpose(counting).reshape([length(volume, axis) for axis in axes])


def affine(volume: Volume) -> np.ndarray | None:
    """The matrix (4, 4) from the numbers of row, column and slice to millimetres, where the geometry is known."""
    geometry, (row, column), along = volume.geometry, volume.axes[-2:], slice_axis(volume)
    if geometry is None or not {row, column} <= geometry.steps.keys():
        return None
    if sum(axis in volume.axes[:-2] for axis in (SLICE, *SPACE)) > 1:
        return None  # several slabs: one matrix cannot tell where each of them lies
    count = length(volume, along)
    beyond = along or next((axis for axis in (SLICE, *SPACE) if axis in geometry.steps.keys() - {row, column}), SLICE)
    if beyond not in geometry.steps:
        if count > 1:
            return None  # how far apart the slices are is not known
        normal = np.cross(geometry.steps[column], geometry.steps[row])  # the direction that DICOM counts slices in
        geometry = replace(geometry, steps={**geometry.steps, beyond: normal / np.linalg.norm(normal)})
    return geometry.affine((row, column, beyond), (*volume.shape[-2:], count))


def picture_paths(writer: Writer, folder: Path, name: str, count: int) -> tuple[Path, list[Path]]:
    """What comes to be, and the paths of its images: one file, or a folder of numbered files."""
    if count == 1:
        path = folder / f"{name}{writer.suffix}"
        return path, [path]
    made, digits = folder / writer.folder(name), max(4, len(str(count - 1)))
    made.mkdir()
    return made, [made / f"{number:0{digits}}{writer.suffix}" for number in range(count)]
