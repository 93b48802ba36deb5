"""Blur of a picture that goes on beyond its frame: deepinv's, but quick."""

from __future__ import annotations

import pytest
import torch
from deepinv.physics import Blur

from pnpilot.physics import FramedBlur, copied
from pnpilot.physics.framed_blur import quick
from tests.contracts import assert_close, inner


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("kernel", [(1, 1, 5, 3), (1, 1, 1, 1), (1, 3, 4, 6), (2, 1, 7, 7), (2, 3, 3, 9)])
def test_it_is_deepinvs_blur_without_wrapping(kernel: tuple[int, ...]) -> None:
    k, x = torch.rand(kernel), noise(2, 3, 37, 23)
    own, reference = FramedBlur(k), Blur(k, padding="valid")
    y = own.A(x)
    assert_close(y, reference.A(x))
    back = own.A_adjoint(noise(*y.shape))
    assert back.shape == x.shape
    assert_close(back, reference.A_adjoint(noise(*y.shape)))
    assert_close(inner(y, noise(*y.shape)), inner(x, back), 1e-4)


def test_a_new_kernel_is_not_mistaken_for_the_old_one() -> None:
    physics, x = FramedBlur(torch.rand(1, 1, 3, 3)), noise(1, 1, 20, 20)
    before, copy = physics.A(x), copied(physics)
    assert_close(copy.A(x), before)
    with torch.no_grad():
        physics.filter.mul_(2)
    assert_close(physics.A(x), 2 * before)
    assert_close(physics.A(x, filter=physics.filter / 4), before / 2)
    assert_close(physics.A(x), before / 2)
    assert_close(copy.A(x), before)


def test_lengths_that_are_quick() -> None:
    assert [quick(length) for length in (1, 7, 11, 538, 1025)] == [1, 8, 12, 540, 1080]
