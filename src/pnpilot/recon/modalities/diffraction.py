"""Coded diffraction: amplitudes or intensities behind phase masks, as files have them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ...errors import BadInput, PnPilotError, require
from ...io.raw import MASK_AXIS, Raw, Scratch, Stored
from ...io.readers._diffraction import ALPHA, AMPLITUDES, INTENSITIES, MASKS, mask_axes, measured_axes
from ..axes import named
from ..options import Options
from ._pattern import Patterns, Reading, read
from .base import MODALITIES, Modality

PER_SAMPLE = 100
"""Bytes per sample: amplitudes, masks, and fields on the way."""
UNIT = 1e-2
"""So far from one the modulus of a mask may be, as in files that are stored in a few digits."""
EIGHT_BITS = 255.0
PLAUSIBLE = (0.2, 1.6)
"""Where the peak of images in [0, 1] is found to be; the estimate is twice the root mean square."""


@MODALITIES.register("diffraction")
class Diffraction(Modality):
    """Diffraction patterns of images behind known phase masks: amplitudes or intensities."""

    uses = frozenset({"mask"})
    pixels = np.dtype(np.float32)

    @classmethod
    def takes(cls, raw: Raw, options: Options) -> bool:
        """Files that say so; and pictures whose mask is complex, or as many phases, in a file of its own."""
        if raw.kind != "cartesian" or raw.mask is None or not raw.pictures or options.psf is not None:
            return super().takes(raw, options)
        return len(raw.mask.data.shape) == 3 and raw.mask.data.dtype.kind in "cf"

    def __init__(self, raw: Raw, options: Options, scratch: Scratch) -> None:  # noqa: ARG002
        assert raw.measured is not None
        self.notes = list(raw.notes)
        masks = raw.mask or raw.beside.get(MASKS)
        require(masks is not None, "it holds no phase masks: --mask FILE brings them")
        assert masks is not None
        self.stored, own = _with_axes(raw.measured, masks, options)
        self.axes = self.stored.axes or ()
        self.lengths = dict(zip(self.axes, map(int, self.stored.data.shape), strict=True))
        self.counting = tuple(axis for axis in self.axes if axis not in (MASK_AXIS, "y", "x"))
        self.shape = tuple(self.lengths[axis] for axis in self.counting)
        self.sizes = self.lengths["y"], self.lengths["x"]
        require(min(self.sizes) >= 8, f"its patterns have {self.sizes} pixels: they need at least eight a side")
        self.masks = _phases(_ordered(masks.data[...], own), self.notes)
        require(self.masks.shape[-2:] == self.sizes, f"the masks are {tuple(self.masks.shape)}, patterns {self.sizes}")
        self.quantity = next((kind for kind in (AMPLITUDES, INTENSITIES) if kind in raw.beside), None)
        alpha = raw.beside.get(ALPHA)
        self.alpha = None if alpha is None else self._alphas(np.asarray(alpha.data[...], np.float64).ravel())
        self.notes.append(self.reading.told)

    def _alphas(self, alphas: np.ndarray) -> np.ndarray:
        fits = alphas.size in (1, len(self)) and bool(np.isfinite(alphas).all() and (alphas >= 0).all())
        require(fits, f"alpha is {alphas[:8].tolist()}: one number from zero on is needed, or one for each image")
        return np.broadcast_to(alphas, (len(self),))

    @cached_property
    def reading(self) -> Reading:
        """What the first patterns that are not empty show: it holds for all of the file."""
        for number in range(len(self)):
            numbers = self._numbers(number)
            if bool(numbers.any()):
                return read(numbers, self.masks, self.quantity)
        raise BadInput("the measurement is zero everywhere: there is nothing to reconstruct from")

    def _numbers(self, number: int) -> Tensor:
        where = self.place(number)
        index = tuple(where.get(axis, slice(None)) for axis in self.axes)
        left = tuple(axis for axis in self.axes if axis not in where)
        found = np.asarray(self.stored.data[index])
        require(found.dtype.kind in "fiub", f"patterns are real numbers, and it holds {found.dtype}")
        numbers = torch.from_numpy(_ordered(found, left).astype(np.float32))
        require(bool(numbers.isfinite().all()), "patterns hold NaN or infinite values")
        return numbers

    def __getitem__(self, number: int) -> Patterns:
        try:
            y = self.reading.amplitudes(self._numbers(number))
        except PnPilotError as error:
            raise BadInput(f"image {number}: {error}") from error
        if self.alpha is None:
            return Patterns(number, y, self.masks)
        alpha, told = in_units(float(self.alpha[number]), float(2 * y.square().mean().sqrt()))
        return Patterns(number, y, self.masks, alpha, {"noise": (True, told)})

    def cost(self) -> int:
        """By samples."""
        return PER_SAMPLE * len(self.masks) * self.sizes[0] * self.sizes[1]


def in_units(alpha: float, peak: float) -> tuple[float, str]:
    """α, which is for images in [0, 255], in the units of amplitudes whose image peaks at about `peak`."""
    low, high = PLAUSIBLE
    if low <= peak <= high:
        return alpha, f"alpha = {alpha:g}, with images taken to lie in [0, 1]"
    if low <= peak / EIGHT_BITS <= high:
        return alpha * EIGHT_BITS, f"alpha = {alpha:g}, with images taken to lie in [0, 255]"
    return alpha * peak, f"alpha = {alpha:g}, with the peak of the image taken for 255: it is {peak:.3g} in the file"


def _with_axes(measured: Stored, masks: Stored, options: Options) -> tuple[Stored, tuple[str, ...]]:
    """Patterns with a name for each axis, and the names of the axes of the masks."""
    own = masks.axes or mask_axes(masks.data.shape)
    require(own is not None, f"the masks have shape {masks.data.shape}: (mask, y, x) is needed")
    assert own is not None
    if options.names is not None:
        stored, _ = named(Stored(measured.data), options.names, "the file")
        require(MASK_AXIS in (stored.axes or ()), f"--axes must name an axis {MASK_AXIS!r}")
        return stored, own
    shape = tuple(map(int, measured.data.shape))
    axes = measured_axes(shape, tuple(map(int, masks.data.shape)), own)
    require(axes is not None, f"patterns of shape {shape} do not go with masks of shape {masks.data.shape}")
    return Stored(measured.data, axes), own


def _ordered(array: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
    """(masks, H, W)."""
    return np.ascontiguousarray(np.transpose(array, [axes.index(axis) for axis in (MASK_AXIS, "y", "x")]))


def _phases(masks: np.ndarray, notes: list[str]) -> Tensor:
    """Masks of modulus one, from such or from phases in radians."""
    require(masks.dtype.kind in "cfiub", f"masks are numbers, and these are {masks.dtype}")
    require(bool(np.isfinite(masks).all()), "the masks hold NaN or infinite values")
    size = np.abs(masks)
    if masks.dtype.kind != "c" and not bool((size == 1).all()):
        flags = bool(np.isin(masks, (0, 1)).all())
        require(not flags, "the masks are of zeros and ones: masks of phases are needed, not of what is covered")
        notes.append("the masks are real: they are taken for phases in radians")
        return torch.from_numpy(np.exp(1j * masks.astype(np.float64)).astype(np.complex64))
    require(
        bool((np.abs(size - 1) <= UNIT).all()),
        f"the masks have moduli from {size.min():.3g} to {size.max():.3g}: they must be one everywhere, as of masks "
        "that change phases alone",
    )
    return torch.from_numpy((masks / size).astype(np.complex64))
