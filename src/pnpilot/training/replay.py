"""Episodes to learn from: what a policy saw, did and gained, kept for a while on the device."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..problems import Problem


class Moments(NamedTuple):
    """States from an episode, one per row, each with the decision taken and its outcome."""

    problem: Problem
    truth: Tensor
    t: Tensor
    """(B,): decisions taken before."""
    state: Any
    knobs: Tensor
    gain: Tensor
    """(B,): PSNR gained by the decision that was taken."""
    after: Any


class Episode(NamedTuple):
    """A batch of images from the start to the last decision; axes are decisions, then images."""

    problem: Problem
    truth: Tensor
    states: Any
    """Fields (N + 1, B, ...)."""
    knobs: Tensor
    """(N, B, P, m)."""
    scores: Tensor
    """PSNR (N + 1, B)."""
    alive: Tensor
    """(N, B): the images that had not stopped before the decision."""

    def sample(self, generator: torch.Generator) -> Moments:
        """As many different states as there are images, from images that had not stopped."""
        t, image = self.alive.nonzero(as_tuple=True)
        chosen = torch.randperm(len(t), generator=generator, device=t.device)[: len(self.truth)]
        t, image = t[chosen], image[chosen]
        kind = type(self.states)
        return Moments(
            self.problem.select(image),
            self.truth[image],
            t,
            kind(*(field[t, image] for field in self.states)),
            self.knobs[t, image],
            self.scores[t + 1, image] - self.scores[t, image],
            kind(*(field[t + 1, image] for field in self.states)),
        )


class Replay:
    """The latest episodes."""

    def __init__(self, episodes: int) -> None:
        self._episodes: deque[Episode] = deque(maxlen=episodes)

    def add(self, episode: Episode) -> None:
        """Keep this one; the oldest goes."""
        self._episodes.append(episode)

    def sample(self, generator: torch.Generator) -> Moments:
        """States of one episode drawn at random: all have one shape, whatever the problem."""
        which = torch.randint(len(self._episodes), (), generator=generator, device=generator.device)
        return self._episodes[int(which)].sample(generator)
