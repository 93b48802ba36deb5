"""What the methods for coded diffraction share."""

from __future__ import annotations

from torch import Tensor

from ..tasks.phase import TINY, AmplitudeProblem, PhaseRetrieval, back, fields
from ._one_task import OneTask, noise_level


class PhaseBaseline(OneTask[AmplitudeProblem]):
    """A method for coded diffraction of real, non-negative images in [0, 1]."""

    serves = frozenset({"phase"})
    task = PhaseRetrieval
    physics_name = "coded diffraction"

    @staticmethod
    def conditions(problem: AmplitudeProblem) -> list[dict[str, float]]:
        """How many masks, and the noise level α."""
        return [{"masks": problem.y.shape[1], "alpha": 510 * level} for level in noise_level(problem).tolist()]


def even_start(problem: AmplitudeProblem) -> Tensor:
    """The constant complex image (B, 1, H, W) with the energy of the data.

    The customary spectral start fails with a few masks of modulus one: single bright samples outweigh the image.
    """
    return problem.x0() * mean_intensity(problem).sqrt()


def mean_intensity(problem: AmplitudeProblem) -> Tensor:
    """Of the data, and so of the image (B, 1, 1, 1)."""
    return problem.y.square().mean((1, 2, 3), keepdim=True)


def direction(field: Tensor) -> Tensor:
    """The field's phase factor, and zero where it vanishes."""
    return field / field.abs().clamp_min(TINY)


def with_amplitudes(problem: AmplitudeProblem, x: Tensor) -> Tensor:
    """What an image becomes when its fields keep their phases and take the measured amplitudes."""
    return back(problem.masks, problem.y * direction(fields(problem.masks, x)))


def aligned(x: Tensor) -> Tensor:
    """The real part of images (B, 1, H, W) after a turn by the global phase, which amplitudes do not show.

    No truth is needed: the sum of a non-negative image is positive.
    """
    return (x * direction(x.sum((1, 2, 3), keepdim=True)).conj()).real
