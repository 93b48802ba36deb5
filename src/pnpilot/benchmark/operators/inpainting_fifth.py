"""Missing pixels."""

from .base import OPERATORS, Operator


@OPERATORS.register("inpainting-fifth")
class InpaintingFifth(Operator):
    """Inpainting: each pixel is kept with probability 0.2, σ 5.

    Masks are drawn for every image; noise of level 5/255 is on what is kept. Set12, resized to 128×128.
    """

    group = "inpainting"
    task = "inpainting"
    values = {"kept": 0.2, "sigma": 5, "kind": "pixels"}
