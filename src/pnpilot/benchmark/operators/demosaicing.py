"""Demosaicing."""

from .base import OPERATORS, Operator


@OPERATORS.register("demosaicing")
class Demosaic(Operator):
    """Demosaicing: a Bayer pattern of red, green and blue, no noise.

    deepinv's `Demosaicing`: red where row and column are odd, counted from zero, blue where both are even, green
    elsewhere. McMaster in colour, the middle 128×128 pixels.
    """

    group = "others"
    task = "demosaicing"
    values = {"sigma": 0}
    dataset = "mcmaster"
    cut = True
    channels = 3
