"""What the methods for coded diffraction share."""

from __future__ import annotations

from torch import Tensor

from ..physics.coded_diffraction import back, fields
from ..problems.amplitudes import TINY, AmplitudeProblem
from ..tasks.phase import PhaseRetrieval
from ._one_task import OneTask, noise_level


class PhaseBaseline(OneTask[AmplitudeProblem]):
    """A method for coded diffraction of real, non-negative images in [0, 1]."""

    serves = frozenset({"phase"})
    task = PhaseRetrieval
    problem = AmplitudeProblem
    physics_name = "coded diffraction"

    @staticmethod
    def conditions(problem: AmplitudeProblem) -> list[dict[str, float]]:
        """How many masks, and the noise level α."""
        return [{"masks": problem.y.shape[1], "alpha": 510 * level} for level in noise_level(problem).tolist()]


def even_start(problem: AmplitudeProblem) -> Tensor:
    """The constant complex image (B, 1, H, W) with the energy of the data.

    The usual spectral start fails with a few masks of modulus one: single bright samples dominate it.
    """
    return problem.x0() * mean_intensity(problem).sqrt()


def mean_intensity(problem: AmplitudeProblem) -> Tensor:
    """Mean of the squared data (B, 1, 1, 1), which is also that of the squared image."""
    return problem.y.square().mean((1, 2, 3), keepdim=True)


def direction(field: Tensor) -> Tensor:
    """The phase factor of each value, and zero for zero."""
    return field / field.abs().clamp_min(TINY)


def with_amplitudes(problem: AmplitudeProblem, x: Tensor) -> Tensor:
    """Give the fields of an image the measured amplitudes, keep their phases, and go back to an image."""
    return back(problem.masks, problem.y * direction(fields(problem.masks, x)))


def aligned(x: Tensor) -> Tensor:
    """The real part of images (B, 1, H, W) once their global phase, which amplitudes do not fix, is removed.

    The phase is that of the sum, which is positive for a non-negative image.
    """
    return (x * direction(x.sum((1, 2, 3), keepdim=True)).conj()).real
