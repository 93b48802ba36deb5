"""Any deepinv denoiser as one of ours."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import BadInput, first_line
from .base import DENOISERS, Denoiser, freeze


@DENOISERS.register("deepinv")
class DeepinvDenoiser(Denoiser):
    """Adapter for any deepinv denoiser, grey or colour: DeepinvDenoiser(deepinv.models.DRUNet(1, 1))."""

    adapts = True

    def __init__(self, model: nn.Module | None = None, *, differentiable: bool = True) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise BadInput("the deepinv adapter wraps a model: DeepinvDenoiser(deepinv.models.DRUNet(1, 1))")
        self.model = freeze(model)
        self.differentiable = differentiable
        self.channels = self._channels_of_model()

    @classmethod
    def example(cls) -> DeepinvDenoiser:
        """A small untrained DRUNet."""
        from deepinv.models import DRUNet

        return cls(DRUNet(in_channels=1, out_channels=1, nc=(8, 8, 8, 8), nb=1, pretrained=None))

    def residual(self, x: Tensor, sigma: Tensor) -> Tensor:
        """What the model adds; a colour model sees the image in all channels, and their mean is taken."""
        return self.model(x.expand(-1, self.channels, -1, -1), sigma.flatten()).mean(1, keepdim=True) - x

    def _channels_of_model(self) -> int:
        device, reasons = self.device, []
        for channels in (1, 3):
            try:
                with torch.no_grad():
                    self.model(
                        torch.full((1, channels, 64, 64), 0.5, device=device), torch.tensor([0.1], device=device)
                    )
            except (RuntimeError, ValueError, TypeError, AssertionError) as error:
                reasons.append(first_line(error))
            else:
                return channels
        raise BadInput(f"{type(self.model).__name__} denoises neither grey nor colour images: {'; '.join(reasons)}")
