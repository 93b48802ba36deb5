"""Phase retrieval."""

from .base import OPERATORS, Operator


@OPERATORS.register("phase")
class Phase(Operator):
    """Coded diffraction: amplitudes behind four random phase masks, α = 27.

    y_j² = |F(D_j x)|² + α/255·|F(D_j x)|·n, n ~ N(0, 1), F orthonormal, D_j = exp(2πiU) with U uniform, drawn for every
    image. The twelve images of prDeep, resized to 128×128.
    """

    group = "phase retrieval"
    task = "phase"
    values = {"alpha": 27, "masks": 4}
    dataset = "phase12"
