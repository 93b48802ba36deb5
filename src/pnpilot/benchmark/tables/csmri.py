"""The paper's tables of CS-MRI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .base import TABLES, Table

PUBLISHED_METHODS = ("recpf", "fcsa", "admm-net", "ista-net+", "bm3d-mri", "ircnn", "learned")
_MICCAI = {
    "x2 sigma=5": (36.39, 34.90, 36.74, 38.17, 36.00, 38.42, 38.57),
    "x2 sigma=10": (31.95, 30.12, 34.20, 34.81, 31.39, 34.93, 35.06),
    "x2 sigma=15": (28.91, 26.68, 31.42, 32.65, 28.46, 32.81, 33.09),
    "x4 sigma=5": (33.05, 32.30, 34.15, 35.46, 34.79, 35.80, 36.11),
    "x4 sigma=10": (30.21, 29.56, 32.58, 33.13, 31.63, 32.99, 33.07),
    "x4 sigma=15": (28.13, 26.93, 30.55, 31.48, 29.35, 30.98, 31.42),
    "x8 sigma=5": (28.35, 28.71, 30.36, 31.62, 31.34, 31.66, 32.64),
    "x8 sigma=10": (26.86, 27.68, 29.78, 30.54, 29.86, 30.16, 30.89),
    "x8 sigma=15": (25.70, 26.35, 28.83, 29.50, 28.53, 28.72, 29.65),
}
_MEDICAL7 = {
    "x2 sigma=5": (32.46, 31.70, 33.10, 34.58, 33.33, 34.67, 34.78),
    "x2 sigma=10": (29.48, 28.33, 31.37, 31.81, 29.44, 31.80, 32.00),
    "x2 sigma=15": (27.08, 25.52, 29.16, 29.99, 26.90, 29.96, 30.27),
    "x4 sigma=5": (28.67, 28.21, 30.24, 31.34, 30.33, 31.36, 31.62),
    "x4 sigma=10": (26.98, 26.67, 29.20, 29.71, 28.30, 29.52, 29.68),
    "x4 sigma=15": (25.58, 24.93, 27.87, 28.38, 26.66, 27.94, 28.43),
    "x8 sigma=5": (24.72, 24.62, 26.57, 27.65, 26.53, 27.32, 28.26),
    "x8 sigma=10": (23.94, 24.04, 26.21, 26.90, 25.81, 26.44, 27.35),
    "x8 sigma=15": (23.18, 23.36, 25.49, 26.23, 25.09, 25.53, 26.41),
}


def _by_method(rows: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    return {setting: dict(zip(PUBLISHED_METHODS, row, strict=True)) for setting, row in rows.items()}


@TABLES.register("csmri")
class CSMRITable(Table):
    """CS-MRI, as in the paper: nine settings on its two test sets, or what we have of them."""

    title = "CS-MRI"
    datasets = ("brain50", "medical4")
    order = ("zero-filled", "tv", "recpf", "fcsa", "admm-net", "ista-net+", "bm3d-mri", "dpir", "ircnn")
    published = {"brain50": _by_method(_MICCAI), "medical4": _by_method(_MEDICAL7)}
    notes = {
        "brain50": "on its MICCAI. Very likely the same images, not proven.",
        "medical4": "on its Medical7. Four of its seven images are here, so the means cannot be compared.",
    }
