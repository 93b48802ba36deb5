"""The denoiser as a problem needs it: for real or complex images, within bounds, in bf16 on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor

from .denoisers import Denoiser
from .denoisers.base import bf16_on_gpu
from .problems import Units
from .types import Denoise, per_sample


def prior(denoiser: Denoiser, units: Units) -> Denoise:
    """What a solver sees of the denoiser, for images of these units."""
    real = units.real

    def run(v: Tensor, sigma: Tensor, *, signed: bool = False) -> Tensor:
        call = denoiser.signed if signed and not v.is_complex() else denoiser  # complex ones: after the gauge
        with bf16_on_gpu(v.device, denoiser.bf16):
            return call(v, sigma).to(v.dtype)

    def denoise(v: Tensor, sigma: Tensor) -> Tensor:
        if real.all():
            return bounded(run(v.real, sigma), units)
        if not real.any():
            return run(v, sigma, signed=True)
        # Both kinds in one batch: each as if it were alone.
        first, second, order = units.parts
        parts = [run(v[first].real, sigma[first]).to(v.dtype), run(v[second], sigma[second], signed=True)]
        return bounded(torch.cat(parts)[order], units)

    return denoise


def bounded(x: Tensor, units: Units) -> Tensor:
    """An iterate as an image: real and within its bounds where images are real."""
    real = units.real
    if not real.any():
        return x
    within = x.real.clamp(0, 1 if units.peak_known else None)
    if real.all():
        return within
    return torch.where(per_sample(units.flags, x), within.to(x.dtype), x)
