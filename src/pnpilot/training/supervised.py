"""Training with a loss: gradient steps, and a moving average of the weights, which is what is kept."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from ..denoisers.base import freeze
from .clock import cosine

Network = TypeVar("Network", bound=nn.Module)


class SupervisedArgs(Protocol):
    """The arguments of a run that are read here."""

    batch: int
    learning_rate: float
    weight_decay: float
    warmup: int
    ema: float
    clip: float


class Supervised(Generic[Network]):
    """A network with its loss, and the moving average of its weights; a session trains it."""

    exam_takes = 0.0

    def __init__(
        self,
        network: Network,
        args: Any,
        generator: torch.Generator,
        loss: Callable[[], Tensor],
        examine: Callable[[Network], str],
    ) -> None:
        self.args: SupervisedArgs = args
        self.network, self.average = network.train(), freeze(copy.deepcopy(network))
        fused = generator.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            network.parameters(), args.learning_rate, weight_decay=args.weight_decay, fused=fused
        )
        self.parts = {
            "network": network,
            "average": self.average,
            "optimizer": self.optimizer,
            "generator": generator,
        }
        self._loss, self._examine = loss, examine
        self._latest, self._images, self._reported = torch.full((), torch.nan), 0, time.monotonic()

    def step(self, share: float, done: int) -> None:
        """One gradient step; the average follows."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.learning_rate * cosine(share, done, self.args.warmup)
        self.optimizer.zero_grad(set_to_none=True)
        found = self._loss()
        found.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.args.clip)
        self.optimizer.step()
        keep_average(self.average, self.network, min(self.args.ema, (1 + done) / (10 + done)))
        self._latest = found.detach()
        self._images += self.args.batch

    def report(self) -> str:
        """The loss, and the speed since the last report."""
        now = time.monotonic()
        speed = self._images / (now - self._reported)
        self._images, self._reported = 0, now
        return f"loss {self._latest.item():.5f}  {speed:.0f} images/s"

    def examine(self) -> str:
        """How the average does."""
        return self._examine(self.average)


@torch.no_grad()
def keep_average(average: nn.Module, network: nn.Module, memory: float) -> None:
    """Move the average towards the network."""
    # Buffers too: normalisation is useless without its statistics.
    pairs = list(zip(average.state_dict().values(), network.state_dict().values(), strict=True))
    numbers = [pair for pair in pairs if pair[0].is_floating_point()]
    torch._foreach_lerp_([mine for mine, _ in numbers], [its for _, its in numbers], 1 - memory)
    for mine, its in pairs:
        if not mine.is_floating_point():  # a counter has no average
            mine.copy_(its)
