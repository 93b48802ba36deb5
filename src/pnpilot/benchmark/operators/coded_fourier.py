"""Coded Fourier sampling."""

from .base import OPERATORS, Operator


@OPERATORS.register("coded-fourier")
class Coded(Operator):
    """Coded Fourier: 40 % of the samples of F(D·x) behind a random phase mask, σ 5.

    y = M(F(D·x) + n), F orthonormal, D = exp(2πiU) with U uniform, each point in M with probability 0.4, n of level
    5/255 in real and imaginary part; D, then M, are drawn for every image. Set12, resized to 128×128.
    """

    group = "others"
    task = "coded-fourier"
    values = {"kept": 0.4, "sigma": 5}
