"""Coded diffraction in the formats of NumPy, MATLAB and HDF5, each written by the library of that format.

    python tests/files/make_diffraction.py

It needs `pip install 'pnpilot[mri]'`. All hold patterns of `pictures` behind `masks`.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import scipy.io

HERE = Path(__file__).parent


def pictures() -> np.ndarray:
    """Two images 16×12 between 0 and 1."""
    rows, columns = np.mgrid[-1:1:16j, -1:1:12j]
    blobs = [np.exp(-5 * ((rows - place) ** 2 + columns**2)) for place in (-0.3, 0.2)]
    return np.stack([0.1 + 0.8 * blob * (columns < 0.6) for blob in blobs]).astype(np.float32)


def masks() -> np.ndarray:
    """Four phase masks, stored in single precision."""
    return np.exp(2j * np.pi * np.random.default_rng(0).uniform(size=(4, 16, 12))).astype(np.complex64)


def amplitudes() -> np.ndarray:
    """(image, mask, row, column), by the orthonormal transform, the zero frequency in the corner."""
    return np.abs(np.fft.fft2(pictures()[:, None] * masks(), norm="ortho")).astype(np.float32)


def main() -> None:
    """Amplitudes; intensities of images up to 255, in MATLAB's order of axes; patterns with names that do not tell."""
    np.savez(HERE / "diffraction.npz", amplitudes=amplitudes(), masks=masks(), alpha=9.0)
    intensities = (255 * amplitudes()) ** 2
    content = {"intensities": intensities.transpose(2, 3, 1, 0), "masks": masks().transpose(1, 2, 0), "alpha": 9.0}
    scipy.io.savemat(HERE / "diffraction.mat", content, do_compression=True)
    with h5py.File(HERE / "diffraction.h5", "w") as file:
        file["data"] = np.fft.fftshift(amplitudes()[0] ** 2, axes=(-2, -1))
        file["masks"] = np.angle(masks())


if __name__ == "__main__":
    main()
