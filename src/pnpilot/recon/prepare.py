"""What a scan needs on the way from its samples to data and physics, each step told in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from deepinv.physics import MRI, MultiCoilMRI, Physics
from torch import Tensor

from ..errors import BadInput, PnPilotError, require
from ..io.raw import SET, Raw, Scratch, Stored
from ..physics import Sense
from .axes import named
from .coils import MOST_COILS, compression, maps_from, mixed
from .fourier import cropped_readout, low_phase
from .given_maps import GivenMaps
from .kspace import Kspace
from .masks import Masks
from .noise import covariance_of, whitening
from .options import Options
from .sampling import lopsided
from .volumes import planes

HELD = 0.01
"""λ of the phase constraint, in units of the data term (`docs/reconstruct/partial-fourier.md` has others)."""


@dataclass(frozen=True)
class Prepared:
    """One image, ready for the model."""

    number: int
    y: Tensor = field(repr=False)
    """Centred k-space (coils, H, W)."""
    mask: Tensor = field(repr=False)
    maps: Tensor | None = field(default=None, repr=False)
    """Coil maps (sets, coils, H, W); None: a single coil that sees everything."""
    held: float = 0.0
    turn: Tensor | None = field(default=None, repr=False)
    """The phase (sets, H, W) that was put into the maps, and belongs to the image."""
    calibration: str = ""
    """What the maps are from."""
    said: dict[str, tuple[bool, str]] = field(default_factory=dict)
    """What was done on the way, or left out, and why."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to reconstruct from."""
        return not bool(self.y.any())

    @property
    def kind(self) -> tuple[Any, ...]:
        """Images of one kind can be in one batch."""
        sense = self.maps is not None and (len(self.maps) > 1 or self.held > 0)
        return tuple(self.y.shape), None if self.maps is None else len(self.maps), sense


def batch(images: list[Prepared]) -> tuple[Tensor, Physics]:
    """Data and physics of images of one kind."""
    y = torch.stack([image.y for image in images])
    mask = torch.stack([image.mask for image in images])[:, None]
    size = (2, *mask.shape[-2:])
    if images[0].maps is None:
        return y, MRI(mask=mask, img_size=size)
    maps = torch.stack([image.maps for image in images if image.maps is not None])
    if images[0].kind[-1]:
        return y, Sense(mask, maps, torch.tensor([image.held for image in images]))
    return y, MultiCoilMRI(mask=mask, coil_maps=maps[:, 0], img_size=size)


class Preparation:
    """The images of a scan, prepared one after the other."""

    def __init__(
        self, raw: Raw, options: Options, scratch: Scratch, maps: Raw | None = None, noise: Raw | None = None
    ) -> None:
        """`maps` and `noise` are files of their own."""
        assert raw.measured is not None
        self.options, self.raw, self.notes = options, raw, list(raw.notes)
        measured, told = named(raw.measured, options.axes)
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

    def __len__(self) -> int:
        return len(self.kspace)

    def __getitem__(self, number: int) -> Prepared:
        try:
            return self._prepared(number)
        except PnPilotError as error:
            raise BadInput(f"image {number}: {error}") from error

    def _prepared(self, number: int) -> Prepared:
        said: dict[str, tuple[bool, str]] = {}
        (k,) = self.kspace[number]
        require(bool(np.isfinite(k).all()), "k-space holds NaN or infinite values")
        mask = self.masks(number, k)
        k = k * mask
        kept = 100 * float(mask.mean())
        words = "as given" if self.masks.known else "samples that are zero count as not measured"
        said["mask"] = True, f"{words}: {kept:.3g} % of k-space were measured"
        if not k.any():
            return Prepared(number, torch.from_numpy(k), torch.from_numpy(mask.astype(np.float32)), said=said)
        calibration = self._calibration_of(number)
        k, mask, calibration = self._readout(k, mask, calibration, said)
        maps = None if self.maps is None else self.maps(number, k)
        mix = np.eye(len(k), dtype=np.complex64)
        if len(k) > 1:
            white, said["whitening"] = whitening(k, mask, self.covariance, self.options)
            mix = mix if white is None else white
        fewer = self._compression(mixed(mix, k), said)
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
        turn = self._phase(k, mask, maps, said)
        if turn is not None:
            maps = turn * (np.ones((1, *k.shape), np.complex64) if maps is None else maps)
        y, weights = torch.from_numpy(k), torch.from_numpy(mask.astype(np.float32))
        held, behind = 0.0 if turn is None else HELD, None if maps is None else torch.from_numpy(maps)
        return Prepared(
            number, y, weights, behind, held, None if turn is None else torch.from_numpy(turn[:, 0]), source, said
        )

    def _readout(
        self, k: np.ndarray, mask: np.ndarray, calibration: np.ndarray | None, said: dict[str, tuple[bool, str]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        axis = self.raw.oversampled
        if axis is None or axis not in self.kspace.plane:
            return k, mask, calibration
        wanted, place = self.raw.matrix[axis], self.kspace.plane.index(axis)
        found = k.shape[1 + place]
        if wanted >= found:
            return k, mask, calibration
        words = f"of {found} samples along {axis}, {wanted} are kept"
        if self.options.skips("oversampling"):
            said["oversampling"] = False, f"switched off: {words} by default"
            return k, mask, calibration
        cut = cropped_readout(k, mask, place, wanted)
        if cut is None:
            said["oversampling"] = False, f"left as it is: k-space is undersampled along {axis}"
            return k, mask, calibration
        said["oversampling"] = True, f"readout oversampling removed: {words}"
        if calibration is not None:
            again = cropped_readout(calibration, np.abs(calibration).max(0) > 0, place, wanted)
            calibration = None if again is None else again[0]
        return *cut, calibration

    def _compression(self, k: np.ndarray, said: dict[str, tuple[bool, str]]) -> np.ndarray:
        identity = np.eye(len(k), dtype=np.complex64)
        if len(k) <= MOST_COILS:
            return identity
        if self.options.skips("compression"):
            said["compression"] = False, "switched off"
            return identity
        matrix, share = compression(k)
        said["compression"] = (
            True,
            f"{len(k)} coils compressed to {len(matrix)}, with {100 * share:.2f} % of the energy",
        )
        return matrix

    def _phase(
        self, k: np.ndarray, mask: np.ndarray, maps: np.ndarray | None, said: dict[str, tuple[bool, str]]
    ) -> np.ndarray | None:
        """The phase (sets, 1, H, W) that images are held to, where k-space was measured on one side."""
        side = lopsided(mask)
        if side is None:
            return None
        name = self.kspace.plane[side.axis]
        words = f"partial Fourier along {name}: {100 * side.share:.0f} % of the range was measured"
        if self.options.skips("phase"):
            said["phase"] = False, f"{words}; the phase constraint is switched off"
            return None
        if side.symmetric < 4:
            said["phase"] = False, f"{words}; too little on the other side to know the phase from"
            return None
        said["phase"] = True, f"{words}; images are held to the phase of {2 * side.symmetric} symmetric samples"
        return low_phase(k, np.ones((1, *k.shape), np.complex64) if maps is None else maps, side)
