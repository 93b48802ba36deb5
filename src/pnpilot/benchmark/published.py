"""Numbers that the paper published, on the data that we have too: PSNR in dB by test set, setting and method."""

from __future__ import annotations

PHASE_METHODS = ("hio-free", "hio", "wf", "dolphin", "spar", "bm3d-prgamp", "prdeep", "learned")
"""The paper has one row for HIO and does not say in which reading."""
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "phase12": {
        label: dict(zip(PHASE_METHODS, (row[0], *row), strict=True))
        for label, row in {
            "alpha=9": (35.96, 34.46, 29.93, 35.20, 40.25, 39.70, 40.33),
            "alpha=27": (25.76, 24.96, 27.45, 31.82, 32.84, 33.54, 33.90),
            "alpha=81": (14.82, 15.76, 19.35, 22.44, 25.43, 26.82, 27.23),
        }.items()
    },
    "set12": {"sigma=50": {"dncnn": 27.18, "memnet": 27.32, "unet": 27.40}},
}

CSMRI_METHODS = ("recpf", "fcsa", "admm-net", "ista-net+", "bm3d-mri", "ircnn", "learned")
CSMRI_SETS = {"brain50": "MICCAI", "medical4": "Medical7"}
"""Where the paper's numbers are from: brain50 is very likely its MICCAI; medical4 are four of its Medical7, so that
means over them cannot be compared with its own."""
_CSMRI = {
    "MICCAI": {
        "x2 sigma=5": (36.39, 34.90, 36.74, 38.17, 36.00, 38.42, 38.57),
        "x2 sigma=10": (31.95, 30.12, 34.20, 34.81, 31.39, 34.93, 35.06),
        "x2 sigma=15": (28.91, 26.68, 31.42, 32.65, 28.46, 32.81, 33.09),
        "x4 sigma=5": (33.05, 32.30, 34.15, 35.46, 34.79, 35.80, 36.11),
        "x4 sigma=10": (30.21, 29.56, 32.58, 33.13, 31.63, 32.99, 33.07),
        "x4 sigma=15": (28.13, 26.93, 30.55, 31.48, 29.35, 30.98, 31.42),
        "x8 sigma=5": (28.35, 28.71, 30.36, 31.62, 31.34, 31.66, 32.64),
        "x8 sigma=10": (26.86, 27.68, 29.78, 30.54, 29.86, 30.16, 30.89),
        "x8 sigma=15": (25.70, 26.35, 28.83, 29.50, 28.53, 28.72, 29.65),
    },
    "Medical7": {
        "x2 sigma=5": (32.46, 31.70, 33.10, 34.58, 33.33, 34.67, 34.78),
        "x2 sigma=10": (29.48, 28.33, 31.37, 31.81, 29.44, 31.80, 32.00),
        "x2 sigma=15": (27.08, 25.52, 29.16, 29.99, 26.90, 29.96, 30.27),
        "x4 sigma=5": (28.67, 28.21, 30.24, 31.34, 30.33, 31.36, 31.62),
        "x4 sigma=10": (26.98, 26.67, 29.20, 29.71, 28.30, 29.52, 29.68),
        "x4 sigma=15": (25.58, 24.93, 27.87, 28.38, 26.66, 27.94, 28.43),
        "x8 sigma=5": (24.72, 24.62, 26.57, 27.65, 26.53, 27.32, 28.26),
        "x8 sigma=10": (23.94, 24.04, 26.21, 26.90, 25.81, 26.44, 27.35),
        "x8 sigma=15": (23.18, 23.36, 25.49, 26.23, 25.09, 25.53, 26.41),
    },
}

PLUGGED_IN = {"dncnn": 25.43, "memnet": 25.67, "unet": 25.76}
"""PSNR of the paper's PnP with each denoiser, on its Medical7, which is not our medical4: most likely ×8 and σ=15."""
MILLISECONDS = {"dncnn": 8.09, "memnet": 64.65, "unet": 5.65}
"""Per image of 256×256, on the authors' GPU."""


def published(dataset: str, setting: str, method: str) -> float | None:
    """The paper's number for a cell, if it has one."""
    return PUBLISHED.get(dataset, {}).get(setting, {}).get(method)


def published_csmri(dataset: str, setting: str, method: str) -> float | None:
    """The paper's CS-MRI number for a cell, on its own set that `CSMRI_SETS` names."""
    row = _CSMRI.get(CSMRI_SETS.get(dataset, ""), {}).get(setting)
    return row[CSMRI_METHODS.index(method)] if row and method in CSMRI_METHODS else None


def printed(task: str, dataset: str, setting: str, method: str) -> float | None:
    """The paper's number for a cell of the comparison with other methods."""
    return (published_csmri if task == "csmri" else published)(dataset, setting, method)
