"""Line integrals from the counts of X-rays: what passed, its logarithm, and how well every ray is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import require

DEAD = 0.05
"""Detector pixels with less than this share of the usual flat field see nothing."""
FEWEST_FLATS = 3
"""At least so many show how much they vary."""
NEIGHBOURS = np.array([-21, 14, 39, 54, 0, 54, 39, 14, -21]) / 172
"""Rings: what a detector pixel should read by those around it, exact for cubic polynomials."""
PASSES = 3
"""Of taking rings off: at first, what one pixel reads too much counts as too little in those around it."""
LEAST = 1e-4
"""A ray of which less passed is lost."""


@dataclass(frozen=True)
class Fields:
    """The detector without a sample: its flat field less the dark one, its noise, and the pixels that see nothing."""

    dark: np.ndarray
    flat: np.ndarray
    gain: float | None
    """Variance over mean of what is counted, where flats show it."""
    read: float
    """The variance of dark frames."""

    @classmethod
    def of(cls, flats: np.ndarray, darks: np.ndarray | None) -> Fields:
        """From the frames (frame, x) of a slice."""
        dark = np.zeros(flats.shape[1]) if darks is None else np.median(darks, 0)
        read = 0.0 if darks is None or len(darks) < 2 else float(np.median(darks.var(0, ddof=1)))
        open_ = flats - dark
        flat = np.median(open_, 0)
        usual = float(np.median(flat))
        require(usual > 0, "the flat field is not brighter than the dark one")
        gain = None
        if len(flats) >= FEWEST_FLATS:
            even = open_ * (flat.mean() / np.maximum(open_.mean(1, keepdims=True), 1e-30))  # the beam itself flickers
            alive = flat > DEAD * usual
            gain = float(np.median((even[:, alive].var(0, ddof=1) - read) / flat[alive]))
            gain = gain if gain > 0 else None
        return cls(dark, flat, gain, read)

    @property
    def dead(self) -> np.ndarray:
        """Detector pixels that see nothing (x,)."""
        return ~(self.flat > DEAD * np.median(self.flat))


@dataclass(frozen=True)
class Rays:
    """Line integrals (angle, x) of one slice; those of lost rays are filled in from beside them."""

    integrals: np.ndarray
    variance: np.ndarray
    """Of each of them, infinite for lost rays; in arbitrary units if `known` is False."""
    known: bool

    @property
    def lost(self) -> np.ndarray:
        """Which rays show nothing (angle, x)."""
        return ~np.isfinite(self.variance)


def from_counts(counts: np.ndarray, fields: Fields) -> Rays:
    """−log of what passed. A ray of n counts has the variance (gain·n + read²)/n²."""
    seen = counts - fields.dark
    flat = np.where(fields.dead, 1.0, fields.flat)
    passed = seen / flat
    lost = fields.dead | ~(passed > LEAST)
    # Not the noisy counts themselves: rays that happen to be dark would count for less than they should.
    expected = np.maximum(_smoothed(seen, lost), LEAST * flat)
    variance = ((fields.gain or 1.0) * expected + fields.read) / np.square(expected)
    return _filled(-np.log(np.where(lost, 1.0, passed)), np.where(lost, np.inf, variance), fields.gain is not None)


def from_shares(passed: np.ndarray) -> Rays:
    """From the share of photons that passed: variances are known but for a factor."""
    lost = ~(passed > LEAST)
    expected = np.maximum(_smoothed(passed, lost), LEAST)
    return _filled(-np.log(np.where(lost, 1.0, passed)), np.where(lost, np.inf, 1 / expected), False)


def from_integrals(integrals: np.ndarray) -> Rays:
    """Line integrals as they are: every ray counts the same."""
    return Rays(integrals, np.ones_like(integrals), False)


def without_rings(rays: Rays) -> tuple[Rays, float]:
    """Rays whose detector pixels agree with those around them, and by how much they did not.

    What one pixel reads too much at every angle becomes a ring. The sample turns, so that in the median over angles
    hardly anything of it is left when a pixel is compared with those around it.
    """
    excess, reach = np.zeros(rays.integrals.shape[1]), len(NEIGHBOURS) // 2
    if len(excess) < 2 * len(NEIGHBOURS):
        return rays, 0.0
    for _ in range(PASSES):
        left = np.pad(rays.integrals - excess, ((0, 0), (reach, reach)), mode="edge")
        usual = np.lib.stride_tricks.sliding_window_view(left, len(NEIGHBOURS), 1) @ NEIGHBOURS
        excess = excess + np.median(left[:, reach:-reach] - usual, 0)
    return replace(rays, integrals=rays.integrals - excess), float(np.sqrt(np.mean(np.square(excess))))


def _filled(integrals: np.ndarray, variance: np.ndarray, known: bool) -> Rays:
    lost = ~np.isfinite(variance)
    pixels = np.arange(integrals.shape[1])
    for view in np.flatnonzero(lost.any(1) & ~lost.all(1)):
        gone = lost[view]
        integrals[view, gone] = np.interp(pixels[gone], pixels[~gone], integrals[view, ~gone])
    return Rays(integrals, variance, known)


def _smoothed(values: np.ndarray, lost: np.ndarray, width: int = 5) -> np.ndarray:
    """Means along the detector, of the rays that are not lost."""
    kernel = np.ones(width)
    sums, counts = (
        np.apply_along_axis(np.convolve, 1, part, kernel, "same") for part in (np.where(lost, 0.0, values), 1.0 - lost)
    )
    return sums / np.maximum(counts, 1)
