"""Images in batches: as some stop, others take their place, and no more than so many are in memory at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import BadInput, PnPilotError
from ..guess import level
from ..model import PnPilot
from ..problems import Problem
from ..problems._least_squares import noise_like
from ..step import Step
from ..types import mentioned, per_sample, renumbered
from .prepared import Prepared, batch

WORTH = 4
"""A new batch is begun when a quarter of the room is free: smaller ones do not keep a GPU busy."""
HELD_BACK = 2
"""Images that have stopped wait for the last of their batch, but no more than this times the room are held at all."""


@dataclass(frozen=True)
class Finished:
    """A reconstructed image and what there is to say of it."""

    number: int
    image: np.ndarray = field(repr=False)
    """(H, W), or (3, H, W) in colour."""
    record: dict[str, Any] = field(repr=False)
    start: np.ndarray = field(repr=False)
    objection: np.ndarray = field(repr=False)
    """What the data still object to: the gradient of the data term, in units of what their noise leaves in it."""


class Cohort:
    """Images that began together."""

    def __init__(self, model: PnPilot, images: list[Prepared]) -> None:
        self.images = images
        y, physics = batch(images)
        device = model.denoiser.device
        self.steps = model.steps(y.to(device), physics.to(device))
        self.active, self.share = len(images), 0.0
        self.step: Step | None = None

    def advance(self) -> list[Finished]:
        """Take the next decision; the finished images, if it was the last."""
        self.step = next(self.steps)
        self.share = (self.step.index + 1) / self.step.history.planned
        self.active = 0 if self.step.last else int(self.step.active.sum())
        if not self.step.last:
            return []
        return _finished(self.step, self.images)


def stream(
    model: PnPilot, images: Iterator[Prepared], room: int, tick: Callable[[float], Any] = lambda _: None
) -> Iterator[Finished]:
    """Reconstruct images as they come, at most `room` of them active. `tick` hears of every image's share of progress.

    They come out in whatever order they are finished.
    """
    running: list[Cohort] = []
    waiting: Prepared | None = next(images, None)
    while waiting is not None or running:
        while waiting is not None:
            free = min(
                room - sum(cohort.active for cohort in running),
                HELD_BACK * room - sum(len(cohort.images) for cohort in running),
            )
            if free < max(1, room // WORTH):
                break
            if waiting.empty:
                yield _nothing(waiting)
                tick(1.0)
                waiting = next(images, None)
                continue
            group = [waiting]
            waiting = next(images, None)
            while waiting is not None and len(group) < free and not waiting.empty and waiting.kind == group[0].kind:
                group.append(waiting)
                waiting = next(images, None)
            running.append(Cohort(model, group))
        for cohort in list(running):
            before = cohort.share
            yield from _advanced(cohort, model)
            tick((cohort.share - before) * len(cohort.images))
            if cohort.active == 0:
                running.remove(cohort)


def _advanced(cohort: Cohort, model: PnPilot) -> list[Finished]:
    try:
        return cohort.advance()
    except PnPilotError as error:
        # One image that cannot be used must be named.
        for image in cohort.images if len(cohort.images) > 1 else []:
            try:
                Cohort(model, [image]).advance()
            except PnPilotError as own:
                raise BadInput(f"image {image.number}: {own}") from own
        raise BadInput(f"image {cohort.images[0].number}: {error}") from error


@torch.no_grad()
def _finished(step: Step, images: list[Prepared]) -> list[Finished]:
    problem, trace = step.problem, step.trace
    begun = problem.export(problem.x0())
    inside = problem.units.scale(_as_inside(step.image, begun, problem.x0()))
    distance, against = problem.fidelity(inside).tolist(), objections(problem, inside).cpu().numpy()
    noise, peak = problem.noise_unit().tolist(), problem.units.peak.tolist()
    numbers, finished = [image.number for image in images], []
    for place, image in enumerate(images):
        estimates = {"noise": noise[place], "peak": peak[place], "kept": image.kept, "distance": distance[place]}
        estimates |= {"real": bool(problem.units.real[place]), "calibration": image.calibration, "empty": False}
        told = [renumbered(warning, numbers) for warning in step.warnings if place in mentioned(warning)]
        finished.append(
            Finished(
                image.number,
                image.finished(step.image[place].cpu()),
                {**trace[place], **estimates, "warnings": told},
                image.finished(begun[place].cpu()),
                against[place],
            )
        )
    return finished


def _as_inside(image: Tensor, begun: Tensor, start: Tensor) -> Tensor:
    """An image in the user's layout as problems have it: deepinv has complex ones in two channels."""
    two = begun.shape[1] == 2 * start.shape[1] and not image.is_complex()
    return torch.complex(*image.chunk(2, 1)) if two else image


def objections(problem: Problem, image: Tensor) -> Tensor:
    """|∇D| of images in internal units (B, C, H, W), over what noise alone leaves of it, as (B, H, W)."""
    asked = problem.grad(image)
    white = noise_like(problem.y) * (2**0.5 if problem.y.is_complex() else 1)
    noise = white * per_sample(level(problem), white)
    if "linear" in problem.offers:
        left = problem.A_adjoint(noise)
    else:  # what the gradient becomes with as much noise again
        noisier = copy.copy(problem)
        noisier.y = problem.y + noise
        left = noisier.grad(image) - asked
    usual = left.abs().square().sum(1).flatten(1).mean(1).sqrt()
    strength = asked.abs().square().sum(1).sqrt()
    return strength / per_sample(usual, strength)


def _nothing(image: Prepared) -> Finished:
    """What there is of an image without a sample."""
    empty = image.nothing()
    record = {"solver": "", "policy": "", "iterations": 0, "stopped": "nothing was measured", "parameters": {}}
    record |= {"noise": None, "peak": None, "kept": 0.0, "distance": None, "calibration": "", "empty": True}
    return Finished(image.number, empty, {**record, "warnings": []}, empty, np.zeros(empty.shape[-2:], np.float32))
