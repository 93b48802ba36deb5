"""Missing rows."""

from .base import OPERATORS, Operator


@OPERATORS.register("inpainting-rows")
class InpaintingRows(Operator):
    """Inpainting: each row is kept with probability 0.5, σ 5.

    Masks are drawn for every image; noise of level 5/255 is on what is kept. Set12, resized to 128×128.
    """

    group = "inpainting"
    task = "inpainting"
    values = {"kept": 0.5, "sigma": 5, "kind": "rows"}
