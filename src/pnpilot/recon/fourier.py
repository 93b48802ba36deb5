"""Small steps between k-space and images, both centred."""

from __future__ import annotations

import numpy as np


def to_image(kspace: np.ndarray, axes: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """The image behind k-space."""
    shifted = np.fft.ifftshift(kspace, axes=axes)
    return np.fft.fftshift(np.fft.ifftn(shifted, axes=axes, norm="ortho"), axes=axes)


def to_kspace(image: np.ndarray, axes: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """The k-space of an image."""
    shifted = np.fft.ifftshift(image, axes=axes)
    return np.fft.fftshift(np.fft.fftn(shifted, axes=axes, norm="ortho"), axes=axes)


def resized(image: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """The middle of images (..., H, W), no larger than these sizes."""
    for axis, wanted in zip((-2, -1), sizes, strict=True):
        length = image.shape[axis]
        if wanted < length:
            first = length // 2 - wanted // 2
            image = image.take(range(first, first + wanted), axis)
    return image
