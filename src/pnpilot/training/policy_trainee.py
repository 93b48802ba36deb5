"""One training step of a policy: play an episode, then learn from the latest ones."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .arguments import PolicyArgs
from .clock import cosine
from .episodes import Problems, Simulations
from .exam import Exam, Scores, in_words
from .learners import Learner
from .replay import Episode, Replay
from .session import Session

EPISODES_OF_A_PROCESS = 1_000_000
"""Each process has its own range of this many episode numbers."""


class PolicyTrainee:
    """A learner with the episodes that it learns from; what it reports is added to `metrics`, as lines of JSON."""

    def __init__(
        self,
        args: PolicyArgs,
        learner: Learner,
        exam: Exam,
        training: list[np.ndarray],
        session: Session,
        metrics: Path,
        rank: int = 0,
    ) -> None:
        self.args, self.learner, self.exam, self.session, self.metrics = args, learner, exam, session, metrics
        self.exam_takes, self.rate = 0.0, 0.0
        self.replay = Replay(args.replay)
        self.episode: Episode | None = None
        self.learnt: dict[str, Tensor] = {}
        begun = session.steps
        seed = 1000 * args.seed + rank + 7919 * begun
        self.generator = torch.Generator(learner.device).manual_seed(seed)
        first = EPISODES_OF_A_PROCESS * rank + begun
        simulations = Simulations(exam.task, training, args.batch, args.size, args.seed, first=first)
        if not begun:
            self._calibrate(simulations)
        self.problems = Problems(simulations, learner.device)

    def _calibrate(self, simulations: Simulations) -> None:
        """Calibrate on the same batch in all processes."""
        device = self.learner.device
        problem, truth = simulations.number(0)
        generator = torch.Generator(device).manual_seed(self.args.seed)
        self.learner.calibrate(self.learner.play(problem.to(device), truth.to(device), generator))

    def step(self, share: float, done: int) -> None:
        """One episode, and some gradient steps."""
        problem, truth = next(self.problems)
        began = time.monotonic()
        self.episode = self.learner.play(problem, truth, self.generator)
        self.exam_takes = (time.monotonic() - began) * self.exam.runs / len(truth)
        self.replay.add(self.episode)
        self.rate = self.args.learner.rate * cosine(share, done, self.args.warmup)
        for _ in range(self.args.updates):
            self.learnt = self.learner.update(self.replay.sample(self.generator), self.rate)

    def report(self) -> str:
        """What the latest episode gained, and what the learner says."""
        assert self.episode is not None
        gain, decisions = _gain(self.episode), _mean(self.episode.alive.sum(0))
        learnt = {name: value.item() for name, value in self.learnt.items()}
        self._note({"rate": self.rate, "gain": gain, "decisions": decisions, **learnt})
        words = "  ".join(f"{name} {value:.3f}" for name, value in learnt.items())
        return f"gain {gain:.2f} dB  decisions {decisions:.1f}  {words}"

    def examine(self) -> str:
        """PSNR and iterations per setting."""
        return in_words(self.scores())

    def scores(self) -> Scores:
        """How the policy does on held-out images; also written to `metrics`."""
        found = self.exam.take(self.learner.policy, self.learner.denoiser)
        self._note({"held_out": found})
        return found

    def _note(self, numbers: dict[str, Any]) -> None:
        record = {"episode": self.session.steps, "seconds": round(self.session.spent, 1), **numbers}
        bad = {name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)}
        plain = {name: None if name in bad else value for name, value in record.items()}
        with self.metrics.open("a") as file:
            file.write(json.dumps(plain) + "\n")


def _gain(episode: Episode) -> float:
    """Mean PSNR gained from the start to where each image stopped."""
    last = episode.alive.sum(0)
    return _mean(episode.scores.gather(0, last[None])[0] - episode.scores[0])


def _mean(values: Tensor) -> float:
    return values.float().mean().item()
