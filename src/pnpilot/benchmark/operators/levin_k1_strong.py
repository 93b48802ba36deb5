"""Deblurring as DPIR published it."""

from ._levin import PublishedLevin, scores
from .base import OPERATORS


@OPERATORS.register("levin-k1-strong")
class LevinK1Strong(PublishedLevin):
    """Levin's kernel k1 (19×19), circular boundary, σ 7.65: DPIR's protocol for Cameraman, House and Monarch.

    A true convolution, cut to whole numbers on the 0-255 scale as bytes are (so does `ndimage.convolve(mode="wrap")` of
    scipy), then noise of level 7.65/255 drawn by numpy with seed 0 for each image. Images 01, 02 and 05 of Set12,
    256×256 as they are. Published: DPIR, TPAMI 2021.
    """

    kernel = "k1"
    level = 7.65
    published = scores(28.17, 32.78, 28.48)
