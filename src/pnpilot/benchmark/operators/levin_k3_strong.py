"""Deblurring as DPIR published it."""

from ._levin import PublishedLevin, scores
from .base import OPERATORS


@OPERATORS.register("levin-k3-strong")
class LevinK3Strong(PublishedLevin):
    """Levin's kernel k3 (15×15), circular boundary, σ 7.65: DPIR's protocol for Cameraman, House and Monarch.

    A true convolution, cut to whole numbers on the 0-255 scale as bytes are (so does `ndimage.convolve(mode="wrap")` of
    scipy), then noise of level 7.65/255 drawn by numpy with seed 0 for each image. Images 01, 02 and 05 of Set12,
    256×256 as they are. Published: DPIR, TPAMI 2021.
    """

    kernel = "k3"
    level = 7.65
    published = scores(27.99, 32.86, 28.27)
