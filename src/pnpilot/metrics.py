"""The project's one PSNR and one SSIM: images (B, C, H, W) in [0, 1], estimate clamped, one value per image.

Complex images are scored by their real part.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from .errors import require

WINDOW = 11


def psnr(estimate: Tensor, truth: Tensor, where: Tensor | None = None) -> Tensor:
    """Peak signal-to-noise ratio in dB with peak 1, over all channels, per image (B,); differentiable.

    `where` (H, W) names the pixels that count; by default all do.
    """
    _check_shapes(estimate, truth)
    error = _mean((_image(estimate) - _image(truth, clamp=False)).square(), where)
    return -10 * torch.log10(error.clamp_min(1e-12))


def ssim(estimate: Tensor, truth: Tensor, where: Tensor | None = None) -> Tensor:
    """Structural similarity with the original Gaussian window (11 pixels, σ = 1.5): the mean over channels (B,).

    `where` (H, W) names the pixels around which windows count; those that reach over the edge never do.
    """
    _check_shapes(estimate, truth)
    size = tuple(estimate.shape[-2:])
    require(min(size) >= WINDOW, f"SSIM needs images of at least {WINDOW} × {WINDOW} pixels, got {size[0]} × {size[1]}")
    x, y = (image.reshape(-1, 1, *size) for image in (_image(estimate), _image(truth, clamp=False)))
    taps = torch.exp(-((torch.arange(WINDOW, device=x.device, dtype=x.dtype) - WINDOW // 2) ** 2) / (2 * 1.5**2))
    window = torch.outer(taps, taps)[None, None] / taps.sum() ** 2

    def local_mean(image: Tensor) -> Tensor:
        return F.conv2d(image, window)

    mean_x, mean_y = local_mean(x), local_mean(y)
    var_x, var_y = local_mean(x * x) - mean_x**2, local_mean(y * y) - mean_y**2
    covariance = local_mean(x * y) - mean_x * mean_y
    c1, c2 = 0.01**2, 0.03**2
    score = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    score = score / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))
    margin = slice(WINDOW // 2, -(WINDOW // 2))
    return _mean(score.reshape(len(estimate), -1, *score.shape[-2:]), None if where is None else where[margin, margin])


def _mean(values: Tensor, where: Tensor | None) -> Tensor:
    """The mean of each image (B, C, H, W), over these pixels."""
    return values.flatten(1).mean(1) if where is None else values[..., where].flatten(1).mean(1)


def _check_shapes(estimate: Tensor, truth: Tensor) -> None:
    sizes = f"{tuple(estimate.shape)} and {tuple(truth.shape)}"
    require(estimate.shape == truth.shape, f"images of one shape are compared, got {sizes}")
    require(estimate.ndim == 4, f"images are (batch, channel, height, width), got {tuple(estimate.shape)}")


def _image(x: Tensor, *, clamp: bool = True) -> Tensor:
    real = x.real if x.is_complex() else x
    return real.clamp(0, 1) if clamp else real
