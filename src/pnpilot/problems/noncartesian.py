"""Multi-coil MRI along any trajectory as a Problem: what a data step needs is a filter, made once."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..errors import require
from ..physics import NonCartesian
from ..physics.nufft import images_of, samples_of, spectrum
from ..types import per_sample, to_two_channels
from ._data import checked_data, noise_of, product
from ._kspace import FEWEST, OUTERMOST, median_level
from ._least_squares import LeastSquares, Linear, opened, operator_norm
from ._units import Hints, Units
from .base import PROBLEMS


@PROBLEMS.register("noncartesian")
class NonCartesianProblem(LeastSquares):
    """MRI along a trajectory: D(x) = ½ Σ_c ‖√w(F(S_c x) − y_c)‖², over the norm of the operator.

    The weights w keep what was sampled densely from outweighing the rest, which would be left to the prior: with them
    AᴴA is close to that of a Cartesian mask. It is computed without the trajectory, as a filter of padded images.
    """

    physics_type = NonCartesian
    per_image = (*LeastSquares.per_image, "trajectory", "roots", "maps", "filter", "start", "power")

    def __init__(self, y: Tensor, units: Units, back: Tensor, start: Tensor, *way: Tensor) -> None:
        """`way` is the trajectory (B, 1, samples, 2), √w (B, 1, samples), coil maps, and the filter of AᴴA."""
        super().__init__(y, units, back)
        self.start = start
        self.trajectory, self.roots, self.maps, self.filter = way
        roots, maps = self.roots, self.maps
        self.power = _exact(y, y)
        self.measurements = roots.square().sum((1, 2)) * y.shape[1]
        self.kept = roots.square().sum((1, 2)) * maps.abs().square().sum((1, 2, 3)) / maps[0, 0].numel() ** 2

    @classmethod
    def of(cls, y: Tensor, physics: NonCartesian, hints: Hints) -> NonCartesianProblem:
        """Weights, norm and start."""
        y, trajectory, maps, roots = _checked(checked_data(y, "k-space"), physics)
        level = outer_noise(y, trajectory[:, 0])
        gain = roots.amax((1, 2))
        roots = roots / per_sample(gain, roots)
        spectra = filters(trajectory, roots, maps)
        norm = operator_norm(_normal(spectra, maps), maps[:, :1])
        y, maps = roots * y / per_sample(norm, y), maps / per_sample(norm, maps)
        normal, back = _normal(spectra, maps), _adjoint(y, trajectory, roots, maps)
        units, start = opened(hints, noise_of(physics), level / norm, norm, normal, back)
        # Real scans have a phase, and coils hide whether an image has none.
        units = replace(units, real=torch.full((len(y),), bool(hints.real)))
        back, start = units.scale(back), units.scale(start)
        return cls(units.scale(y), units, back, start, trajectory, roots, maps, spectra)

    def x0(self) -> Tensor:
        """A smooth solution, complex."""
        return self.start

    def D(self, x: Tensor) -> Tensor:
        """½‖Ax − y‖², by AᴴA and Aᴴy: nothing goes to the CPU and back for it."""
        return ((_exact(x, self.normal(x) - 2 * self.back) + self.power) / 2).clamp_min(0).to(self.roots)

    def A(self, x: Tensor) -> Tensor:
        """√w F(Sx)."""
        pairs = zip(self.maps * x, self.trajectory[:, 0], strict=True)
        return self.roots * torch.stack([samples_of(one, way) for one, way in pairs])

    def A_adjoint(self, y: Tensor) -> Tensor:
        """S*Fᴴ√w y."""
        return _adjoint(y, self.trajectory, self.roots, self.maps)

    def normal(self, x: Tensor) -> Tensor:
        """S*FᴴwF(Sx)."""
        return _normal(self.filter, self.maps)(x)

    def export(self, image: Tensor) -> Tensor:
        """deepinv's two channels."""
        return to_two_channels(self.units.unscale(image))


def filters(trajectory: Tensor, roots: Tensor, maps: Tensor) -> Tensor:
    """What FᴴwF does to padded images, (B, 1, 2H, 2W) in their k-space; images may share it."""
    sizes = (maps.shape[-2], maps.shape[-1])
    found: list[Tensor] = []
    for at, (way, root) in enumerate(zip(trajectory[:, 0], roots[:, 0], strict=True)):
        same = at > 0 and torch.equal(way, trajectory[0, 0]) and torch.equal(root, roots[0, 0])
        found.append(found[0] if same else spectrum(way, root.square(), sizes))
    return torch.stack(found)[:, None]


def _normal(spectra: Tensor, maps: Tensor) -> Linear:
    height, width = maps.shape[-2:]
    conjugate = maps.conj().resolve_conj()

    def normal(x: Tensor) -> Tensor:
        # One axis after the other: rows that are zeros, or cut off afterwards, need no transform.
        kspace = torch.fft.fft(torch.fft.fft(maps * x, 2 * width), 2 * height, dim=-2).mul_(spectra)
        images = torch.fft.ifft(torch.fft.ifft(kspace, dim=-2)[..., :height, :])[..., :width]
        return (conjugate * images).sum(1, keepdim=True)

    return normal


def _adjoint(y: Tensor, trajectory: Tensor, roots: Tensor, maps: Tensor) -> Tensor:
    sizes = (maps.shape[-2], maps.shape[-1])
    images = torch.stack([images_of(one, way, sizes) for one, way in zip(roots * y, trajectory[:, 0], strict=True)])
    return (maps.conj() * images).sum(1, keepdim=True)


def _exact(a: Tensor, b: Tensor) -> Tensor:
    """Inner products (B,) in double precision: those of D nearly cancel."""
    return product(a.to(torch.complex128), b.to(torch.complex128))


def outer_noise(y: Tensor, trajectory: Tensor) -> Tensor:
    """The noise level (B,) of samples (B, coils, samples) along (B, samples, 2): the median power of the outermost."""
    outer = outer_samples(y, trajectory, OUTERMOST)
    levels = [torch.stack([median_level(coil) for coil in one]) for one in outer]
    return torch.stack(levels).square().mean(1).sqrt()


def outer_samples(y: Tensor, trajectory: Tensor, share: float) -> Tensor:
    """The outermost share of the samples, (B, coils, fewer)."""
    radius = trajectory.norm(dim=-1)
    count = min(y.shape[-1], max(round(share * y.shape[-1]), FEWEST))
    places = radius.topk(count, dim=1).indices
    return y.gather(2, places[:, None].expand(-1, y.shape[1], -1))


def _checked(y: Tensor, physics: NonCartesian) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Samples (B, coils, samples), trajectories, maps and the roots of the weights, one for each image."""
    shape, wanted = tuple(y.shape), "(batch, 2, coils, samples) or complex (batch, coils, samples)"
    require(y.ndim == (3 if y.is_complex() else 4), f"k-space along a trajectory must be {wanted}, got shape {shape}")
    require(y.is_complex() or y.shape[1] == 2, f"k-space along a trajectory must be {wanted}, got shape {shape}")
    y = y if y.is_complex() else torch.complex(y[:, 0], y[:, 1])
    maps, trajectory = physics.coil_maps.to(y), physics.trajectory.to(y.real)
    require(
        y.shape[1:] == (maps.shape[1], trajectory.shape[2]),
        f"k-space has {y.shape[1]} coils and {y.shape[2]} samples, the maps are of {maps.shape[1]} coils and the "
        f"trajectory has {trajectory.shape[2]} samples",
    )
    for what, own in (("coil maps", maps), ("trajectories", trajectory), ("sets of weights", physics.weights)):
        require(len(own) in (1, len(y)), f"there are {len(own)} {what} for {len(y)} images")
    require(bool(torch.isfinite(maps).all()), "the coil maps hold NaN or infinite values")
    require(bool(maps.flatten(1).any(1).all()), "the coil maps are zero everywhere")
    roots = physics.weights.to(y.real)[:, 0].sqrt()
    batch = len(y)
    maps, trajectory, roots = (part.expand(batch, *part.shape[1:]) for part in (maps, trajectory, roots))
    require(bool((roots * y).flatten(1).any(1).all()), "k-space is zero wherever the weights are not")
    return y, trajectory, maps, roots
