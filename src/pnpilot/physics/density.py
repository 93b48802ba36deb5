"""How much of k-space each sample of a trajectory stands for."""

from __future__ import annotations

import numpy as np

FINE = 4
"""Samples are told apart by so many steps per cell of k-space."""
ROUNDS = 15
"""Iterations. After ten, only weights next to the zero frequency change, where they are smallest."""


def density_weights(trajectory: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """The weight (samples,) of each sample of a trajectory (samples, 2), rows first, in cycles per pixel.

    Weights make what lies around every sample add up to one (Pipe & Menon, MRM 1999), within a cell of k-space: that of
    an image of these sizes. A sample that is alone in its cell thus has weight one, n that share a cell have 1/n each.
    """
    places = np.rint(trajectory * np.asarray(sizes) * FINE).astype(np.int64)
    places += FINE - places.min(0)
    height, width = (int(length) for length in places.max(0) + FINE + 1)
    bins = places[:, 0] * width + places[:, 1]
    weights = np.ones(len(bins))
    for _ in range(ROUNDS):
        around = np.bincount(bins, weights, height * width).reshape(height, width)
        weights /= _nearby(_nearby(around, 0), 1).ravel()[bins]
    return weights.astype(np.float32)


def _nearby(values: np.ndarray, axis: int) -> np.ndarray:
    """What is within a cell along an axis, the less the further. Edges are empty: nothing comes round."""
    found = values.astype(np.float64)
    for step in range(1, FINE):
        found += (1 - step / FINE) * (np.roll(values, step, axis) + np.roll(values, -step, axis))
    return found
