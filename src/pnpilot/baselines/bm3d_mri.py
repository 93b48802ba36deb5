"""BM3D-MRI: block matching as the denoiser of iterative thresholding."""

from __future__ import annotations

import torch
from torch import Tensor

from ..problems.masked_fourier import MaskedFourier
from ._bm3d import denoised
from ._mri import MRIBaseline
from ._one_task import image_by_image
from ._searched import Searched
from .base import BASELINES


@BASELINES.register("bm3d-mri")
class BM3DMRI(Searched[MaskedFourier], MRIBaseline):
    """BM3D-MRI: add back the residual of the data, denoise by BM3D at its level, and repeat."""

    reference = "Eksioglu, J. Math. Imaging Vis. 2016"
    modules = ("bm3d",)
    one_by_one = True
    iterations = 70
    grid = {"strength": (0.5, 0.7, 1.0, 1.4, 2.0)}

    def solve(self, problem: MaskedFourier, *, strength: float) -> Tensor:
        """x ← BM3D(x + Fᴴz, strength·‖z‖/√m), z ← y − MFx, image by image."""
        return image_by_image(problem, lambda part: self._one(part, strength))

    def _one(self, problem: MaskedFourier, strength: float) -> Tensor:
        numbers = 2 * int(problem.measurements)  # real and imaginary parts
        x, z = torch.zeros_like(problem.y.real), problem.y
        for _ in range(self.iterations):
            level = strength * z.norm().item() / numbers**0.5
            x = denoised(x + problem.A_adjoint(z).real, level)
            z = problem.y - problem.A(x)
        return x
