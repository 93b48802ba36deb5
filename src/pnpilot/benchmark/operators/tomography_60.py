"""Sparse-view tomography."""

from .base import OPERATORS, Operator


@OPERATORS.register("tomography-60")
class Tomography60(Operator):
    """Tomography: 60 parallel views over half a turn, σ 2.55.

    deepinv's `Tomography(circle=False, normalize=True)`, its norm about one, angles 180°·k/60; noise of level 2.55/255
    on the sinogram. Set12, resized to 128×128, not masked to a circle.
    """

    group = "tomography"
    task = "tomography"
    values = {"views": 60, "sigma": 2.55}
