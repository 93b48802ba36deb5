"""The nouns that pass between the rooms: Range, Action, Step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

Denoise = Callable[[Tensor, Tensor], Tensor]
"""denoise(v, sigma): v (B, C, H, W), sigma (B,); what a solver sees of a denoiser."""


class Range(NamedTuple):
    """What a solver parameter may be. Policies, plots and searches read it from the solver."""

    low: float
    high: float
    default: float
    unit: float = 1.0
    """Divide by this to show the value: 1/255 for noise levels quoted on the 0-255 scale."""


class Action(NamedTuple):
    """One decision: solver parameters, each (B, m) for m iterations, and who stops after them (B,)."""

    params: dict[str, Tensor]
    stop: Tensor
    stop_probability: Tensor | None = None

    @property
    def iterations(self) -> int:
        """The number m of solver iterations this decision covers."""
        return next(iter(self.params.values())).shape[1]


@dataclass(frozen=True)
class Step:
    """The state of a batch after one decision."""

    image: Tensor = field(repr=False)
    """Image so far (B, C, H, W)."""
    state: Any = field(repr=False)
    """The solver's own variables."""
    action: Action = field(repr=False)
    ran: Tensor
    """(B,): whose iterates this decision moved."""
    active: Tensor
    """(B,): who goes on after it."""
    iterations: Tensor
    """(B,): solver iterations so far."""


def per_sample(values: Tensor, like: Tensor) -> Tensor:
    """One value per image (B,), shaped to multiply `like` (B, ...)."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))
