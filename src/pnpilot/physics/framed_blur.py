"""Blur of a picture that goes on beyond its frame."""

from __future__ import annotations

from itertools import count
from typing import Any

import torch
from deepinv.physics import Blur
from torch import Tensor
from torch.nn import functional as F


class FramedBlur(Blur):
    """deepinv's `Blur(kernel, padding="valid")`, but faster: transforms have one size, which is quick.

    Images are larger than their data by the side of the kernel less one.
    """

    def __init__(self, filter: Tensor, **others: Any) -> None:
        """`filter` is (1 or B, 1 or C, h, w)."""
        super().__init__(filter=filter, padding="valid", use_fft=True, **others)
        self._kept: tuple[Any, ...] = ()

    def A(self, x: Tensor, filter: Tensor | None = None, **others: Any) -> Tensor:
        """The blurred picture, as far as no more than the image has a part in it."""
        self.update_parameters(filter=filter, **others)
        (height, width), (rows, columns) = x.shape[-2:], self.filter.shape[-2:]
        size = quick(height), quick(width)
        blurred = torch.fft.irfft2(torch.fft.rfft2(x, size) * self._spectrum(size), size)
        return blurred[..., rows - 1 : height, columns - 1 : width]

    def A_adjoint(self, y: Tensor, filter: Tensor | None = None, **others: Any) -> Tensor:
        """Each pixel goes back to all of those that it came from."""
        self.update_parameters(filter=filter, **others)
        rows, columns = (side - 1 for side in self.filter.shape[-2:])
        height, width = y.shape[-2] + rows, y.shape[-1] + columns
        size = quick(height), quick(width)
        framed = F.pad(y, (columns, size[1] - width, rows, size[0] - height))
        spread = torch.fft.irfft2(torch.fft.rfft2(framed) * self._spectrum(size).conj(), size)
        return spread[..., :height, :width]

    def _spectrum(self, size: tuple[int, int]) -> Tensor:
        """That of the kernel, kept until kernel or size change."""
        made_for = (self.filter, self.filter._version, size)
        if self._kept and self._kept[0] is self.filter and self._kept[1:3] == made_for[1:]:
            return self._kept[3]
        spectrum = torch.fft.rfft2(self.filter, size)
        self._kept = (*made_for, spectrum)
        return spectrum


def quick(length: int) -> int:
    """The next length whose only factors are 2, 3 and 5."""
    return next(candidate for candidate in count(length) if _rest(candidate) == 1)


def _rest(number: int) -> int:
    for factor in (2, 3, 5):
        while number % factor == 0:
            number //= factor
    return number
