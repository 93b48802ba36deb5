"""Zero-filling: the adjoint of the data."""

from __future__ import annotations

from deepinv.physics import LinearPhysics, Physics
from torch import Tensor

from ..errors import Incompatible
from .base import BASELINES, Baseline


@BASELINES.register("zero-filled")
class ZeroFilled(Baseline):
    """The adjoint of the data: missing samples count as zero."""

    reference = "nobody: the start of all others"
    serves = frozenset({"csmri"})

    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Aᴴy."""
        if not isinstance(physics, LinearPhysics):
            raise Incompatible(f"zero-filling needs a linear physics, got {type(physics).__name__}")
        return physics.A_adjoint(y)
