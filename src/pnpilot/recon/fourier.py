"""Small steps between k-space and images, both centred."""

from __future__ import annotations

import numpy as np

from .sampling import Lopsided


def to_image(kspace: np.ndarray, axes: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """The image behind k-space."""
    shifted = np.fft.ifftshift(kspace, axes=axes)
    return np.fft.fftshift(np.fft.ifftn(shifted, axes=axes, norm="ortho"), axes=axes)


def to_kspace(image: np.ndarray, axes: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """The k-space of an image."""
    shifted = np.fft.ifftshift(image, axes=axes)
    return np.fft.fftshift(np.fft.fftn(shifted, axes=axes, norm="ortho"), axes=axes)


def cropped_readout(
    kspace: np.ndarray, mask: np.ndarray, axis: int, wanted: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """K-space (coils, H, W) and mask of the middle of the field of view along one axis, or None if that was skipped in.

    What was left out at one end of all lines (an asymmetric echo) stays left out.
    """
    lines, along = np.asarray(mask.any(axis)), np.asarray(mask.any(1 - axis))
    used = along.nonzero()[0]
    if not len(used) or used[-1] - used[0] + 1 != len(used) or not np.array_equal(mask, _outer(lines, along, axis)):
        return None
    length = mask.shape[axis]
    image = to_image(kspace, (1 + axis,))
    first = length // 2 - wanted // 2
    cut = to_kspace(image.take(range(first, first + wanted), 1 + axis), (1 + axis,))
    # Samples that are `length / wanted` apart remain, those that were measured among them.
    places = length // 2 + np.round((np.arange(wanted) - wanted // 2) * length / wanted).astype(int)
    fewer = _outer(lines, along[places.clip(0, length - 1)], axis)
    return (cut * fewer).astype(np.complex64), fewer


def _outer(lines: np.ndarray, along: np.ndarray, axis: int) -> np.ndarray:
    return np.outer(along, lines) if axis == 0 else np.outer(lines, along)


def low_phase(kspace: np.ndarray, maps: np.ndarray, side: Lopsided) -> np.ndarray:
    """The phase factors (sets, 1, H, W) of the image behind the part of k-space that was measured on both sides."""
    windows = []
    for axis, length in enumerate(kspace.shape[1:]):
        reach = side.symmetric if axis == side.axis else min(2 * side.symmetric, length // 2)
        away = np.abs(np.arange(length) - length // 2) / (reach + 1)
        windows.append(np.cos(np.pi / 2 * away.clip(0, 1)) ** 2)
    images = to_image(kspace * np.outer(*windows))
    together = (maps.conj() * images).sum(1, keepdims=True)
    return np.exp(1j * np.angle(together)).astype(np.complex64)


def resized(image: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """The middle of an image (H, W), no larger than these sizes."""
    for axis, wanted in enumerate(sizes):
        length = image.shape[axis]
        if wanted < length:
            first = length // 2 - wanted // 2
            image = image.take(range(first, first + wanted), axis)
    return image
