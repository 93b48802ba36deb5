"""Motion blur."""

from .base import OPERATORS, Operator


@OPERATORS.register("motion-blur")
class MotionBlurring(Operator):
    """Random motion blur, a 25×25 kernel for every image, circular boundary, σ 7.65.

    Kernels by deepinv's `MotionBlurGenerator((25, 25))`, drawn before the noise from the generator of the image. Set12,
    resized to 128×128.
    """

    group = "deblurring"
    task = "motion-blur"
    values = {"side": 25, "sigma": 7.65}
