"""Single-photon imaging."""

from .base import OPERATORS, Operator


@OPERATORS.register("single-photon")
class SinglePhotons(Operator):
    """Single-photon imaging: 6×6 jots a pixel, each of which tells whether a photon came.

    A jot under a pixel x counts Poisson(x) photons and shows 1 if there is any: P(1) = 1 − exp(−x). Set12, resized to
    128×128.
    """

    group = "photons"
    task = "single-photon"
    values = {"K": 6}
