"""DICOM."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ._dicom import decimal, described, placed
from ._layout import affine, picture_paths, slice_axis
from .base import WRITERS, Volume, Writer

WHITEST = 2**16 - 1


@WRITERS.register("dicom")
class Dicom(Writer):
    """DICOM: magnitudes in 16 bits, one file for each image, all of one series."""

    suffix = ".dcm"
    folders = True
    holds = "magnitude to 16 bits, geometry, and patient and study of a DICOM input"
    extra = "mri"

    def write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        """One file, or a folder of them."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # about values of the input that break the standard, and are left as they are
            return self._write(folder, name, volume)

    def _write(self, folder: Path, name: str, volume: Volume) -> list[Path]:
        from pydicom.uid import generate_uid

        largest, fingerprint = _looked_over(volume)
        slope = decimal(largest / WHITEST if largest > 0 else 1.0)
        matrix = affine(volume)
        dataset = described(volume, matrix, fingerprint)
        dataset.RescaleSlope, dataset.RescaleIntercept, dataset.RescaleType = slope, decimal(0.0), "US"
        made, paths = picture_paths(self, folder, name, len(volume))
        for number, (path, image) in enumerate(zip(paths, volume, strict=True)):
            dataset.SOPInstanceUID = generate_uid(entropy_srcs=[fingerprint, str(number)])
            dataset.InstanceNumber = number + 1
            if matrix is not None:
                placed(dataset, matrix, _slice_of(volume, number))
            stored = np.minimum(np.abs(image).astype(float) / float(slope), WHITEST).round().astype("<u2")
            dataset.set_pixel_data(stored, "MONOCHROME2", 16, generate_instance_uid=False)
            dataset.save_as(path, enforce_file_format=True)
        return [made]


def _slice_of(volume: Volume, number: int) -> int:
    along = slice_axis(volume)
    if along is None:
        return 0
    return int(np.unravel_index(number, volume.shape[:-2])[volume.axes.index(along)])


def _looked_over(volume: Volume) -> tuple[float, str]:
    """The largest magnitude, and a fingerprint of all that is written: the same images get the same identifiers."""
    largest, digest = 0.0, hashlib.sha256(repr((volume.shape, volume.axes, volume.about)).encode())
    matrix: Any = affine(volume)
    digest.update(repr(None if matrix is None else matrix.round(6).tolist()).encode())
    digest.update(str(getattr(volume.header, "SOPInstanceUID", "")).encode())
    for image in volume:
        largest = max(largest, float(np.abs(image).max()))
        digest.update(np.ascontiguousarray(image).tobytes())
    return largest, digest.hexdigest()
