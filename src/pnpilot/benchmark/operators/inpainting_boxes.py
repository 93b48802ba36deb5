"""Missing boxes."""

from .base import OPERATORS, Operator


@OPERATORS.register("inpainting-boxes")
class InpaintingBoxes(Operator):
    """Inpainting: boxes of 8×8 pixels are missing until 90 % or less are kept, σ 5.

    Masks are drawn for every image; noise of level 5/255 is on what is kept. Set12, resized to 128×128.
    """

    group = "inpainting"
    task = "inpainting"
    values = {"kept": 0.9, "sigma": 5, "kind": "boxes"}
