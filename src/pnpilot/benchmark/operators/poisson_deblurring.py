"""Deblurring with few photons."""

from .base import OPERATORS, Operator


@OPERATORS.register("poisson-deblurring")
class PoissonDeblurred(Operator):
    """Poisson deblurring: Gaussian blur of width 1.6 pixels, circular boundary, 30 photons where the image is one.

    y = Poisson(30·k*x)/30 with deepinv's `gaussian_blur(sigma=(1.6, 1.6))`, of sum one. Set12, resized to 128×128.
    """

    group = "photons"
    task = "poisson-deblurring"
    values = {"width": 1.6, "peak": 30}
