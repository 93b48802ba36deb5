"""Multi-coil MRI along a trajectory of one's own: spirals, spokes, anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from deepinv.physics import LinearPhysics
from deepinv.utils.mixins import MRIMixin
from torch import Tensor

from ..errors import require
from .density import density_weights
from .nufft import images_of, samples_of


class NonCartesian(MRIMixin, LinearPhysics):
    """Samples of k-space at any places: y_c(k) = Σ_r S_c(r) x(r) e^{-2πi k·r} / √(HW), by finufft.

    Pixels r are counted from [H//2, W//2]. Images are (B, 2, H, W), data (B, 2, coils, samples), as deepinv has them.
    """

    def __init__(self, trajectory: Tensor, coil_maps: Tensor, weights: Tensor | None = None, **others: Any) -> None:
        """`trajectory` is (B or 1, 1, samples, 2), rows first, in cycles per pixel: from -0.5 to 0.5.

        `coil_maps` are complex (B or 1, coils, H, W); ones for a single coil. By `weights` (B or 1, 1, 1, samples)
        reconstructions weigh the samples; by default as `density_weights` says.
        """
        _check(trajectory, coil_maps, weights)
        super().__init__(img_size=(2, *coil_maps.shape[-2:]), **others)
        if weights is None:
            found = [density_weights(one[0].double().cpu().numpy(), _sizes(coil_maps)) for one in trajectory]
            weights = torch.from_numpy(np.stack(found))[:, None, None].to(trajectory)
        self.register_buffer("trajectory", trajectory)
        self.register_buffer("coil_maps", coil_maps)
        self.register_buffer("weights", weights)

    def A(self, x: Tensor, **kwargs: Any) -> Tensor:
        """The samples of all coils (B, 2, coils, samples)."""
        self.update_parameters(**kwargs)
        images = self.coil_maps * self.to_torch_complex(x)[:, None]
        samples = torch.stack([samples_of(one, way) for one, way in self._each(images)])
        return self.from_torch_complex(samples).contiguous()

    def A_adjoint(self, y: Tensor, **kwargs: Any) -> Tensor:
        """One image (B, 2, H, W)."""
        self.update_parameters(**kwargs)
        sizes, samples = _sizes(self.coil_maps), self.to_torch_complex(y)
        images = torch.stack([images_of(one, way, sizes) for one, way in self._each(samples)])
        return self.from_torch_complex((self.coil_maps.conj() * images).sum(1))

    def update_parameters(self, **kwargs: Any) -> None:
        """Its parameters are fixed."""
        if any(kwargs.get(name) is not None for name in ("trajectory", "coil_maps", "weights")):
            raise ValueError("make a new NonCartesian for another trajectory, other maps or weights")

    def _each(self, values: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(values, self.trajectory[:, 0].expand(len(values), -1, -1), strict=True)


def _sizes(coil_maps: Tensor) -> tuple[int, int]:
    return coil_maps.shape[-2], coil_maps.shape[-1]


def _check(trajectory: Tensor, coil_maps: Tensor, weights: Tensor | None) -> None:
    shape, maps = tuple(trajectory.shape), tuple(coil_maps.shape)
    require(
        trajectory.ndim == 4 and shape[1] == 1 and shape[3] == 2 and not trajectory.is_complex(),
        f"a trajectory must be real (batch or 1, 1, samples, 2), got {trajectory.dtype} of shape {shape}",
    )
    reach = float(trajectory.abs().max()) if trajectory.numel() else 0.0
    require(0 < reach <= 0.5001, f"a trajectory is in cycles per pixel, from -0.5 to 0.5; this one reaches {reach:.3g}")
    fits = coil_maps.ndim == 4 and coil_maps.is_complex()
    require(fits, f"coil maps must be complex (batch or 1, coils, H, W), got {coil_maps.dtype} of shape {maps}")
    if weights is not None:
        given = tuple(weights.shape)
        wanted = weights.ndim == 4 and given[1:] == (1, 1, shape[2])
        require(wanted, f"weights must be (batch or 1, 1, 1, {shape[2]}) for this trajectory, got {given}")
        right = bool(torch.isfinite(weights).all() and (weights >= 0).all() and weights.flatten(1).any(1).all())
        require(right, "weights of samples must be finite and not negative, and some of them positive")
