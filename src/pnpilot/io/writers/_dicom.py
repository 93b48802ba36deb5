"""What a DICOM file says besides its pixels."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import numpy as np

from ...errors import require
from .base import Volume

KEPT = (0x0008, 0x0010, 0x0018, 0x0020, 0x0032, 0x0038, 0x0040)
"""Groups of an input that still hold: what it is, the patient, how it was measured, the study, request and visit."""
MULTIFRAME = 0x9000
"""From this element on, such groups speak of files of many images, which these are not."""
LOSSY = ("LossyImageCompression", "LossyImageCompressionRatio", "LossyImageCompressionMethod")
"""What must be told of an image for ever."""
GONE = (
    "ImagePositionPatient",
    "ImageOrientationPatient",
    "SliceLocation",
    "PatientOrientation",
    "ImageComments",
    "InstanceCreationDate",
    "InstanceCreationTime",
    "InstanceCreatorUID",
    "SourceImageSequence",
    "ReferencedImageSequence",
    "ReferencedInstanceSequence",
    "ImagesInAcquisition",
    "TemporalPositionIdentifier",
    "NumberOfTemporalPositions",
)
"""What was said of one image of the input, or of its series."""
EMPTY = (
    "PatientName",
    "PatientID",
    "PatientBirthDate",
    "PatientSex",
    "StudyDate",
    "StudyTime",
    "AccessionNumber",
    "ReferringPhysicianName",
    "StudyID",
    "Manufacturer",
    "Laterality",
)
EMPTY_OF_MR = (
    "ScanOptions",
    "MRAcquisitionType",
    "RepetitionTime",
    "EchoTime",
    "EchoTrainLength",
    "PatientPosition",
)
"""What the standard wants to be there, even where nobody knows it."""
RIGHT_ANGLE = 1e-3
"""Cosine up to which rows and columns count as perpendicular."""


def decimal(value: float) -> Any:
    """A number in the 16 letters that DICOM has for it."""
    from pydicom.valuerep import DSfloat

    return DSfloat(float(value), auto_format=True)


def described(volume: Volume, matrix: np.ndarray | None, fingerprint: str) -> Any:
    """A dataset with all that the images of a series share."""
    import pydicom
    from pydicom.uid import MRImageStorage, SecondaryCaptureImageStorage, generate_uid

    old = volume.header if isinstance(volume.header, pydicom.Dataset) else pydicom.Dataset()
    dataset = _kept(old)
    # What is neither from a scanner's file nor has a place in a patient is no MR image in the sense of the standard.
    default = MRImageStorage if matrix is not None else SecondaryCaptureImageStorage
    many = "NumberOfFrames" in old or "SharedFunctionalGroupsSequence" in old
    dataset.SOPClassUID = default if many else old.get("SOPClassUID", default)
    dataset.SeriesInstanceUID = generate_uid(entropy_srcs=[fingerprint, "series"])
    dataset.setdefault("StudyInstanceUID", generate_uid(entropy_srcs=[fingerprint, "study"]))
    dataset.SeriesNumber = _series_number(old) + 1000  # apart from those that the scanner counts
    made = "PnPilot SIMULATED" if volume.simulated else "PnPilot"
    dataset.SeriesDescription = f"{old.get('SeriesDescription') or ''} {made}".strip()[-64:]
    kind = old.get("ImageType") or ""
    dataset.ImageType = ["DERIVED", "SECONDARY", *((() if isinstance(kind, str) else kind[2:]) or ["OTHER"])]
    dataset.DerivationDescription = volume.about[:1024]
    for keyword in EMPTY:
        dataset.setdefault(keyword, "")
    if dataset.SOPClassUID == MRImageStorage:
        dataset.Modality = "MR"
        dataset.setdefault("ScanningSequence", "RM")
        dataset.setdefault("SequenceVariant", "NONE")
        for keyword in EMPTY_OF_MR:
            dataset.setdefault(keyword, "")
    elif dataset.SOPClassUID == SecondaryCaptureImageStorage:
        dataset.setdefault("Modality", "OT")
        dataset.setdefault("ConversionType", "WSD")
    if volume.geometry is None or matrix is None:
        dataset.PatientOrientation = None
    else:
        dataset.setdefault("FrameOfReferenceUID", generate_uid(entropy_srcs=[fingerprint, "frame"]))
        dataset.setdefault("PositionReferenceIndicator", "")
        _oriented(dataset, matrix)
        if len(volume.geometry.steps) < 3:
            dataset.SliceThickness = dataset.SpacingBetweenSlices = None  # a plane alone does not tell
    return dataset


def _series_number(old: Any) -> int:
    try:
        return int(old.get("SeriesNumber") or 0)
    except (TypeError, ValueError):  # files break the standard
        return 0


def _kept(old: Any) -> Any:
    """A copy of what still holds of an input. Private elements go: only their maker knows what they speak of."""
    import pydicom
    from pydicom.datadict import keyword_for_tag

    new = pydicom.Dataset()
    for tag in old.keys():  # noqa: SIM118 - the elements themselves are not looked at before they are wanted
        if tag.group in KEPT and tag.element < MULTIFRAME and keyword_for_tag(tag) not in GONE:
            with contextlib.suppress(Exception):  # what cannot be understood is not carried on
                new.add(copy.deepcopy(old[tag]))
    for keyword in LOSSY:
        if keyword in old:
            new.add(copy.deepcopy(old[keyword]))
    new.decode()
    new.SpecificCharacterSet = "ISO_IR 192"  # any letter
    return new


def _oriented(dataset: Any, matrix: np.ndarray) -> None:
    """Write how large the pixels are and where their rows and columns point."""
    along_column, along_row, across = _to_lps(matrix)[:3, :3].T  # steps to the next row, column and slice
    sizes = [float(np.linalg.norm(step)) for step in (along_column, along_row, across)]
    row, column = along_row / sizes[1], along_column / sizes[0]
    require(
        abs(float(row @ column)) < RIGHT_ANGLE,
        "its rows and columns are not at right angles, and DICOM has no words for that: choose --format nifti",
    )
    dataset.ImageOrientationPatient = [decimal(value) for value in (*row, *column)]
    dataset.PixelSpacing = [decimal(size) for size in sizes[:2]]
    dataset.setdefault("SliceThickness", decimal(sizes[2]))
    dataset.SpacingBetweenSlices = decimal(sizes[2])


def placed(dataset: Any, matrix: np.ndarray, slice_: int) -> None:
    """Write where the first pixel of a slice lies."""
    position = _to_lps(matrix) @ (0, 0, slice_, 1)
    dataset.ImagePositionPatient = [decimal(value) for value in position[:3]]


def _to_lps(matrix: np.ndarray) -> np.ndarray:
    """DICOM counts to the left and to the back, where NIfTI counts to the right and to the front."""
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ matrix
