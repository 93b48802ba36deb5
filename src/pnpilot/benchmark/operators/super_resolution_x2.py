"""Super-resolution by 2."""

from .base import OPERATORS, Operator


@OPERATORS.register("super-resolution-x2")
class SuperResolutionX2(Operator):
    """Super-resolution ×2: bicubic blur, every second pixel from the top left, circular, σ 2.55.

    deepinv's `Downsampling(filter="bicubic", padding="circular")`: a kernel of 8×8. Set12, resized to 128×128.
    """

    group = "super-resolution"
    task = "super-resolution"
    values = {"factor": 2, "sigma": 2.55}
