"""Demosaicing."""

from .base import OPERATORS, Operator


@OPERATORS.register("demosaicing-noisy")
class DemosaicNoisy(Operator):
    """Demosaicing: a Bayer pattern of red, green and blue, σ 5.

    deepinv's `Demosaicing`: red where row and column are odd, counted from zero, blue where both are even, green
    elsewhere. Every sixth picture of CBSD68 in colour, the middle 128×128 pixels.
    """

    group = "others"
    task = "demosaicing"
    values = {"sigma": 5}
    dataset = "cbsd68"
    cut = True
    channels = 3
    every = 6
