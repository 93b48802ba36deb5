"""What passes between the rooms: Range and Action, and how numbers per image are shaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .errors import BadInput

Denoise = Callable[[Tensor, Tensor], Tensor]
"""denoise(v, sigma): v (B, C, H, W), sigma (B,); what a solver sees of a denoiser."""


class Range(NamedTuple):
    """What a solver parameter may be. Policies, plots and searches read it from the solver."""

    low: float
    high: float
    default: float
    unit: float = 1.0
    """Divide by this to show the value: 1/255 for noise levels quoted on the 0-255 scale."""
    symbol: str = ""
    """How plots label it; by default by its name."""
    search: tuple[float, float] | None = None
    """Where a search for the best constant looks; by default from a hundredth of `high` up to `high`."""
    cautious: float | None = None
    """The highest value that schedules made by hand may take, where that is less than what the solver accepts."""
    learned: bool = True
    """Whether networks set it; where they do not, it stays at the default."""


class Action(NamedTuple):
    """One decision: solver parameters, each (B, m) for m iterations, and who stops after them (B,)."""

    params: dict[str, Tensor]
    stop: Tensor
    stop_probability: Tensor | None = None

    @property
    def iterations(self) -> int:
        """The number m of solver iterations this decision covers."""
        return next(iter(self.params.values())).shape[1]


def per_sample(values: Tensor, like: Tensor) -> Tensor:
    """One value per image (B,), shaped to multiply `like` (B, ...)."""
    return values.reshape(-1, *(1,) * (like.ndim - 1))


def ramp(values: Tensor, none: float, full: float) -> Tensor:
    """0 up to the first value and 1 from the second on, which may be less, and a straight line between them."""
    return ((values - none) / (full - none)).clamp(0, 1)


def one_each(given: Any, like: Tensor, what: str) -> Tensor:
    """One number per image (B,), in the type and on the device of `like` (B, ...), from one number or one per image."""
    try:
        values = torch.as_tensor(given, dtype=like.dtype, device=like.device).reshape(-1)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{what} must be numbers, got {given!r}") from error
    if values.numel() not in (1, len(like)):
        raise BadInput(f"{values.numel()} {what} for {len(like)} images: give one, or one per image")
    return values.expand(len(like))


def parts_of(y: Any) -> list[Any]:
    """The parts of a measurement: of a stack of operators it is a list of tensors, or deepinv's TensorList."""
    parts = getattr(y, "x", y)
    return list(parts) if isinstance(parts, list | tuple) else [parts]


def named(places: Tensor) -> str:
    """'image 1' or 'images 0, 2', for places in the batch, counted from zero, or flags (B,)."""
    index = (places.nonzero().flatten() if places.dtype is torch.bool else places).tolist()
    names = ", ".join(map(str, index[:8])) + (" …" if len(index) > 8 else "")
    return f"image{'s' if len(index) > 1 else ''} {names}"


NAMED = re.compile(r"\bimages? (\d+(?:, \d+)*)")
"""What `named` writes."""


def mentioned(message: str) -> set[int]:
    """The places in the batch that a message made with `named` tells of."""
    return {int(number) for group in NAMED.findall(message) for number in group.split(", ")}


def renumbered(message: str, numbers: Sequence[int]) -> str:
    """The message with other numbers in place of those in the batch, as when a batch is a part of something longer."""
    return NAMED.sub(lambda found: named(torch.tensor([numbers[int(own)] for own in found[1].split(", ")])), message)


def to_two_channels(image: Tensor) -> Tensor:
    """A complex or real image (B, 1, H, W) as deepinv's (B, 2, H, W)."""
    imaginary = image.imag if image.is_complex() else torch.zeros_like(image)
    return torch.cat([image.real, imaginary], 1)
