"""Denoising."""

from .base import OPERATORS, Operator


@OPERATORS.register("denoising")
class Denoise(Operator):
    """Denoising: white Gaussian noise, σ 25.

    Set12, resized to 128×128.
    """

    group = "others"
    task = "denoising"
    values = {"sigma": 25}
