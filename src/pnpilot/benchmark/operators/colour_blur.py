"""Deblurring in colour."""

from ._levin import Levin
from .base import OPERATORS


@OPERATORS.register("colour-blur")
class ColourBlur(Levin):
    """Colour deblurring: Levin's kernel k1 (19×19), circular boundary, σ 7.65.

    As levin-k1-strong, with colours last where noise is drawn. Butterfly, leaves and starfish (Set3C), the middle
    128×128 pixels.
    """

    kernel = "k1"
    level = 7.65
    dataset = "set3c"
    cut = True
    channels = 3
