"""CS-MRI with an eighth of the samples."""

from .base import OPERATORS, Operator


@OPERATORS.register("csmri-x8")
class CSMRIx8(Operator):
    """CS-MRI ×8: 16 radial spokes of single-coil k-space, σ 5.

    As csmri-x4 with 16 spokes, 13 % of k-space, and n of level 5/255.
    """

    group = "MRI"
    task = "csmri"
    values = {"acceleration": 8, "sigma": 5}
