"""The XML header of MRD files, which fastMRI's have as well: sizes, fields of view and what follows from them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ...errors import BadInput, first_line, require

LARGEST = 10_000_000
"""Bytes; headers have a few thousand."""


def parsed(xml: str) -> Any:
    """The header as the ismrmrd library sees it."""
    import ismrmrd.xsd

    # Entities can make a short text endless, or read other files.
    require("<!DOCTYPE" not in xml and "<!ENTITY" not in xml, "its XML header declares entities, which no scanner does")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about words where numbers belong; those that matter are checked
            return ismrmrd.xsd.CreateFromDocument(xml)
    except Exception as error:
        raise BadInput(f"its XML header is not understood: {first_line(error)}") from error


def encoding(header: Any) -> Any:
    """The first encoding: that of the images."""
    require(len(header.encoding) > 0, "its XML header has no encoding")
    return header.encoding[0]


def encoded(encoding: Any) -> dict[str, int]:
    """The samples along each axis of space."""
    return {axis: _whole(getattr(encoding.encodedSpace.matrixSize, axis)) for axis in "xyz"}


def final(encoding: Any, lengths: Mapping[str, int]) -> dict[str, int]:
    """How many pixels of each axis remain, where k-space of these lengths has more than the final image.

    Only the field of view is cut. A final image in finer or coarser pixels over the same field stays as it was encoded.
    """
    cut = {}
    for axis, length in lengths.items():
        whole, part = _field(encoding.encodedSpace, axis), _field(encoding.reconSpace, axis)
        wanted = _whole(getattr(encoding.reconSpace.matrixSize, axis))
        if whole > 0 and part > 0:
            exact = _whole(getattr(encoding.encodedSpace.matrixSize, axis)) * part / whole
            wanted = wanted if abs(exact - wanted) < 2 else max(1, round(exact))  # fields are rounded in headers
        if wanted < length:
            cut[axis] = wanted
    return cut


def spacing(encoding: Any, axis: str) -> float:
    """Millimetres from one pixel to the next, or 0 where the header does not say."""
    return _field(encoding.encodedSpace, axis) / _whole(getattr(encoding.encodedSpace.matrixSize, axis))


def _field(space: Any, axis: str) -> float:
    """The field of view in millimetres; 0 for one that cannot be."""
    value = getattr(space.fieldOfView_mm, axis)
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e6 else 0.0


def _whole(value: Any) -> int:
    require(isinstance(value, int) and 0 < value < 2**16, f"its XML header has a matrix size of {value!r}")
    return value
