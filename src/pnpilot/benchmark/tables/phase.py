"""The paper's table of phase retrieval."""

from __future__ import annotations

from .base import TABLES, Table

_METHODS = ("hio-free", "hio", "wf", "dolphin", "spar", "bm3d-prgamp", "prdeep")


@TABLES.register("phase")
class PhaseTable(Table):
    """Coded-diffraction phase retrieval, as in the paper; random masks are drawn apart from the noise."""

    title = "Phase retrieval"
    datasets = ("phase12",)
    order = _METHODS
    published = {
        "phase12": {
            # The paper has one row for HIO: it stands beside both of ours.
            label: dict(zip((*_METHODS, "learned"), (row[0], *row), strict=True))
            for label, row in {
                "alpha=9": (35.96, 34.46, 29.93, 35.20, 40.25, 39.70, 40.33),
                "alpha=27": (25.76, 24.96, 27.45, 31.82, 32.84, 33.54, 33.90),
                "alpha=81": (14.82, 15.76, 19.35, 22.44, 25.43, 26.82, 27.23),
            }.items()
        }
    }
    notes = {"phase12": "on the same twelve images. It has one row for HIO and does not say in which reading."}
    seeds = 3
    draws = 1
