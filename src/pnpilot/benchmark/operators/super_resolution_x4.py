"""Super-resolution by 4."""

from .base import OPERATORS, Operator


@OPERATORS.register("super-resolution-x4")
class SuperResolutionX4(Operator):
    """Super-resolution ×4: bicubic blur, every fourth pixel from the top left, circular, σ 2.55.

    deepinv's `Downsampling(filter="bicubic", padding="circular")`: a kernel of 16×16. Set12, resized to 128×128.
    """

    group = "super-resolution"
    task = "super-resolution"
    values = {"factor": 4, "sigma": 2.55}
