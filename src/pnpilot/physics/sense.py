"""Multi-coil MRI with what deepinv's has no room for: several sets of coil maps, and a phase that is known roughly."""

from __future__ import annotations

from typing import Any

import torch
from deepinv.physics import MultiCoilMRI
from torch import Tensor


class Sense(MultiCoilMRI):
    """Cartesian slices behind sets of coil maps: y_c = MF Σ_s S_{s,c} x_s.

    A second set is needed where the field of view is smaller than the object, which folds onto itself (soft-SENSE).
    Images have the real parts of all sets as channels, then the imaginary parts: (B, 2·sets, H, W).

    `held` (B,) is how strongly reconstructions hold imaginary parts near zero, in units of the data term. With the
    phase of the image at low resolution in the maps, that is the phase constraint of partial Fourier.
    """

    def __init__(self, mask: Tensor, coil_maps: Tensor, held: Tensor | float = 0.0, **others: Any) -> None:
        """`mask` is (B or 1, 1, H, W), `coil_maps` complex (B or 1, sets, coils, H, W)."""
        size = (2, *mask.shape[-2:])
        super().__init__(mask=mask, coil_maps=coil_maps[:, 0], img_size=size, **others)
        self.register_buffer("coil_maps", coil_maps)
        self.register_buffer("held", torch.as_tensor(held, dtype=torch.float32).reshape(-1))

    def A(self, x: Tensor, **kwargs: Any) -> Tensor:
        """k-space of all coils (B, 2, coils, H, W)."""
        self.update_parameters(**kwargs)
        real, imaginary = x.chunk(2, 1)
        images = (self.coil_maps * torch.complex(real, imaginary)[:, :, None]).sum(1)
        return self.mask[:, :, None] * self.from_torch_complex(self.fft(images, dim=(-2, -1)))

    def A_adjoint(self, y: Tensor, **kwargs: Any) -> Tensor:
        """One image per set."""
        self.update_parameters(**kwargs)
        images = self.ifft(self.to_torch_complex(self.mask[:, :, None] * y), dim=(-2, -1))
        sets = (self.coil_maps.conj() * images[:, None]).sum(2)
        return torch.cat([sets.real, sets.imag], 1)

    def update_parameters(self, **kwargs: Any) -> None:
        """Its parameters are fixed."""
        if any(value is not None for name, value in kwargs.items() if name in ("mask", "coil_maps")):
            raise ValueError("make a new Sense for other maps or another mask")
