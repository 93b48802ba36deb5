"""CS-MRI with a quarter of the samples."""

from .base import OPERATORS, Operator


@OPERATORS.register("csmri-x4")
class CSMRIx4(Operator):
    """CS-MRI ×4: 32 radial spokes of single-coil k-space, σ 10.

    y = M(Fx + n), F centred and orthonormal, n of level 10/255 in real and imaginary part, M the same for all: 32
    evenly spaced spokes, 26 % of k-space (`tasks/_masks.py`). Set12, resized to 128×128; scores of the real part.
    """

    group = "MRI"
    task = "csmri"
    values = {"acceleration": 4, "sigma": 10}
