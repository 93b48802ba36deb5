"""Numbers that the paper published, on the data that we have too: PSNR in dB by test set, setting and method."""

from __future__ import annotations

PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "phase12": {
        "alpha=9": {"learned": 40.33},
        "alpha=27": {"learned": 33.90},
        "alpha=81": {"learned": 27.23},
    }
}


def published(dataset: str, setting: str, method: str) -> float | None:
    """The paper's number for a cell, if it has one."""
    return PUBLISHED.get(dataset, {}).get(setting, {}).get(method)
