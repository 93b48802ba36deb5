"""A linear operator whose samples count as much as they can be relied on."""

from __future__ import annotations

from typing import Any

from deepinv.physics import GaussianNoise, LinearPhysics
from torch import Tensor

from ..errors import require


class Weighted(LinearPhysics):
    """WA for a physics A, with W diagonal: data with noise of level 1/w become Wy, with noise of level one."""

    def __init__(self, inner: LinearPhysics, weights: Tensor) -> None:
        """`weights` are one per sample, (B, ...) like the data, and positive."""
        super().__init__(noise_model=GaussianNoise(1.0))
        require(bool((weights > 0).all()), "weights must be positive")
        self.inner = inner
        # What belongs to images of a batch is found by its four axes.
        self.register_buffer("weights", weights.reshape(*weights.shape, *(1,) * (4 - weights.ndim)))

    def A(self, x: Tensor, **kwargs: Any) -> Tensor:
        """WAx."""
        return self.weighted(self.inner.A(x, **kwargs))

    def A_adjoint(self, y: Tensor, **kwargs: Any) -> Tensor:
        """AᴴWy."""
        return self.inner.A_adjoint(self.weighted(y), **kwargs)

    def weighted(self, y: Tensor) -> Tensor:
        """Wy."""
        return self.weights.reshape(-1, *y.shape[1:]) * y
