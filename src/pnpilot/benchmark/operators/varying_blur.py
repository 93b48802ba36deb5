"""Blur that varies over the image."""

from .base import OPERATORS, Operator


@OPERATORS.register("varying-blur")
class Varying(Operator):
    """Varying blur: Gaussian widths from 0.5 in the middle to 3 pixels in the corners, σ 2.55.

    Four kernels of widths 0.5, 1.33, 2.17 and 3; each pixel of the image is spread by the two whose distances from the
    middle are next to its own, in linear shares (`tasks/varying_blur.py`), circular boundary. Set12, resized to
    128×128.
    """

    group = "deblurring"
    task = "varying-blur"
    values = {"inner": 0.5, "outer": 3.0, "sigma": 2.55}
