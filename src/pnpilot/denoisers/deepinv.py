"""Any deepinv denoiser as one of ours."""

from __future__ import annotations

from torch import Tensor, nn

from ..errors import BadInput
from .base import DENOISERS, Denoiser, freeze


@DENOISERS.register("deepinv")
class DeepinvDenoiser(Denoiser):
    """Adapter for any deepinv denoiser of one grey channel: DeepinvDenoiser(deepinv.models.DRUNet(1, 1))."""

    def __init__(self, model: nn.Module | None = None, *, differentiable: bool = True) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise BadInput("the deepinv adapter wraps a model: DeepinvDenoiser(deepinv.models.DRUNet(1, 1))")
        self.model = freeze(model)
        self.differentiable = differentiable

    @classmethod
    def example(cls) -> DeepinvDenoiser:
        """A small untrained DRUNet."""
        from deepinv.models import DRUNet

        return cls(DRUNet(in_channels=1, out_channels=1, nc=(8, 8, 8, 8), nb=1, pretrained=None))

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """What the model takes away."""
        return self.model(x, sigma.flatten()) - x
