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
AROUND = len(NEIGHBOURS) // 2
"""So many on either side."""
OUTLIER, ODD, ALIKE = 4.0, 2.5, 5.0
"""A pixel stands out by so many standard deviations. It must do so alone: others near it count that are odd by so many
standard deviations, and by more than a fifth of what it is."""
QUARTER = 0.3186
"""Standard deviations from the middle of a normal distribution within which a quarter of it lies."""
MEDIAN = 1.25
"""The standard error of a median, in those of a mean."""
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
    hardly anything of it is left when a pixel is compared with those around it. That is not so for the edges of a
    sample in the middle, such as a tube: only what cannot be one of those is taken off. Pixels that stand out must do
    so alone, and all others must differ no more than most of the detector does, and more than noise explains.
    """
    views, width = rays.integrals.shape
    if width < 2 * len(NEIGHBOURS):
        return rays, 0.0
    beside = _beside(rays.integrals)
    odd = np.median(beside, 0)
    noise = MEDIAN * float(np.median(_spread(beside - odd))) / float(np.sqrt(views))
    usual, spikes = max(noise, float(_spread(odd))), np.zeros(width)
    for _ in range(PASSES):  # what stands out makes the rest look worse than it is
        spikes = _spikes(odd, spikes, ODD * usual)
        usual = max(noise, float(_spread(odd - _beside(spikes))))
    spikes = np.where(_alone(spikes) & (np.abs(spikes) > OUTLIER * usual), spikes, 0)
    excess = spikes + _even(odd - _beside(spikes), usual, noise)
    return replace(rays, integrals=rays.integrals - excess), float(np.sqrt(np.mean(np.square(excess))))


def _beside(values: np.ndarray) -> np.ndarray:
    """By how much values (..., x) are more than they should be by those around them."""
    wide = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(AROUND, AROUND)], mode="edge")
    return np.asarray(values - np.lib.stride_tricks.sliding_window_view(wide, len(NEIGHBOURS), -1) @ NEIGHBOURS)


def _spread(values: np.ndarray) -> np.ndarray:
    """The standard deviation along the first axis around zero, by the quarter nearest to it: edges may take half."""
    return np.percentile(np.abs(values), 25, 0) / QUARTER


def _spikes(odd: np.ndarray, spikes: np.ndarray, least: float) -> np.ndarray:
    """What single pixels read too much, by what is odd beside their neighbours: more of it, the largest first."""
    spikes, left = spikes.copy(), odd - _beside(spikes)
    for _ in odd:
        at = int(np.abs(left).argmax())
        if abs(left[at]) <= least:
            break
        one = np.zeros_like(odd)
        one[at] = left[at]
        spikes, left = spikes + one, left - _beside(one)
    return spikes


def _alone(spikes: np.ndarray) -> np.ndarray:
    """Which pixels (x,) are next to no spikes of a fifth of their size but one: edges of a sample take several."""
    size = np.abs(spikes)
    return (size > 0) & ((_around(size) >= size[:, None] / ALIKE).sum(1) <= 2)


def _even(odd: np.ndarray, usual: float, noise: float) -> np.ndarray:
    """What pixels read too much where none around them stands out, as far as noise is less than what is usual."""
    excess = np.zeros_like(odd)
    for _ in range(PASSES):
        excess = excess + odd - _beside(excess)
    calm = _around(np.abs(excess)).max(1) <= OUTLIER * usual
    return np.where(calm, (1 - (noise / max(usual, 1e-30)) ** 2) * excess, 0)


def _around(values: np.ndarray) -> np.ndarray:
    """Every value (x,) with those around it: (x, neighbours)."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(values, AROUND), len(NEIGHBOURS))


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
