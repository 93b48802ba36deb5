"""ISMRMRD's raw data: a list of acquired lines and an XML header, in HDF5."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import BadInput, require
from ..raw import COIL, SLICE, Raw, Scratch, Stored, checked_shape
from . import _hdf5, _mrd_header, _mrd_lines, _mrd_trajectory
from ._mrd_geometry import geometry
from .base import READERS, Reader

IMAGES = {"repetition": "repetition", "phase": "phase", "contrast": "contrast", "set": "preparation", "slice": SLICE}
"""Counters that tell images apart, and the names of their axes; `set` means sets of coil maps elsewhere."""
NOISE_SAMPLES = 8192


@READERS.register("mrd")
class Mrd(Reader):
    """ISMRMRD (MRD) raw data, Cartesian or with trajectories, in HDF5."""

    suffixes = (".mrd", ".h5", ".hdf5")
    known_by = "HDF5 with a group that holds `xml` and `data`"
    shape = "repetition, phase, contrast, preparation and slice where there are several; coil; z of volumes; y; x"
    units = "arbitrary"
    extra = "mri"

    @classmethod
    def knows(cls, path: Path, head: bytes) -> bool:
        """By what is in it."""
        return _hdf5.is_hdf5(head) and _mrd_lines.group_of(path) is not None

    @classmethod
    def fragile(cls, head: bytes) -> bool:
        """All HDF5."""
        return _hdf5.is_hdf5(head)

    def read(self, path: Path, scratch: Scratch, key: str | None = None) -> Raw:
        """Sort all lines into k-space on disk. `key` names the group."""
        with _sorter(path, key) as sorter:
            return sorter.raw(scratch)

    def risk(self, path: Path, scratch: Scratch, key: str | None = None) -> None:  # noqa: ARG002
        """Let the library read every line once; what is done with them afterwards is safe."""
        with _sorter(path, key):
            pass


@contextlib.contextmanager
def _sorter(path: Path, key: str | None) -> Iterator[Sorter]:
    name = _mrd_lines.group_of(path, key)
    require(name is not None, f"no group {key!r} in it holds acquisitions" if key else "it holds no acquisitions")
    with _hdf5.opened(path) as file:
        xml = _hdf5.text(_hdf5.find(file, f"{name}/xml"), "its XML header", _mrd_header.LARGEST)
        encoding = _mrd_header.encoding(_mrd_header.parsed(xml))
        yield Sorter(_hdf5.find(file, f"{name}/data"), encoding, path.stat().st_size)


class Sorter:
    """Sorts the lines of one file into k-space."""

    def __init__(self, data: Any, encoding: Any, size: int) -> None:
        way = getattr(encoding.trajectory, "value", encoding.trajectory)
        self.way, self.along = way, way not in ("cartesian", "epi")
        self.data, self.encoding, self.size = data, encoding, size
        self.heads = heads = _mrd_lines.heads(data)
        self.notes: list[str] = []
        if way == "epi":
            self.notes.append("echo-planar lines are taken as they are: no ghosts are corrected")
        others, elsewhere = _mrd_lines.flagged(heads, *_mrd_lines.NEITHER), heads["encoding_space_ref"] != 0
        self.noise = _mrd_lines.flagged(heads, "NOISE_MEASUREMENT") & ~others
        self._tell(others, "of navigators, corrections and the like are left out")
        self._tell(elsewhere & ~others & ~self.noise, "of a second encoding are left out")
        useful = ~(others | self.noise | elsewhere)
        both = _mrd_lines.flagged(heads, "PARALLEL_CALIBRATION_AND_IMAGING")
        alone = _mrd_lines.flagged(heads, "PARALLEL_CALIBRATION") & ~both
        self.imaging = useful & ~alone
        # Calibration lines that are all among those of the images need no k-space of their own.
        self.calibrating = useful & (alone | both) if (useful & alone).any() else np.zeros_like(useful)
        require(bool(self.imaging.any()), "none of its acquisitions is a line of an image")

    def raw(self, scratch: Scratch) -> Raw:
        """Everything that the file holds."""
        heads = self.heads[self.imaging]
        self.values = {name: np.unique(heads[name]) for name in IMAGES}
        self.counted = [name for name in IMAGES if len(self.values[name]) > 1]
        self.volume = len(np.unique(heads["kspace_encode_step_2"])) > 1
        self.matrix = _mrd_header.encoded(self.encoding)
        self.coils = _mrd_lines.one(heads["active_channels"], "coils")
        if self.along:
            return self._along(heads, scratch)
        self.samples = _mrd_lines.one(heads["number_of_samples"], "samples")
        space = ("z", "y", "x") if self.volume else ("y", "x")
        axes = (*(IMAGES[name] for name in self.counted), COIL, *space)
        counts = [len(self.values[name]) for name in self.counted]
        self.shape = (*counts, self.coils, *(self.matrix[axis] for axis in space))
        lines = min(self.size, 8 * len(heads) * self.coils * self.samples)
        checked_shape(self.shape, np.dtype(np.complex64), lines, "its k-space")
        several = [name for name in self.counted if name != "slice"]
        self.notes += [f"{len(self.values[name])} {IMAGES[name]}s are separate images" for name in several]
        kspace, repeats = self._sorted(self.imaging, scratch)
        self._tell_repeats(heads, repeats)
        raw = Raw(Stored(kspace, axes), "hdf5", notes=self.notes)
        if self.noise.any():
            raw.noise = self._noise(repeats)
        self.calibrating &= self.heads["active_channels"] == self.coils
        for name in self.counted:
            self.calibrating &= np.isin(self.heads[name], self.values[name])
        if self.calibrating.any():
            raw.calibration = self._calibration(axes, scratch)
        raw.matrix = _mrd_header.final(self.encoding, {axis: self.matrix[axis] for axis in space})
        raw.oversampled = "x" if "x" in raw.matrix else None
        raw.geometry = geometry(heads, self.encoding, self.values["slice"], self.notes)
        return raw

    def _along(self, heads: np.ndarray, scratch: Scratch) -> Raw:
        """Of other trajectories than lines."""
        placed = bool((heads["trajectory_dimensions"] > 0).all())
        require(placed, f"its trajectory is {self.way}, and its acquisitions do not say where their samples lie")
        require(not self.volume, "its trajectory is that of a volume: only slices are reconstructed")
        images = [np.searchsorted(self.values[name], heads[name]) for name in self.counted]
        names = [IMAGES[name] for name in self.counted]
        raw = _mrd_trajectory.along(self.data, self.heads, self.imaging, images, names, scratch)
        raw.notes = [*self.notes, *raw.notes]
        raw.matrix = {axis: self.matrix[axis] for axis in "yx"}
        raw.noise = self._noise(np.ones(1)) if self.noise.any() else None
        raw.geometry = geometry(heads, self.encoding, self.values["slice"], self.notes)
        return raw

    def _sorted(self, wanted: np.ndarray, scratch: Scratch) -> tuple[np.ndarray, np.ndarray]:
        """K-space, and how often each of its lines was measured. Lines measured more than once are averaged."""
        heads = self.heads[wanted]
        limits = self.encoding.encodingLimits
        at = [np.searchsorted(self.values[name], heads[name]) for name in self.counted]
        steps = [(2, "z"), (1, "y")] if self.volume else [(1, "y")]
        along = [
            _mrd_lines.places(
                heads[f"kspace_encode_step_{step}"],
                self.matrix[axis],
                getattr(limits, f"kspace_encoding_step_{step}"),
                axis,
            )
            for step, axis in steps
        ]
        first = _mrd_lines.starts(heads, self.matrix["x"])
        kspace = scratch.array(self.shape)
        repeats = np.zeros((*self.shape[: len(at)], *self.shape[len(at) + 1 : -1]), np.int32)
        for row, (_, line) in enumerate(_mrd_lines.lines(self.data, self.heads, wanted)):
            image, place = tuple(where[row] for where in at), tuple(where[row] for where in along)
            index = (*image, slice(None), *place, slice(first[row], first[row] + line.shape[1]))
            kspace[index] += line
            repeats[image + place] += 1
        for where in map(tuple, np.argwhere(repeats > 1)):
            index = (*where[: len(at)], slice(None), *where[len(at) :])
            kspace[index] /= repeats[where]
        return kspace, repeats

    def _calibration(self, axes: tuple[str, ...], scratch: Scratch) -> Stored | None:
        try:
            return Stored(self._sorted(self.calibrating, scratch)[0], axes)
        except BadInput as error:
            self.notes.append(f"the calibration scan is left out: {error}")
            return None

    def _noise(self, repeats: np.ndarray) -> Stored | None:
        """The noise scan, as strong as noise is in k-space: it was perhaps read at another speed, and not averaged."""
        scan, found = self.heads[self.noise], []
        if len(np.unique(scan["active_channels"])) > 1 or scan["active_channels"][0] != self.coils:
            self.notes.append("the noise scan has other coils than the images and is left out")
            return None
        for _, line in _mrd_lines.lines(self.data, self.heads, self.noise):
            found.append(line)
            if sum(part.shape[1] for part in found) >= NOISE_SAMPLES:
                break
        samples = np.concatenate(found, 1)[:, :NOISE_SAMPLES]
        if samples.size == 0:
            return None
        times = [float(np.median(heads["sample_time_us"])) for heads in (scan, self.heads[self.imaging])]
        scale = times[0] / times[1] if all(0 < time < np.inf for time in times) else 1.0
        self.notes.append(f"noise scan of {samples.shape[1]} samples")
        return Stored(samples * np.float32(np.sqrt(scale / repeats[repeats > 0].mean())), (COIL, "sample"))

    def _tell(self, which: np.ndarray, what: str) -> None:
        if which.any():
            self.notes.append(f"{int(which.sum())} lines {what}")

    def _tell_repeats(self, heads: np.ndarray, repeats: np.ndarray) -> None:
        averages = len(np.unique(heads["average"]))
        if averages > 1:
            self.notes.append(f"averaged {averages} averages")
        elif (repeats > 1).any():
            self.notes.append(f"{int((repeats > 1).sum())} lines were measured more than once and are averaged")
