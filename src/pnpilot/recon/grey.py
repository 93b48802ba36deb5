"""Pictures in colour as shades of grey, for what knows no colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import require
from ..io.raw import COLOUR, Lazy, Stored

WEIGHTS = (0.299, 0.587, 0.114)
"""How bright red, green and blue look (ITU-R BT.601)."""
TOLD = "its colours were turned to shades of grey"


@dataclass(frozen=True)
class Grey:
    """An array whose axis of colours is averaged in the parts that are asked for."""

    data: Lazy
    axis: int
    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every other axis."""
        return tuple(length for axis, length in enumerate(self.data.shape) if axis != self.axis)

    def __getitem__(self, index: Any) -> np.ndarray:
        index = index if isinstance(index, tuple) else (index,)
        before = index[: self.axis] + (slice(None),) * (self.axis - len(index))
        whole = (*before, slice(None), *index[self.axis :])
        part = np.asarray(self.data[whole])
        at = sum(isinstance(one, slice) for one in before)
        return np.tensordot(part, np.array(WEIGHTS), (at, 0)).astype(self.dtype)


def grey(stored: Stored) -> Stored:
    """The same without colours."""
    if stored.axes is None or COLOUR not in stored.axes:
        return stored
    axis = stored.axes.index(COLOUR)
    count = stored.data.shape[axis]
    require(count == len(WEIGHTS), f"it has {count} colours: three are known")
    return Stored(Grey(stored.data, axis), tuple(name for name in stored.axes if name != COLOUR))
