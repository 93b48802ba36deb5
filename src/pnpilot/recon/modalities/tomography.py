"""Parallel-beam tomography: from counts on a detector to line integrals, and the axis that the sample turned around."""

from __future__ import annotations

import numpy as np

from ...errors import BadInput, PnPilotError, require
from ...io.raw import SLICE, Raw, Scratch, Stored
from ..options import Options
from ..rays import Fields, Rays, from_counts, from_integrals, from_shares, without_rings
from ..rotation import cut_off, found_centre, gap
from ._sinogram import Sinogram
from .base import MODALITIES, Modality

ANGLE = "angle"
PLAIN = {2: (ANGLE, "x"), 3: (ANGLE, SLICE, "x")}
"""The axes of arrays that do not tell."""
ASKED = 3
"""So many slices are asked for the axis of rotation."""
TURN = 7.0
"""Angles that differ by less than this in all are radians: nobody measures over so few degrees."""
BRIGHTEST = 1.5
"""Shares of photons that passed are at most so much, noise included."""
PER_RAY, PER_PIXEL = 60, 40
"""Bytes that data, weights and conjugate gradients take."""
LARGEST = 2**33
"""Bytes of one slice; more are not what this is for."""


@MODALITIES.register("tomography")
class Tomography(Modality):
    """Tomograms with parallel rays."""

    steps = {"rings": "bring detector pixels that always read too much or too little to those around them"}
    uses = frozenset({"angles", "centre"})
    pixels = np.dtype(np.float32)

    @classmethod
    def takes(cls, raw: Raw, options: Options) -> bool:
        """Also arrays of real numbers that come with angles."""
        return super().takes(raw, options) or (options.angles is not None and raw.pictures and not options.simulate)

    def __init__(self, raw: Raw, options: Options, scratch: Scratch) -> None:  # noqa: ARG002
        assert raw.measured is not None
        self.options, self.notes = options, list(raw.notes)
        self.measured = self._named(raw.measured)
        require(self.measured.data.dtype.kind in "fiu", "projections are real numbers")
        self.flats, self.darks = (self._frames(raw.beside.get(name), name) for name in ("flats", "darks"))
        self.lengths = dict(zip(self.measured.axes or (), map(int, self.measured.data.shape), strict=True))
        views, width = self.lengths[ANGLE], self.lengths["x"]
        require(views > 1 and width > 7, f"{views} angles of {width} rays are no tomogram")
        slices = self.lengths.get(SLICE, 1)
        self.counting, self.shape = ((SLICE,), (slices,)) if slices > 1 else ((), ())
        self.sizes = width, width
        require(self.cost() <= LARGEST, f"one slice of {views} × {width} rays needs {self.cost() / 1e9:.3g} GB")
        self.angles = self._angles(raw.beside.get("angles"), views)
        self.values = self._values()
        self.centre = self._centre(width)

    def _named(self, stored: Stored) -> Stored:
        axes = self.options.names or (stored.axes if stored.axes and ANGLE in stored.axes else None)
        axes = axes or PLAIN.get(len(stored.data.shape))
        known = axes is not None and len(axes) == len(stored.data.shape) and sorted(axes) in map(sorted, PLAIN.values())
        require(known, f"an array {stored.data.shape} of projections needs names: --axes angle,slice,x in any order")
        return Stored(stored.data, axes)

    def _frames(self, stored: Stored | None, name: str) -> Stored | None:
        if stored is None:
            return None
        ours, theirs = (dict(zip(own.axes or (), own.data.shape, strict=True)) for own in (self.measured, stored))
        same = all(theirs.get(axis) == ours.get(axis, 1) for axis in (SLICE, "x"))
        require(
            same, f"the {name} are {stored.data.shape}, which do not go with projections {self.measured.data.shape}"
        )
        return stored

    def _angles(self, stored: Stored | None, views: int) -> np.ndarray:
        if stored is None:
            self.notes.append(
                f"no angles were stored: {views} are taken, evenly over half a turn; --angles gives others"
            )
            return np.arange(views) * 180 / views
        angles = np.asarray(stored.data[...], np.float64).ravel()
        require(len(angles) == views, f"there are {len(angles)} angles for {views} projections")
        require(bool(np.isfinite(angles).all()), "the angles hold NaN or infinite values")
        if np.ptp(angles) < TURN:
            self.notes.append(f"angles from {angles.min():.4g} to {angles.max():.4g} are taken for radians")
            angles = np.rad2deg(angles)
        require(bool(np.ptp(angles) > 0), "all angles are the same")
        return angles

    def _values(self) -> str:
        """What the numbers mean: counts with flats beside them, shares of what passed, or line integrals."""
        if self.flats is not None:
            return "counts"
        first = self._view(self.measured, 0)
        require(bool(np.isfinite(first).all()), "projections hold NaN or infinite values")
        edge = max(1, first.shape[1] // 50)
        air = float(np.median(np.concatenate([first[:, :edge], first[:, -edge:]], 1)))
        whole = self.measured.data.dtype.kind in "iu" or float(first.max()) > 100
        require(not whole, "these are counts, and there is no flat field to compare them with")
        share = first.min() >= 0 and first.max() <= BRIGHTEST and abs(air - 1) < abs(air)
        taken = "shares of photons that passed" if share else "line integrals, the logarithm taken already"
        self.notes.append(f"the numbers, {first.min():.3g} to {first.max():.3g}, are taken for {taken}")
        return "shares" if share else "integrals"

    def _centre(self, width: int) -> float:
        if (given := self.options.centre) is not None:
            require(0 <= given <= width - 1, f"--centre must be on the detector, from 0 to {width - 1}, got {given:g}")
            return float(given)
        found = []
        for number in sorted({int(share * len(self)) for share in (np.arange(ASKED) + 0.5) / ASKED}):
            rays, _ = without_rings(self._rays(number))
            if not rays.lost.all() and rays.integrals.any():
                found.append((found_centre(rays.integrals, self.angles.tolist()), cut_off(rays.integrals)))
        if not found:
            return (width - 1) / 2
        places = [place for place, _ in found]
        centre = float(np.median(places))
        several = f"; {len(found)} slices differ by {np.ptp(places):.2g}" if len(found) > 1 else ""
        self.notes.append(f"the axis of rotation falls onto detector pixel {centre:.2f} of {width}{several}")
        if any(cut for _, cut in found):
            self.notes.append(
                "the sample reaches past the detector: the axis is uncertain (--centre sets it), and so are values "
                "near the edge of what all angles see"
            )
        elif gap(self.angles.tolist()):
            self.notes.append(
                f"the angles leave out {gap(self.angles.tolist()):.3g} degrees: the axis is the point about which the "
                "middle of mass turns, which is less certain (--centre sets it)"
            )
        return centre

    def _view(self, stored: Stored, number: int) -> np.ndarray:
        """The frames of one slice (frame, x)."""
        assert stored.axes is not None
        part = np.asarray(stored.data[tuple(number if axis == SLICE else slice(None) for axis in stored.axes)], float)
        left = [axis for axis in stored.axes if axis != SLICE]
        return part if left[-1] == "x" else part.T

    def _rays(self, number: int) -> Rays:
        values = self._view(self.measured, number)
        require(bool(np.isfinite(values).all()), "projections hold NaN or infinite values")
        if self.flats is None:
            return from_shares(values) if self.values == "shares" else from_integrals(values)
        flats = self._view(self.flats, number)
        darks = None if self.darks is None else self._view(self.darks, number)
        require(bool(np.isfinite(flats).all()), "the flat field holds NaN or infinite values")
        require(darks is None or bool(np.isfinite(darks).all()), "the dark field holds NaN or infinite values")
        return from_counts(values, Fields.of(flats, darks))

    def __getitem__(self, number: int) -> Sinogram:
        try:
            rays = self._rays(number)
        except PnPilotError as error:
            raise BadInput(f"image {number}: {error}") from error
        said: dict[str, tuple[bool, str]] = {}
        if rays.lost.any():
            said["lost rays"] = True, f"{100 * rays.lost.mean():.2g} % of the rays show nothing and count for nothing"
        if self.options.skips("rings"):
            said["rings"] = False, "detector pixels are left as they are"
        else:
            rays, excess = without_rings(rays)
            told = f"detector pixels that differ from those around them, by {excess:.2g}, were brought to them"
            said["rings"] = bool(excess), told if excess else "no detector pixel differs from those around it for sure"
        if rays.known:
            typical = float(np.sqrt(np.median(rays.variance[~rays.lost]))) if not rays.lost.all() else 0.0
            said["noise"] = (
                True,
                f"the flat field shows the noise of every ray, {typical:.2g} as a rule: rays count by it",
            )
        return Sinogram(number, rays, self.angles, self.centre, self.sizes[0], said)

    def cost(self) -> int:
        """By rays and pixels."""
        return PER_RAY * self.lengths[ANGLE] * self.lengths["x"] + PER_PIXEL * self.sizes[0] * self.sizes[1]
