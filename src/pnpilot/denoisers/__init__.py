"""Room: denoisers H_σ. One file, one denoiser; `base.py` states the contract."""

from .base import DENOISERS, Denoiser, build_denoiser

__all__ = ["DENOISERS", "Denoiser", "build_denoiser"]
