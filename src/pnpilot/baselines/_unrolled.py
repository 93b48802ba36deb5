"""Networks that unroll an algorithm, trained end to end for all settings of the benchmark at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from torch import Tensor, nn

from ..denoisers.base import freeze
from ..problems.masked_fourier import MaskedFourier
from ..weights import has_weights, load_weights, weights_folder
from ._mri import MRIBaseline


class UnrolledNetwork(nn.Module, ABC):
    """From a problem to its images, with the loss that its authors train it with."""

    bf16: bool = True
    """Whether its convolutions may be trained in bf16."""

    @abstractmethod
    def forward(self, problem: MaskedFourier) -> Tensor:
        """Real images (B, 1, H, W)."""

    @abstractmethod
    def loss(self, problem: MaskedFourier, truth: Tensor) -> Tensor:
        """The loss to minimise."""


class Unrolled(MRIBaseline):
    """A network that `pnpilot train baseline NAME` trains."""

    network_class: type[UnrolledNetwork]
    batch: int
    """Images per step of training."""
    rate: float
    """Learning rate that training begins with."""

    def __init__(self, weights: Path | None = None, network: UnrolledNetwork | None = None) -> None:
        self.sha256: str | None = None
        if network is None:
            network = self.network_class()
            self.sha256 = load_weights(network, self.name, weights or self.folder())["sha256"]
        self.network = freeze(network)

    def made_with(self) -> str | None:
        """The weights."""
        return self.sha256

    @classmethod
    def folder(cls) -> Path:
        """Where its weights are kept: in `weights`, beside the file that defines it; ours with all that ship."""
        ours = cls.home() == Path(__file__).resolve().parent
        return weights_folder() if ours else cls.home() / "weights"

    @classmethod
    def obstacle(cls) -> str | None:
        """Missing modules, or weights that have not been trained yet."""
        untrained = (
            f"has no weights yet: pnpilot train baseline {cls.name} --data DIR trains them; "
            f"then move {cls.name}.safetensors and {cls.name}.json to {cls.folder()}"
        )
        return cls.uninstalled() or (None if has_weights(cls.name, cls.folder()) else untrained)

    def reconstruct(self, problem: MaskedFourier) -> Tensor:
        """One pass."""
        return self.network.to(problem.y.device)(problem)
