"""Where the axis of rotation falls onto the detector of a tomograph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..physics import ParallelBeam

WIDTH, VIEWS, RAYS = 256, 90, 3
"""What is looked at is binned to about so many detector pixels, of so many angles; and to so many pixels an angle."""
REACH = 6
"""Searched on either side of the first guess, in binned pixels; the whole middle third where there is none."""
GAP, STEPS = 10.0, 3.0
"""Angles that leave out more than so many degrees, and so many of their usual steps, do not cover half a turn."""
CUT = 0.15
"""A sample that shows so much of the largest line integral at an end of the detector does not fit onto it."""


def cut_off(integrals: np.ndarray) -> bool:
    """Whether the sample reaches past the detector, by its line integrals (angle, x)."""
    edge = max(1, integrals.shape[1] // 50)
    ends = [float(np.median(part)) for part in (integrals[:, :edge], integrals[:, -edge:])]
    return max(ends) > CUT * float(np.percentile(integrals, 99))


def gap(angles: Sequence[float]) -> float:
    """How many degrees of the half turn are left out by angles in degrees; zero if they cover it."""
    turned = np.sort(np.asarray(angles) % 180)
    steps = np.diff(turned, append=turned[0] + 180)
    usual = float(np.median(steps[steps > 1e-3]))  # full turns come by twice
    largest = float(steps.max())
    return largest if largest > max(GAP, STEPS * usual) else 0.0


def found_centre(integrals: np.ndarray, angles: Sequence[float]) -> float:
    """The detector pixel onto which the axis falls, from line integrals (angle, x) and angles in degrees.

    The middle of mass of a projection moves along a sine around it, and the line integrals of a reconstruction around
    another axis fit the data less well; the best of those is taken. Where angles are left out, those fits mislead: the
    first alone counts, unless the sample is cut off.
    """
    bins = max(1, round(integrals.shape[1] / min(WIDTH, max(RAYS * len(integrals), 32))))
    every = max(1, round(len(integrals) / VIEWS))
    chosen = integrals[::every, : integrals.shape[1] // bins * bins]
    small = chosen.reshape(len(chosen), -1, bins).mean(-1)
    turned = np.asarray(angles)[::every]
    cut = cut_off(integrals)
    guess = (small.shape[1] - 1) / 2 if cut else _balance(small, turned)
    if gap(angles) and not cut:
        return guess * bins + (bins - 1) / 2
    reach = small.shape[1] / 6 if cut else REACH
    y, views = torch.from_numpy(small).float()[None, None], torch.from_numpy(turned)

    def misfit(centre: float) -> float:
        rays = ParallelBeam(views, small.shape[1], centre=centre)
        image = rays.fbp(y)
        if not cut:  # beyond what all angles see there is nothing but junk
            image = image * rays.seen()
        return float((rays.A(image) - y).square().mean())

    step = max(1.0, reach / REACH)
    tried = {float(place): misfit(place) for place in np.arange(guess - reach, guess + reach + step / 2, step)}
    while True:
        best = min(tried, key=lambda place: tried[place])
        for place in (best - step, best + step):
            if place not in tried:
                tried[place] = misfit(place)
        if min(tried, key=lambda place: tried[place]) == best and step <= 1:
            break
        step = max(1.0, step / 2) if min(tried, key=lambda place: tried[place]) == best else step
    before, here, after = tried[best - step], tried[best], tried[best + step]
    bend = before - 2 * here + after
    best += 0.5 * step * (before - after) / bend if bend > 0 else 0.0
    return best * bins + (bins - 1) / 2


def _balance(integrals: np.ndarray, angles: np.ndarray) -> float:
    """The mean of the sine along which the middle of mass moves; held to the detector."""
    pixels, turn = np.arange(integrals.shape[1]), np.deg2rad(angles)
    mass = np.clip(integrals, 0.05 * np.percentile(integrals, 99), None) - 0.05 * np.percentile(integrals, 99)
    middle = (mass * pixels).sum(1) / np.maximum(mass.sum(1), 1e-30)
    sines = np.stack([np.ones_like(turn), np.cos(turn), np.sin(turn)], 1)
    mean = float(np.linalg.lstsq(sines, middle, rcond=None)[0][0])
    return min(max(mean, 0.1 * pixels[-1]), 0.9 * pixels[-1])
