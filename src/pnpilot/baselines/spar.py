"""SPAR: sparse phase and amplitude reconstruction from photon counts."""

from __future__ import annotations

from torch import Tensor

from ..physics.coded_diffraction import back, fields
from ..problems.amplitudes import AmplitudeProblem
from ._bm3d import denoised
from ._one_task import image_by_image, noise_level
from ._phase import PhaseBaseline, direction, even_start
from ._searched import Searched
from .base import BASELINES


@BASELINES.register("spar")
class SPAR(Searched[AmplitudeProblem], PhaseBaseline):
    """SPAR: move the amplitudes of the image towards the measured ones, denoise by BM3D, and repeat."""

    reference = "Katkovnik, arXiv 2017"
    modules = ("bm3d",)
    one_by_one = True
    iterations = 200
    grid = {"strength": (0.05, 0.1, 0.2, 0.4)}

    def solve(self, problem: AmplitudeProblem, *, strength: float) -> Tensor:
        """Image by image."""
        return image_by_image(problem, lambda part: self._one(part, strength))

    def _one(self, problem: AmplitudeProblem, strength: float) -> Tensor:
        """b = (|v| + √(|v|² + 8y²))/4 is the most likely amplitude near |v|; x ← BM3D(Re A†(b·e^{i∠v}))."""
        x = even_start(problem).real
        level = strength * noise_level(problem).item()
        for _ in range(self.iterations):
            field = fields(problem.masks, x)
            amplitude = field.abs()
            between = (amplitude + (amplitude.square() + 8 * problem.y.square()).sqrt()) / 4
            x = denoised(back(problem.masks, between * direction(field)).real, level)
        return x
