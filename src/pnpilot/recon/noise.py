"""The noise of the coils, made white: as a noise scan shows it, or else the outermost samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ..errors import BadInput, PnPilotError, require
from ..io.raw import COIL, Stored
from ..problems._kspace import outer_noise
from ..whitening import coil_covariance
from .options import Options

UNEVEN = 8.0
"""Without a noise scan, noise is whitened if some combination of coils has so many times the power of another."""
MOST_SIGNAL, ABOVE = 10.0, 1.1
"""A noise scan may have so many times less noise than the outermost samples, which hold signal, and hardly more."""
NO_NOISE = 1e4
"""So large a difference is none of noise: the samples hold nothing but signal, or a coil is dead."""


def whitening(
    kspace: np.ndarray, mask: np.ndarray, scan: np.ndarray | None, options: Options
) -> tuple[np.ndarray | None, tuple[bool, str]]:
    """A matrix (coils, coils) to coils whose noise is white, or None, and what was done or why not.

    `scan` is the covariance of a noise scan, if there is one.
    """
    parts = torch.from_numpy(kspace), torch.from_numpy(mask.astype(np.float32))
    return whitening_by(lambda: coil_covariance(*parts), len(kspace), scan, options)


def whitening_by(
    outermost: Callable[[], torch.Tensor], coils: int, scan: np.ndarray | None, options: Options
) -> tuple[np.ndarray | None, tuple[bool, str]]:
    """The same, with a way to the covariance that the outermost samples show."""
    if options.skips("whitening"):
        return None, (False, "switched off")
    if scan is not None:
        require(len(scan) == coils, f"the noise scan has {len(scan)} coils, the data have {coils}")
        return _matrix(scan), (True, f"noise of {coils} coils whitened, as a noise scan shows it")
    try:
        outer = outermost().numpy()
        matrix = _matrix(outer)
    except PnPilotError as error:
        return None, (False, f"no noise scan, and the outermost samples do not show the noise: {error}")
    powers = np.linalg.eigvalsh(outer)
    ratio = float(powers[-1] / max(powers[0], 1e-30))
    words = (
        f"the outermost samples show noise that differs by a factor of {ratio**0.5:.2g} between combinations of coils"
    )
    if ratio < UNEVEN and "whitening" not in options.always:
        return None, (False, f"{words}: too little to be worth it without a noise scan")
    if ratio > NO_NOISE and "whitening" not in options.always:
        return None, (False, f"{words}: that is no noise but signal, or a coil that is dead")
    return matrix, (True, f"{words}: whitened")


def scanned_level(kspace: np.ndarray, mask: np.ndarray, scan: np.ndarray) -> tuple[float | None, tuple[bool, str]]:
    """The noise level of whitened k-space by the covariance of a noise scan, if the data do not speak against it.

    What the outermost samples show is at most too much: there may be some of the image among them.
    """
    unshifted, flags = (
        torch.fft.ifftshift(torch.from_numpy(part), dim=(-2, -1)) for part in (kspace, mask.astype(np.float32))
    )
    return level_of(scan, float(outer_noise(unshifted[None], flags[None, None])))


def level_of(scan: np.ndarray, shown: float) -> tuple[float | None, tuple[bool, str]]:
    """The same, with the level that the outermost samples show."""
    level = float(np.sqrt(np.diagonal(scan).real.mean()))
    words = f"the noise scan has {level / max(shown, 1e-30):.2g} times the noise that the outermost samples show"
    if shown / MOST_SIGNAL <= level <= ABOVE * shown:
        return level, (True, f"{words}: the level is that of the scan")
    return None, (False, f"{words}: was it made in other units? The level is that of the samples")


def covariance_of(scan: Stored) -> np.ndarray:
    """The covariance of noise alone (coil, sample)."""
    noise = np.asarray(scan.data[tuple(slice(None) for _ in scan.data.shape)])
    if scan.axes is not None and COIL in scan.axes:
        noise = np.moveaxis(noise, scan.axes.index(COIL), 0)
    noise = noise.reshape(len(noise), -1)
    require(np.iscomplexobj(noise), "a noise scan holds complex numbers, (coil, sample)")
    require(bool(np.isfinite(noise).all()), "the noise scan holds NaN or infinite values")
    noise = noise[:, np.abs(noise).sum(0) > 0]
    require(noise.shape[1] >= 4 * len(noise), f"a noise scan of {noise.shape} is too short, or not (coil, sample)")
    return noise @ noise.conj().T / (2 * noise.shape[1])


def _matrix(covariance: np.ndarray) -> np.ndarray:
    """L⁻¹ of covariance = LLᴴ, scaled to leave the strength of the noise as it is in the mean."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError as error:
        raise BadInput("the noise of the coils is not independent: two may be copies of each other") from error
    level = np.sqrt(np.diagonal(covariance).real.mean())
    return (level * np.linalg.inv(factor)).astype(np.complex64)
