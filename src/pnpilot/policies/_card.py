"""What the card of a trained policy must say before anything is built from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import require
from ._observe import OBSERVATIONS

LARGEST = {"iterations": 1000, "per_decision": 100, "width": 256, "channels": 1000}
"""The largest numbers a shape may have: otherwise a network of any size would be built before it is refused."""
NAMES = ("method", "task", "solver", "denoiser")
LONGEST_NAME = 100


def check_card(card: Mapping[str, Any]) -> None:
    """Refuse a card that does not name its parts or whose network has no possible shape."""
    for field in NAMES:
        name = card.get(field)
        require(isinstance(name, str) and 0 < len(name) <= LONGEST_NAME, f"its {field} is no name")
    trained_with = card.get("denoiser_sha256")
    require(trained_with is None or isinstance(trained_with, str), "its denoiser_sha256 is no text")
    physics = card.get("physics", [])
    require(isinstance(physics, list) and all(isinstance(name, str) for name in physics), "its physics are no names")
    require(isinstance(card.get("real_only", True), bool), "its real_only is neither true nor false")
    check_shape(card.get("shape"))


def check_shape(shape: Any) -> None:
    """Refuse a shape that `Learned` cannot be built with, or that is far too large."""
    fields = (*LARGEST, "observation")
    require(isinstance(shape, dict) and shape.keys() == set(fields), f"its shape must have {', '.join(fields)}")
    for field, largest in LARGEST.items():
        value = shape[field]
        whole = isinstance(value, int) and not isinstance(value, bool)
        require(whole and 1 <= value <= largest, f"{field} must be a whole number from 1 to {largest}")
    iterations, observation = shape["iterations"], shape["observation"]
    per_decision = min(shape["per_decision"], iterations)
    require(shape["width"] % 8 == 0, f"width must be a multiple of 8, got {shape['width']}")
    divides = iterations % per_decision == 0
    require(divides, f"{iterations} iterations do not divide into decisions of {per_decision}")
    known = isinstance(observation, str) and observation in OBSERVATIONS
    require(known, f"observation must be one of {', '.join(OBSERVATIONS)}")
