"""Coils: how many are needed, and where each of them sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import BadInput, require
from .fourier import to_image
from .options import Options
from .sampling import calibration_block, middle_part

MOST_COILS = 16
"""More coils than this are compressed to as many."""
WIDEST = 24
"""Side of the block that maps are estimated from, at most."""
SMALLEST = 12
"""A smaller block does not show what a kernel of ESPIRiT does."""
GRID = 96
"""Maps are found on a grid of so many points along a side, at most."""
EXPLAINED = 0.9
"""Maps that fit hold this share of the energy of the coil images at low resolution, at least."""
KERNEL = 8
"""Width of JSENSE's maps in k-space."""
CROP = 0.8
"""sigpy's threshold for maps: its default leaves holes in heads."""
DAMPED = 0.02
"""Weight of JSENSE's ridge. Without one, its conjugate gradients go on after they are there, and blow rounding up."""


def compression(kspace: np.ndarray, count: int = MOST_COILS) -> tuple[np.ndarray, float]:
    """A matrix (count, coils) to the strongest combinations of coils (coils, H, W), and their share of the energy."""
    flat = kspace.reshape(len(kspace), -1)
    energy, vectors = np.linalg.eigh(flat @ flat.conj().T)  # the weakest first
    return vectors[:, ::-1][:, :count].conj().T, float(energy[::-1][:count].sum() / max(energy.sum(), 1e-300))


def fewer_coils(kspace: np.ndarray, options: Options) -> tuple[np.ndarray, tuple[bool, str]]:
    """A matrix to as many coils as are kept, and what was done."""
    if options.skips("compression"):
        return np.eye(len(kspace), dtype=np.complex64), (False, "switched off")
    matrix, share = compression(kspace)
    told = f"{len(kspace)} coils compressed to {len(matrix)}, with {100 * share:.2f} % of the energy"
    return matrix, (True, told)


def mixed(matrix: np.ndarray, coils: np.ndarray) -> np.ndarray:
    """Combinations of coils (..., coils, H, W)."""
    return np.einsum("dc,...chw->...dhw", matrix, coils).astype(np.complex64)


def maps_from(
    kspace: np.ndarray, mask: np.ndarray, calibration: np.ndarray | None, unmix: np.ndarray
) -> tuple[np.ndarray, str]:
    """Coil maps (1, coils, H, W) from k-space itself, or from a separate calibration scan, and what they are from.

    `unmix` leads back to the coils as they were: the sum of their squares, not of whitened ones, is one.
    """
    source, origin = (kspace, "") if calibration is None else (calibration, "a separate scan, ")
    block = calibration_block(mask if calibration is None else np.abs(calibration).max(0) > 0)
    maps = estimated_maps(source, block) if min(block) >= SMALLEST else None
    if maps is not None and explains(maps, source, block):
        side = min(*block, WIDEST)
        origin = f"ESPIRiT from {origin}{side}×{side} samples in the middle"
    else:
        unexplained = "ESPIRiT does not explain the coils (an empty slice, or a field of view smaller than the object?)"
        why = "too few for ESPIRiT" if maps is None else unexplained
        maps, origin = joint_maps(kspace, mask), f"JSENSE: {block[0]}×{block[1]} samples in the middle are whole, {why}"
    size = np.linalg.norm(mixed(unmix, maps), axis=0)
    return (maps / np.where(size > 0, size, 1))[None].astype(np.complex64), origin


def estimated_maps(kspace: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    """Coil maps (coils, H, W) from k-space of which a block in the middle was measured whole: ESPIRiT by sigpy.

    They are smooth: what is found on a coarse grid is the same, in a fraction of the time and memory.
    """
    sizes = kspace.shape[1:]
    height, width = (min(size, GRID) for size in sizes)
    coarse = middle_part(kspace, height, width)
    espirit = _sigpy().EspiritCalib
    maps, eigenvalue = espirit(
        coarse, calib_width=min(*block, WIDEST), crop=0, output_eigenvalue=True, show_pbar=False
    ).run()
    maps = refined(_turned(maps, coarse, (min(block[0], height), min(block[1], width))), sizes)
    size = np.linalg.norm(maps, axis=0)
    inside = refined(np.asarray(eigenvalue).real.reshape(1, height, width), sizes)[0] > CROP
    return (maps * inside / np.where(size > 0, size, 1)).astype(np.complex64)


def refined(coarse: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Smooth images (number, h, w) on a finer grid (number, H, W) of the same field of view, by cubic splines."""
    if coarse.shape[1:] == sizes:
        return coarse
    from scipy.ndimage import map_coordinates

    places = [
        (np.arange(fine) - fine // 2) * few / fine + few // 2 for fine, few in zip(sizes, coarse.shape[1:], strict=True)
    ]
    grid = np.meshgrid(*places, indexing="ij")
    return np.stack([map_coordinates(image, grid, order=3, mode="grid-wrap") for image in coarse])


def joint_maps(kspace: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Coil maps from k-space without such a block: those that explain it best together with an image (JSENSE)."""
    joint = _sigpy().JsenseRecon
    weights = mask.astype(np.float32)
    found = joint(kspace, weights=weights, mps_ker_width=KERNEL, lamda=DAMPED, show_pbar=False).run()
    size = np.sqrt(np.square(np.abs(found)).sum(0))
    return (found / np.maximum(size, 1e-12)).astype(np.complex64)


def maps_along(
    samples: np.ndarray, trajectory: np.ndarray, weights: np.ndarray, sizes: tuple[int, int], unmix: np.ndarray
) -> tuple[np.ndarray, str]:
    """Coil maps (coils, H, W) from samples (coils, number) along a trajectory, by JSENSE, and what they are from.

    The middle of k-space is rarely dense enough for ESPIRiT, and what folds there ends up in its maps.
    """
    places = trajectory * np.asarray(sizes)
    inner = (np.abs(places) < WIDEST / 2).all(1)
    require(bool((samples[:, inner] * weights[inner]).any()), "nothing was measured in the middle of k-space")
    joint = _sigpy().JsenseRecon(
        *(samples[:, inner], KERNEL, WIDEST, DAMPED),
        weights=weights[inner],
        coord=places[inner],
        img_shape=sizes,
        show_pbar=False,
    )
    found = joint.run()
    size = np.linalg.norm(mixed(unmix, found), axis=0)
    told = f"JSENSE from {int(inner.sum())} samples in the middle of k-space"
    return (found / np.where(size > 0, size, 1)).astype(np.complex64), told


def explains(maps: np.ndarray, kspace: np.ndarray, block: tuple[int, int]) -> bool:
    """Whether the coil images at low resolution lie behind the maps: those of empty air and small blocks may not."""
    low = np.zeros_like(kspace)
    middle_part(low, *block)[...] = middle_part(kspace, *block)
    images = to_image(low)
    behind = np.square(np.abs((maps.conj() * images).sum(0))).sum()
    return bool(behind >= EXPLAINED * np.square(np.abs(images)).sum())


def _turned(maps: np.ndarray, kspace: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    """With the phase of what all coils see together: that of a single coil has jumps where it sees nothing."""
    matrix, _ = compression(middle_part(kspace, *block), 1)
    together = mixed(matrix, maps)[0]
    return maps * np.exp(-1j * np.angle(together))


def _sigpy() -> Any:
    try:
        import sigpy.mri.app
    except ImportError as error:
        raise BadInput("sigpy estimates coil maps: pip install 'pnpilot[mri]', or give a file by --maps") from error
    return sigpy.mri.app
