"""The loop that networks with a loss are trained by: a budget of minutes, a moving average, checkpoints."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from ..denoisers.base import freeze
from .checkpoint import load_checkpoint, save_checkpoint
from .clock import Clock, cosine
from .progress import ProgressLine

Network = TypeVar("Network", bound=nn.Module)


class SupervisedArgs(Protocol):
    """What the loop reads of the arguments of a run, which are a dataclass."""

    minutes: float
    batch: int
    learning_rate: float
    weight_decay: float
    warmup: int
    ema: float
    clip: float


class Supervised(Generic[Network]):
    """A network, the moving average of its weights that is kept, and where training is."""

    def __init__(self, network: Network, args: Any, out: Path, generator: torch.Generator) -> None:
        self.args: SupervisedArgs = args
        self.network, self.average = network.train(), freeze(copy.deepcopy(network))
        self.step, self.clock = 0, Clock(args.minutes)
        fused = generator.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            network.parameters(), args.learning_rate, weight_decay=args.weight_decay, fused=fused
        )
        self.checkpoint = out / "checkpoint.safetensors"
        self._parts = {
            "network": network,
            "average": self.average,
            "optimizer": self.optimizer,
            "generator": generator,
        }
        self._identity = asdict(args)

    def run(
        self,
        line: ProgressLine,
        loss: Callable[[], Tensor],
        examine: Callable[[Network], str],
        save_every: float = 60.0,
    ) -> None:
        """Spend the budget; a run that was stopped goes on from its last checkpoint."""
        if self.checkpoint.exists():
            progress = load_checkpoint(self.checkpoint, self._parts, self._identity)
            self.step, self.clock = progress["step"], Clock(self.args.minutes, progress["spent"])
            line.say(f"resumed at step {self.step}, {self.clock.spent:.0f} s of {self.clock.budget:.0f} s spent")
        saved = reported = time.monotonic()
        reported_step = self.step
        torch.backends.cudnn.benchmark = True  # all batches have one shape
        try:
            while self.clock.share < 1:
                found = self._update(loss)
                if self.step % 20 == 0 and (now := time.monotonic()) - reported > line.interval:
                    speed = (self.step - reported_step) * self.args.batch / (now - reported)
                    line.update(self.clock.share, f"step {self.step}  loss {found.item():.5f}  {speed:.0f} images/s")
                    reported, reported_step = now, self.step
                if time.monotonic() - saved > save_every:
                    self.save()
                    line.say(f"step {self.step}: held out {examine(self.average)}")
                    saved = time.monotonic()
        except KeyboardInterrupt:
            self.save()
            line.say(f"stopped at step {self.step}; the same command goes on from {self.checkpoint}")
            raise
        finally:
            torch.backends.cudnn.benchmark = False
        self.save()

    def save(self) -> None:
        """Write the checkpoint."""
        progress = {"args": self._identity, "step": self.step, "spent": self.clock.spent}
        save_checkpoint(self.checkpoint, self._parts, progress)

    def _update(self, loss: Callable[[], Tensor]) -> Tensor:
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.learning_rate * cosine(self.clock.share, self.step, self.args.warmup)
        self.optimizer.zero_grad(set_to_none=True)
        found = loss()
        found.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.args.clip)
        self.optimizer.step()
        follow(self.average, self.network, min(self.args.ema, (1 + self.step) / (10 + self.step)))
        self.step += 1
        return found.detach()


@torch.no_grad()
def follow(average: nn.Module, network: nn.Module, rate: float) -> None:
    """Move the average towards the network."""
    # Not the parameters alone: normalisation is of no use without the statistics of what it normalises.
    pairs = list(zip(average.state_dict().values(), network.state_dict().values(), strict=True))
    numbers = [pair for pair in pairs if pair[0].is_floating_point()]
    torch._foreach_lerp_([mine for mine, _ in numbers], [its for _, its in numbers], 1 - rate)
    for mine, its in pairs:
        if not mine.is_floating_point():  # a counter has no average
            mine.copy_(its)


def gpu_share(device: torch.device) -> dict[str, float]:
    """Of the GPU, where runs were trained side by side: without it their minutes say little."""
    percent = os.environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")
    known = device.type == "cuda" and percent.replace(".", "", 1).isdigit()
    return {"gpu_share_percent": float(percent)} if known else {}
