"""Single-photon imaging as a Problem: the likelihood of ones and zeros, with an exact data step."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..errors import require
from ..physics.single_photon import SinglePhoton
from ..types import named, per_sample
from ._data import checked_data
from ._least_squares import smooth_start
from ._units import Hints, Units
from .base import PROBLEMS, Problem
from .photons import LEAST_VARIANCE

DIM = 1e-3
"""Photons per jot below which the data term goes on as a straight line."""
FEW = 1.0
"""Ones per pixel under which images come out too dark: by a tenth with 0.8, by a third with 0.2, as was measured."""
JOTS = 9
"""With fewer of them in a pixel, bright parts have more noise than a denoiser takes."""
STEPS = 16
"""Newton's steps of the data step. Up to two photons per jot, four reach rounding; each photon more takes one more."""


@PROBLEMS.register("single-photon")
class SinglePhotonProblem(Problem):
    """Ones and zeros of jots: D(x) = σ² Σ [K₀θ − K₁ log(1 − e^(−θ))] + const, with θ the photons per jot, peak·x.

    K₁ and K₀ are the numbers of ones and zeros of a pixel. 1/σ² is the mean of the Fisher information about the pixels
    of x: so to a penalty and to schedules, D is what ½‖Ax − y‖² is for an A of norm one and noise of level σ.
    """

    physics_type = SinglePhoton
    offers = frozenset({"prox"})  # no step along the gradient suits dark and bright pixels
    per_image = ("y", "jots", "variance", "start", "measurements", "kept")

    def __init__(self, y: Tensor, units: Units, jots: Tensor, variance: Tensor, start: Tensor) -> None:
        """`jots` (B,) are those of a pixel, `variance` (B,) is σ²."""
        super().__init__(y, units)
        self.jots, self.variance, self.start = jots, variance, start
        self.measurements = torch.full((len(y),), y[0].numel(), device=y.device)
        self.kept = y.new_ones(len(y))

    @classmethod
    def of(cls, y: Tensor, physics: SinglePhoton, hints: Hints) -> SinglePhotonProblem:
        """Shares of ones; the peak counts as one photon per jot unless it is told, or images are brighter."""
        y = checked_data(y, "the share of ones")
        require(y.ndim == 4 and not y.is_complex(), f"shares of ones must be real (B, C, H, W), got {tuple(y.shape)}")
        require(len(physics.jots) in (1, len(y)), f"{len(physics.jots)} numbers of jots for {len(y)} images")
        jots = physics.jots.to(y).expand(len(y))
        ones = y * per_sample(jots, y)
        whole = bool(((y >= 0) & (y <= 1) & ((ones - ones.round()).abs() < 0.01)).all())
        require(whole, f"shares of ones must be from 0 to 1, and whole numbers over {jots[0]:.0f} jots")
        picture = _smooth_picture(y, jots)
        units = Units.of(hints, picture, None, torch.ones_like(jots))
        if hints.peak is None:
            units = replace(units, peak=units.peak.clamp_min(1))
        # In the dark, hardly any photons tell much.
        dark = LEAST_VARIANCE * picture.flatten(1).mean(1)
        fisher = per_sample(jots, y) / torch.expm1(torch.maximum(picture, per_sample(dark, y)))
        variance = 1 / (fisher.flatten(1).mean(1) * units.peak.square())
        problem = cls(y, units, jots, variance, units.scale(picture))
        problem.notes = _few(ones, jots)
        return problem

    def x0(self) -> Tensor:
        """The likeliest image of smoothed shares."""
        return self.start

    def D(self, x: Tensor) -> Tensor:
        """σ² times the negative logarithm of the likelihood over the largest: σ²/2 times the deviance."""
        rate = self.rate(x)
        bright = rate.clamp_min(DIM)
        ones, zeros = self.counts()
        loss = zeros * bright - ones * torch.log(-torch.expm1(-bright)) + self.slope(bright) * (rate - bright)
        least = -torch.xlogy(self.y, self.y) - torch.xlogy(1 - self.y, 1 - self.y)
        return self.variance * (loss - per_sample(self.jots, x) * least).flatten(1).sum(1)

    def grad(self, x: Tensor) -> Tensor:
        """σ²·peak·(K₀ − K₁/(e^θ − 1))."""
        return per_sample(self.variance * self.units.peak, x) * self.slope(self.rate(x).clamp_min(DIM))

    def prox(self, v: Tensor, mu: Tensor, start: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """c(K₀ − K₁/(e^θ − 1)) + θ = peak·v with c = σ²·peak²/μ, by Newton's method, or zero if that is less.

        The left-hand side is concave and grows with θ, so steps from under the root never pass it, and 1/(e^θ − 1) is
        never less than 1/θ − ½, which has its root there. The last step carries the gradient, which is exact.
        """
        c, target = per_sample(self.variance * self.units.peak.square() / mu, v), self.rate(v)
        ones, _ = self.counts()
        with torch.no_grad():
            line = target - c * self.slope(torch.full_like(target, DIM))
            b = target - c * (per_sample(self.jots, v) - ones / 2)
            root = (b.square() + 4 * c * ones).sqrt()
            rate = torch.where(b > 0, (b + root) / 2, 2 * c * ones / (root - b).clamp_min(DIM)).clamp_min(DIM)
            for _ in range(STEPS):
                rate = rate - (c * self.slope(rate) + rate - target) / self.steepness(rate, c)
        step = (c * self.slope(rate) + rate - target) / self.steepness(rate, c).detach()
        dim = target - c * self.slope(torch.full_like(target, DIM))
        return torch.where(line < DIM, dim.clamp_min(0), rate - step) / per_sample(self.units.peak, v)

    def rate(self, x: Tensor) -> Tensor:
        """θ."""
        return x * per_sample(self.units.peak, x)

    def counts(self) -> tuple[Tensor, Tensor]:
        """K₁ and K₀."""
        jots = per_sample(self.jots, self.y)
        return jots * self.y, jots * (1 - self.y)

    def slope(self, rate: Tensor) -> Tensor:
        """K₀ − K₁/(e^θ − 1)."""
        ones, zeros = self.counts()
        return zeros - ones / torch.expm1(rate)

    def steepness(self, rate: Tensor, c: Tensor) -> Tensor:
        """The derivative of c·slope(θ) + θ."""
        ones, _ = self.counts()
        return 1 - c * ones / (torch.expm1(rate) * torch.expm1(-rate))

    def measured(self) -> list[Tensor]:
        """The start, and √jots over ten."""
        return [self.start, per_sample(self.jots.sqrt() / 10, self.start).expand_as(self.start)]

    def estimated_noise(self) -> Tensor:
        """σ: the shares themselves tell how noisy they are."""
        return self.variance.sqrt()

    def export(self, image: Tensor) -> Tensor:
        """The image in photons per jot."""
        return self.units.unscale(image)


def _smooth_picture(y: Tensor, jots: Tensor) -> Tensor:
    """Photons per jot: the likeliest of the shares, smoothed as far as their noise asks for."""
    noise = ((y * (1 - y)).flatten(1).mean(1) / jots).sqrt()
    share = smooth_start(lambda image: image, y, noise).clamp_min(0)
    return -torch.log1p(-torch.minimum(share, 1 - 0.5 / per_sample(jots, y)))


def _few(ones: Tensor, jots: Tensor) -> list[str]:
    """A warning where images have hardly any ones, for numbers of them (B, C, H, W), or jots (B,)."""
    mean = ones.flatten(1).mean(1)
    few = (mean < FEW) | (jots < JOTS)
    if not bool(few.any()):
        return []
    return [
        f"few photons are known of {named(few)}, {mean[few].min():.2g} ones in a pixel on average: bright parts may "
        "stay noisy, and dim ones come out too dark, by up to a third; more exposures or larger pixels would help"
    ]
