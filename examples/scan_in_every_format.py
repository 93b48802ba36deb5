"""One scan in the formats that `pnpilot reconstruct` reads, each as a scanner or a program would have written it.

    python examples/scan_in_every_format.py espirit_full.cfl --out FOLDER

The scan is fully sampled k-space of several coils, as BART files. What is written is undersampled four times, with a
block of 20 lines in the middle, and then reconstructed; the table compares the results with that of the BART files.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import h5py
import ismrmrd
import numpy as np
import scipy.io
import torch

from pnpilot import PnPilot
from pnpilot.benchmark.report import table
from pnpilot.io.cfl import write_cfl
from pnpilot.io.kspace import read_coils
from pnpilot.recon import Options, reconstruct_file
from pnpilot.recon.fourier import to_image, to_kspace
from pnpilot.tasks._masks import build_mask

PIXEL = 1.0
"""Millimetres, which the scan does not tell."""
NOISE_SAMPLES = 4096


def main() -> None:
    """Write the files, reconstruct them, print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scan", type=Path, help="fully sampled k-space of one slice")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    full = read_coils(arguments.scan).numpy()
    mask = build_mask("calibrated", *full.shape[1:], 4, torch.Generator().manual_seed(0)).numpy()
    files = {
        "BART": bart(out / "bart.cfl", full * mask),
        "fastMRI": fastmri(out / "fastmri.h5", full, mask),
        "ISMRMRD": mrd(out / "ismrmrd.h5", full, mask),
        "MATLAB 5": matlab(out / "matlab5.mat", full * mask),
        "MATLAB 7.3": matlab73(out / "matlab73.mat", full * mask),
        ".npy": numpy(out / "numpy.npy", full * mask),
        ".npz": npz(out / "numpyz.npz", full, mask),
    }
    model, images = PnPilot(), dict[str, np.ndarray]()
    for name, file in files.items():
        done = reconstruct_file(
            file, out / "reconstructed", formats=["numpy", "png"], options=Options(), model=model, again=True
        )
        images[name] = np.abs(np.load(out / "reconstructed" / f"{file.stem}.npy")).squeeze()
        assert done.report is not None
        print(name, *done.report["read"]["notes"], *(step["said"] for step in done.report["prepared"]), sep="\n  ")
    print(table(["", "size", "difference from BART's, dB"], [compared(name, images) for name in images]))


def compared(name: str, images: dict[str, np.ndarray]) -> list[str]:
    """PSNR of one against another."""
    one, other = images[name], images["BART"]
    if one.shape != other.shape:
        one = one.T if one.T.shape == other.shape else one
    scale = (one * other).sum() / np.square(one).sum()
    error = np.square(scale * one - other).mean()
    psnr = "equal" if error == 0 else f"{10 * np.log10(other.max() ** 2 / error):.1f}"
    return [name, "×".join(map(str, images[name].shape)), psnr]


def bart(file: Path, kspace: np.ndarray) -> Path:
    """Two axes of space, then coils."""
    write_cfl(file, np.moveaxis(kspace, 0, -1)[None])
    return file


def numpy(file: Path, kspace: np.ndarray) -> Path:
    """Coils first, and nobody says so."""
    np.save(file, kspace)
    return file


def npz(file: Path, kspace: np.ndarray, mask: np.ndarray) -> Path:
    """With a mask, and what lies outside it still there."""
    np.savez(file, kspace=kspace, mask=mask)
    return file


def matlab(file: Path, kspace: np.ndarray) -> Path:
    """MATLAB's order: coils last."""
    scipy.io.savemat(file, {"kspace": np.moveaxis(kspace, 0, -1)}, do_compression=True)
    return file


def matlab73(file: Path, kspace: np.ndarray) -> Path:
    """As MATLAB's `save -v7.3`: HDF5 behind a head of its own, axes reversed, numbers as pairs."""
    pairs = np.empty(kspace.shape, [("real", "<f4"), ("imag", "<f4")])
    pairs["real"], pairs["imag"] = kspace.real, kspace.imag
    with h5py.File(file, "w", userblock_size=512) as content:
        content["kspace"] = np.swapaxes(pairs, 1, 2)
        content["kspace"].attrs["MATLAB_class"] = np.bytes_("single")
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    with file.open("r+b") as raw:
        raw.write(head)
    return file


def fastmri(file: Path, kspace: np.ndarray, mask: np.ndarray) -> Path:
    """As in fastMRI's test sets: a volume of one slice, readouts twice as long, lines along the last axis."""
    wide = oversampled(kspace)
    with h5py.File(file, "w") as content:
        content["kspace"] = (wide * mask[:1])[None]
        content["mask"] = mask[0].astype(np.float32)
        content["ismrmrd_header"] = header(kspace.shape[0], wide.shape[1:], kspace.shape[1:])
        content.attrs["acquisition"] = "T1"
    return file


def mrd(file: Path, kspace: np.ndarray, mask: np.ndarray) -> Path:
    """Line by line, as it comes from a scanner: a scan of noise first, two averages, readouts twice as long."""
    wide = oversampled(kspace)
    file.unlink(missing_ok=True)
    dataset = ismrmrd.Dataset(file, "dataset", create_if_needed=True)
    dataset.write_xml_header(header(kspace.shape[0], wide.shape[1:], kspace.shape[1:]).encode())
    dataset.append_acquisition(line(outermost_noise(kspace), noise=True))
    for average in range(2):
        for place in np.flatnonzero(mask[0]):
            dataset.append_acquisition(line(wide[:, :, place], place=int(place), average=average))
    dataset.close()
    return file


def line(samples: np.ndarray, place: int = 0, average: int = 0, noise: bool = False) -> Any:
    """One acquisition (coils, samples)."""
    found = ismrmrd.Acquisition.from_array(np.ascontiguousarray(samples, np.complex64))
    found.idx.kspace_encode_step_1, found.idx.average = place, average
    found.center_sample = samples.shape[1] // 2
    found.sample_time_us = 5.0
    found.read_dir[:], found.phase_dir[:], found.slice_dir[:] = (0, 1, 0), (1, 0, 0), (0, 0, 1)
    if noise:
        found.set_flag(ismrmrd.ACQ_IS_NOISE_MEASUREMENT)
    return found


def outermost_noise(kspace: np.ndarray) -> np.ndarray:
    """The corners of k-space, where there is little but noise, in the place of a noise scan."""
    rows = np.concatenate([kspace[:, :15], kspace[:, -15:]], 1).reshape(len(kspace), -1)
    return rows[:, :NOISE_SAMPLES]


def oversampled(kspace: np.ndarray) -> np.ndarray:
    """Read out twice as densely: twice the field of view, with nothing in what is new."""
    image = to_image(kspace)
    height = image.shape[1]
    wide = np.zeros((len(image), 2 * height, image.shape[2]), np.complex64)
    wide[:, height - height // 2 : 2 * height - height // 2] = image
    return to_kspace(wide).astype(np.complex64)


def header(coils: int, encoded: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """ISMRMRD's header: the readout comes first in its matrices."""

    def space(name: str, sizes: tuple[int, ...]) -> str:
        x, y = sizes
        return (
            f"<{name}><matrixSize><x>{x}</x><y>{y}</y><z>1</z></matrixSize><fieldOfView_mm><x>{x * PIXEL}</x>"
            f"<y>{y * PIXEL}</y><z>5</z></fieldOfView_mm></{name}>"
        )

    return (
        '<?xml version="1.0"?><ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD"><acquisitionSystemInformation>'
        f"<receiverChannels>{coils}</receiverChannels></acquisitionSystemInformation><experimentalConditions>"
        "<H1resonanceFrequency_Hz>63500000</H1resonanceFrequency_Hz></experimentalConditions><encoding>"
        f"{space('encodedSpace', encoded)}{space('reconSpace', wanted)}<encodingLimits><kspace_encoding_step_1>"
        f"<minimum>0</minimum><maximum>{encoded[1] - 1}</maximum><center>{encoded[1] // 2}</center>"
        "</kspace_encoding_step_1></encodingLimits><trajectory>cartesian</trajectory></encoding></ismrmrdHeader>"
    )


if __name__ == "__main__":
    main()
