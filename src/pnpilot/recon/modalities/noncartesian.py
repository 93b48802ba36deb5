"""K-space along a trajectory: spirals, spokes, and whatever else a scanner can draw."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...errors import BadInput, PnPilotError, require
from ...io.raw import COIL, Raw, Scratch, Stored
from ...physics.density import density_weights
from ...physics.nufft import library
from ...problems.noncartesian import outer_noise, outer_samples
from ...whitening import SHARE, noise_covariance
from ..coils import MOST_COILS, fewer_coils, maps_along, mixed
from ..noise import covariance_of, level_of, whitening_by
from ..options import Options
from ..readouts import Readouts
from ._along import Along
from .base import MODALITIES, Modality

MARGIN = 1.125
"""Nothing keeps what lies outside the field of view from being measured: images in work are so much larger."""
PER_PIXEL = 300
"""Bytes per pixel and coil: coil images padded to twice their size, and their transforms."""


@MODALITIES.register("noncartesian")
class NonCartesianScan(Modality):
    """K-space along trajectories such as spirals and spokes, of one coil or several."""

    steps = {
        "whitening": "decorrelate the noise of the coils; by default with a noise scan, or where coils differ much",
        "compression": "combine more than 16 coils to 16",
        "field": "reconstruct a sixteenth beyond each edge of the field of view, and cut it off",
    }
    uses = frozenset({"trajectory", "density", "maps", "noise", "matrix"})

    @classmethod
    def takes(cls, raw: Raw, options: Options) -> bool:  # noqa: ARG003
        """All that comes with a trajectory."""
        return raw.kind == cls.name or "trajectory" in raw.beside

    def __init__(self, raw: Raw, options: Options, scratch: Scratch) -> None:  # noqa: ARG002
        assert raw.measured is not None
        require("trajectory" in raw.beside, "where its samples lie is not told: --trajectory FILE")
        library()
        self.options = options
        self.readouts = Readouts(raw.measured, raw.beside["trajectory"], options)
        self.lengths, self.counting = self.readouts.lengths, self.readouts.counting
        self.shape = tuple(self.lengths[name] for name in self.counting)
        told_matrix = options.matrix or max(raw.matrix.values(), default=None)
        self.positions, matrix, told = self.readouts.placed.cycles(told_matrix)
        self.notes = [*raw.notes, *self.readouts.notes, told]
        self.maps = None if raw.maps is None else self._given_maps(raw.maps)
        wider = matrix if options.skips("field") else 2 * math.ceil(MARGIN * matrix / 2)
        self.sizes, self.field = (matrix, matrix), (wider, wider)
        if self.maps is not None:
            self.sizes = self.field = (self.maps.shape[1], self.maps.shape[2])
        self.density = self._given_density(raw.beside["density"]) if "density" in raw.beside else None
        self.covariance = None if raw.noise is None else covariance_of(raw.noise)
        self.before: tuple[np.ndarray, np.ndarray] | None = None

    def _given_maps(self, stored: Stored) -> np.ndarray:
        maps = np.squeeze(_all(stored))
        names = [name for name, length in zip(stored.axes or (), stored.data.shape, strict=False) if length > 1]
        if {COIL, "y", "x"} == set(names):
            maps = maps.transpose([names.index(name) for name in (COIL, "y", "x")])
        coils = self.readouts.coils
        fits = maps.ndim == 3 and len(maps) == coils and bool(np.isfinite(maps).all())
        require(fits, f"coil maps must be finite, and ({coils}, rows, columns) for {coils} coils; got {maps.shape}")
        return maps.astype(np.complex64)

    def _given_density(self, stored: Stored) -> np.ndarray:
        density, shape = np.squeeze(_all(stored)).real.astype(np.float32), self.positions.shape[:-1]
        require(density.shape == shape, f"the density has shape {density.shape}, the trajectory {shape} samples")
        right = bool(np.isfinite(density).all() and (density >= 0).all() and density.any())
        require(right, "the density holds NaN, infinite or negative weights, or nothing but zeros")
        return density

    def __getitem__(self, number: int) -> Along:
        try:
            return self._prepared(number)
        except PnPilotError as error:
            raise BadInput(f"image {number}: {error}") from error

    def _prepared(self, number: int) -> Along:
        said: dict[str, tuple[bool, str]] = {}
        where = self.place(number)
        k = self.readouts.samples(where)
        trajectory = self.readouts.own(self.positions, where).reshape(-1, 2)
        full = math.pi * float(np.linalg.norm(trajectory * np.asarray(self.field), axis=1).max()) ** 2
        weights = self._weights(trajectory) * k.any(0)
        kept = min(1.0, float(weights.sum()) / full)
        dense = "estimated" if self.density is None else "as given"
        said["density"] = True, f"{100 * kept:.3g} % of k-space measured; weights of samples {dense}"
        if self.density is not None:
            weights = self.readouts.own(self.density, where).reshape(-1) * k.any(0)
        y, way = torch.from_numpy(np.array(k)), torch.from_numpy(trajectory.astype(np.float32))
        if not (k * weights).any():
            unseen = torch.ones(len(k), *self.field, dtype=torch.complex64)
            return Along(number, torch.zeros_like(y), way, torch.ones(len(trajectory)), unseen, said=said)
        mix, sigma = np.eye(len(k), dtype=np.complex64), None
        if len(k) > 1:
            outer = outer_samples(y[None], way[None], SHARE)[0]
            white, said["whitening"] = whitening_by(
                lambda: noise_covariance(outer), len(k), self.covariance, self.options
            )
            mix = mix if white is None else white
            if white is not None and self.covariance is not None:
                shown = float(outer_noise(torch.from_numpy(_mixed(mix, k))[None], way[None]))
                sigma, said["noise level"] = level_of(self.covariance, shown)
        fewer = np.eye(len(k), dtype=np.complex64)
        if len(k) > MOST_COILS:
            fewer, said["compression"] = fewer_coils(_mixed(mix, k) * np.sqrt(weights), self.options)
        # Back to the coils as they were; those that compression left out have next to no signal in units of noise.
        unmix = np.linalg.inv(mix) @ fewer.conj().T
        mix = fewer @ mix
        maps, source = self._maps(_mixed(mix, k), trajectory, weights, mix, unmix)
        if source:
            said["coil maps"] = True, source
        y, weighing, behind = torch.from_numpy(_mixed(mix, k)), torch.from_numpy(weights), torch.from_numpy(maps)
        return Along(number, y, way, weighing, behind, kept, source, sigma, said)

    def _maps(
        self, k: np.ndarray, trajectory: np.ndarray, weights: np.ndarray, mix: np.ndarray, unmix: np.ndarray
    ) -> tuple[np.ndarray, str]:
        """Coil maps (coils, H, W) of mixed coils, and what they are from."""
        if self.maps is not None:
            return mixed(mix, self.maps), "maps that were given"
        if len(mix[0]) == 1:
            return np.ones((1, *self.field), np.complex64), ""
        return maps_along(k, trajectory, weights, self.field, unmix)

    def _weights(self, trajectory: np.ndarray) -> np.ndarray:
        """Kept for the next image: it has the same trajectory most of the time."""
        if self.before is None or not np.array_equal(self.before[0], trajectory):
            self.before = trajectory, density_weights(trajectory, self.field)
        return self.before[1]

    def cost(self) -> int:
        """By coils."""
        return PER_PIXEL * min(self.readouts.coils, MOST_COILS) * math.prod(self.field)


def _mixed(matrix: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Combinations of coils (coils, samples)."""
    return np.asarray(matrix @ samples).astype(np.complex64)


def _all(stored: Stored) -> np.ndarray:
    return np.asarray(stored.data[tuple(slice(None) for _ in stored.data.shape)])
