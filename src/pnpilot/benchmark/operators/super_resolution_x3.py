"""Super-resolution by 3."""

from .base import OPERATORS, Operator


@OPERATORS.register("super-resolution-x3")
class SuperResolutionX3(Operator):
    """Super-resolution ×3: bicubic blur, every third pixel from the top left, circular, σ 7.65.

    deepinv's `Downsampling(filter="bicubic", padding="circular")`: a kernel of 12×12. Set12, resized to 126×126.
    """

    group = "super-resolution"
    task = "super-resolution"
    values = {"factor": 3, "sigma": 7.65}
    size = (126, 126)
