"""Parallel MRI."""

from .base import OPERATORS, Operator


@OPERATORS.register("multi-coil")
class MultiCoil(Operator):
    """Multi-coil MRI ×4: Cartesian lines behind eight coils, σ 5.

    y_c = M(F(S_c x) + n_c), n_c of level 5/255 in real and imaginary part; M keeps a quarter of the columns, a centre
    of 32 % of these and the rest at random; S_c are Gaussians around eight places on a circle, with random linear
    phases and squares of sum one (`tasks/multi_coil.py`). Masks and maps are drawn for every image. Set12, resized to
    128×128; scores of the magnitude.
    """

    group = "MRI"
    task = "multi-coil"
    values = {"acceleration": 4, "sigma": 5, "mask": "cartesian", "coils": 8}
