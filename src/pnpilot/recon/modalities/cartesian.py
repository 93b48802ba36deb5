"""Cartesian k-space: what a scan needs on the way to data and physics, each step told in a sentence."""

from __future__ import annotations

import numpy as np
import torch

from ...errors import BadInput, PnPilotError, require
from ...io.raw import COIL, SET, Raw, Scratch, Stored
from ..axes import named
from ..coils import MOST_COILS, fewer_coils, maps_from, mixed
from ..given_maps import GivenMaps
from ..kspace import Kspace
from ..masks import Masks
from ..noise import covariance_of, scanned_level, whitening
from ..options import Options
from ..oversampling import without_excess
from ..partial_fourier import HELD, held_phase
from ..simulate import Measured
from ..volumes import planes
from ._slice import Slice
from .base import MODALITIES, Modality

PER_SAMPLE = 100
"""Bytes per sample of k-space: data, maps and what conjugate gradients need."""


@MODALITIES.register("cartesian")
class Cartesian(Modality):
    """K-space on a grid, of one coil or several."""

    steps = {
        "oversampling": "cut off the part of the field of view that was read out in excess",
        "whitening": "decorrelate the noise of the coils; by default with a noise scan, or where coils differ much",
        "compression": "combine more than 16 coils to 16",
        "phase": "hold images to their phase at low resolution, where k-space was measured on one side",
        "crop": "cut images to the size that the scanner asked for",
    }
    uses = frozenset({"maps", "mask", "noise"})

    @classmethod
    def takes(cls, raw: Raw, options: Options) -> bool:
        """Pictures once they are measured anew; nothing that lies along a trajectory."""
        measured = not raw.pictures or options.simulate is not None
        return super().takes(raw, options) and measured and "trajectory" not in raw.beside

    def __init__(
        self, raw: Raw, options: Options, scratch: Scratch, maps: Raw | None = None, noise: Raw | None = None
    ) -> None:
        """`maps` and `noise` are files of their own."""
        assert raw.measured is not None
        self.options, self.raw, self.notes = options, raw, list(raw.notes)
        measured, told = named(raw.measured, options.names)
        self.notes += told
        measured, told = planes(measured, scratch, self._final_sizes())
        self.notes += told
        self.kspace = Kspace.of(measured)
        require(self.kspace.lengths.get(SET, 1) == 1, "k-space has an axis 'set': only coil maps come in sets")
        self.masks = Masks(raw.mask, self.kspace)
        self.calibration = None if raw.calibration is None else self._calibrating(raw.calibration, scratch)
        given = raw.maps if maps is None else maps.measured or maps.maps
        self.maps = None if given is None else GivenMaps(given, self.kspace, raw.oversampled)
        scan = raw.noise if noise is None else noise.measured or noise.noise
        self.covariance = None if scan is None else covariance_of(scan)
        self.lengths, self.counting, self.shape = self.kspace.lengths, self.kspace.counting, self.kspace.shape
        self.plane = self.kspace.plane
        rows, columns = self.plane
        self.sizes = self._final(rows), self._final(columns)

    def _final(self, axis: str) -> int:
        skipped = "oversampling" if axis == self.raw.oversampled else "crop"
        length = self.lengths[axis]
        return min(length if self.options.skips(skipped) else self.raw.matrix.get(axis, length), length)

    def cost(self) -> int:
        """By samples."""
        return PER_SAMPLE * self.lengths.get(COIL, 1) * self.lengths[self.plane[0]] * self.lengths[self.plane[1]]

    def truth(self, number: int) -> np.ndarray | None:
        """The picture that was measured anew."""
        assert self.raw.measured is not None
        data = self.raw.measured.data
        return data.truth(self.kspace.place(number)) if isinstance(data, Measured) else None

    def _final_sizes(self) -> dict[str, int]:
        skipped = {axis: "oversampling" if axis == self.raw.oversampled else "crop" for axis in self.raw.matrix}
        return {axis: size for axis, size in self.raw.matrix.items() if not self.options.skips(skipped[axis])}

    def _calibrating(self, stored: Stored, scratch: Scratch) -> Kspace:
        cut, _ = planes(stored, scratch, self._final_sizes(), self.kspace)
        found = Kspace.of(cut)
        require(found.goes_with(self.kspace), f"{len(found)} calibration scans do not go with {len(self)} images")
        return found

    def _calibration_of(self, number: int) -> np.ndarray | None:
        if self.calibration is None:
            return None
        (found,) = self.calibration[self.calibration.beside(self.kspace, number)]
        require(bool(np.isfinite(found).all()), "the calibration scan holds NaN or infinite values")
        return found

    def __getitem__(self, number: int) -> Slice:
        try:
            return self._prepared(number)
        except PnPilotError as error:
            raise BadInput(f"image {number}: {error}") from error

    def _prepared(self, number: int) -> Slice:
        said: dict[str, tuple[bool, str]] = {}
        (k,) = self.kspace[number]
        require(bool(np.isfinite(k).all()), "k-space holds NaN or infinite values")
        mask = self.masks(number, k)
        k = k * mask
        kept = 100 * float(mask.mean())
        words = "mask as given" if self.masks.known else "samples that are zero count as not measured"
        said["mask"] = True, f"{words}: {kept:.3g} % of k-space measured"
        if not k.any():
            return Slice(number, torch.from_numpy(k), torch.from_numpy(mask.astype(np.float32)), said=said)
        calibration = self._calibration_of(number)
        axis, plane = self.raw.oversampled, self.kspace.plane
        if axis in plane and self.raw.matrix[axis] < k.shape[1 + plane.index(axis)]:
            k, mask, calibration, said["oversampling"] = without_excess(
                k, mask, calibration, (plane.index(axis), axis), self.raw.matrix[axis], self.options
            )
        maps = None if self.maps is None else self.maps(number, k)
        mix, sigma = np.eye(len(k), dtype=np.complex64), None
        if len(k) > 1:
            white, said["whitening"] = whitening(k, mask, self.covariance, self.options)
            mix = mix if white is None else white
            if white is not None and self.covariance is not None:
                sigma, said["noise level"] = scanned_level(mixed(mix, k), mask, self.covariance)
        fewer = np.eye(len(k), dtype=np.complex64)
        if len(k) > MOST_COILS:
            fewer, said["compression"] = fewer_coils(mixed(mix, k), self.options)
        # Back to the coils as they were; those that compression left out have next to no signal in units of noise.
        unmix = np.linalg.inv(mix) @ fewer.conj().T
        mix = fewer @ mix
        plain = k
        k = mixed(mix, k)
        if maps is not None:
            maps, source = mixed(mix, maps), "maps that were given"
        elif len(plain) == 1:
            source = ""
        else:
            maps, source = maps_from(k, mask, None if calibration is None else mixed(mix, calibration), unmix)
        if source:
            said["coil maps"] = True, source
        y, weights = torch.from_numpy(k), torch.from_numpy(mask.astype(np.float32))
        turn, told = held_phase(k, mask, maps, plane, self.options)
        if told is not None:
            said["phase"] = told
        if turn is None:
            behind = None if maps is None else torch.from_numpy(maps)
            return Slice(number, y, weights, behind, calibration=source, sigma=sigma, said=said)
        behind = torch.from_numpy(turn * (np.ones((1, *k.shape), np.complex64) if maps is None else maps))
        return Slice(number, y, weights, behind, HELD, torch.from_numpy(turn[:, 0]), source, sigma, said)
