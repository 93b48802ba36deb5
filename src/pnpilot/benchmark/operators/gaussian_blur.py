"""Gaussian blur."""

from .base import OPERATORS, Operator


@OPERATORS.register("gaussian-blur")
class GaussianBlur(Operator):
    """Gaussian blur of width 1.6 pixels, circular boundary, σ 2.55.

    deepinv's `gaussian_blur(sigma=(1.6, 1.6))`, 13×13, of sum one. Set12, resized to 128×128.
    """

    group = "deblurring"
    task = "deblur"
    values = {"width": 1.6, "sigma": 2.55}
