"""Whether an adjoint is one: an operator that is not linear, or whose adjoint belongs to another, has no data step."""

from __future__ import annotations

import torch
from deepinv.physics import Physics
from torch import Tensor

from ._data import energy, product
from ._least_squares import Linear

PROBES = 4
TOLERATED = 0.1
"""An adjoint that interpolates otherwise than its operator is off by 0.04, one that is shifted by more than 1."""


def not_an_adjoint(physics: Physics, A: Linear, A_adjoint: Linear, like: Tensor) -> list[str]:
    """A warning where ⟨Ap, w⟩ and ⟨p, Aᴴw⟩ differ, for white noise p, an image `like` (B, ...), and w."""
    generator, found = torch.Generator().manual_seed(1), []
    for _ in range(PROBES):
        p = torch.randn(like.shape, dtype=like.dtype, generator=generator).to(like.device)
        seen = A(p)
        w = torch.randn(seen.shape, dtype=seen.dtype, generator=generator).to(seen.device)
        wrong = product(seen, w) - product(p, A_adjoint(w))
        chance = energy(seen) * energy(w) / w[0].numel()
        found.append(wrong.square() / chance.clamp_min(torch.finfo(chance.dtype).tiny))
    error = torch.stack(found).mean(0).sqrt()
    if bool((error <= TOLERATED).all()):
        return []
    name = type(physics).__name__
    return [
        f"A_adjoint of the {name} is not the adjoint of its A, or A is not linear: for random p and w, ⟨Ap, w⟩ and "
        f"⟨p, A_adjoint(w)⟩ differ by {error.max():.2g} times their usual size. The image cannot be relied on; "
        "deepinv.physics.adjoint_function makes an adjoint from A"
    ]
