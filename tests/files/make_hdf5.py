"""Makes the small HDF5 and MATLAB files of this folder: `python -m tests.files.make_hdf5`.

mrd_slices.h5, mrd_volume.mrd   the ismrmrd library
fastmri_multi.h5, fastmri_single.h5   h5py, in the layout of the fastMRI data
matlab_5.mat   scipy.io.savemat
matlab_73.mat   h5py, with the first 512 bytes and the names of fields that MATLAB writes
data_exchange.h5   h5py, in the layout of DataExchange; scikit-image draws the phantom and projects it

All show the same drawing: smooth complex blobs, seen by coils. No measured data are in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
FIELD = {"x": 240.0, "y": 200.0, "z": 30.0}
"""The field of view in millimetres."""
LPS = {"read_dir": (0.0, 1.0, 0.0), "phase_dir": (1.0, 0.0, 0.0), "slice_dir": (0.0, 0.0, -1.0)}


def images(coils: int, height: int, width: int, shift: float = 0.0) -> np.ndarray:
    """Smooth complex images (coils, height, width) of blobs; `shift` makes another one."""
    rows, columns = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None]
    blobs = np.exp(-8 * ((rows - 0.2 - shift) ** 2 + columns**2)) + 0.5 * np.exp(-20 * (rows**2 + (columns - 0.4) ** 2))
    angles = 2 * np.pi * np.arange(coils)[:, None, None] / coils
    seen = np.exp(-((rows - np.sin(angles)) ** 2) - (columns - np.cos(angles)) ** 2 + 1j * angles + 0.5j * rows)
    return (blobs * seen).astype(np.complex64)


def kspace(pictures: np.ndarray, axes: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """Centred k-space of them."""
    unshifted = np.fft.fftn(np.fft.ifftshift(pictures, axes), axes=axes, norm="ortho")
    return np.fft.fftshift(unshifted, axes).astype(np.complex64)


def header(encoded: dict[str, int], recon: dict[str, int], trajectory: str = "cartesian") -> str:
    """The XML header of a scan; the field of view grows with what is encoded beyond the final image."""
    from ismrmrd import xsd

    def space(sizes: dict[str, int]) -> Any:
        field = {axis: FIELD[axis] * sizes[axis] / recon[axis] for axis in "xyz"}
        return xsd.encodingSpaceType(matrixSize=xsd.matrixSizeType(**sizes), fieldOfView_mm=xsd.fieldOfViewMm(**field))

    limits = xsd.encodingLimitsType(
        kspace_encoding_step_1=xsd.limitType(minimum=0, maximum=encoded["y"] - 1, center=encoded["y"] // 2),
        kspace_encoding_step_2=xsd.limitType(minimum=0, maximum=encoded["z"] - 1, center=encoded["z"] // 2),
    )
    encoding = xsd.encodingType(
        encodedSpace=space(encoded),
        reconSpace=space(recon),
        encodingLimits=limits,
        trajectory=xsd.trajectoryType(trajectory),
    )
    conditions = xsd.experimentalConditionsType(H1resonanceFrequency_Hz=63_500_000)
    return xsd.ToXML(xsd.ismrmrdHeader(experimentalConditions=conditions, encoding=[encoding]))


def acquired(line: np.ndarray, step: int = 0, flags: tuple[str, ...] = (), centre: int = -1, **head: Any) -> Any:
    """An acquisition (coils, samples) as the ismrmrd library has it; `head` holds counters and fields of the head."""
    import ismrmrd

    found = ismrmrd.Acquisition.from_array(np.ascontiguousarray(line, np.complex64))
    found.center_sample = line.shape[1] // 2 if centre < 0 else centre
    found.sample_time_us = 5.0
    found.idx.kspace_encode_step_1 = step
    for name, value in (LPS | head).items():
        if hasattr(found.idx, name):
            setattr(found.idx, name, value)
        elif isinstance(value, tuple):
            getattr(found, name)[:] = value
        else:
            setattr(found, name, value)
    for flag in flags:
        found.set_flag(getattr(ismrmrd, f"ACQ_IS_{flag}"))
    return found


def write_mrd(path: Path, xml: str | bytes, lines: Iterable[Any], group: str = "dataset") -> Path:
    """The file, as the library writes it."""
    import ismrmrd

    with ismrmrd.Dataset(str(path), group, mode="w") as file:
        file.write_xml_header(xml.encode() if isinstance(xml, str) else xml)
        for line in lines:
            file.append_acquisition(line)
    return path


def mrd_slices(path: Path) -> Path:
    """Two slices 10 × 12, read at 24 samples: averages, a noise scan, navigators, backward and calibration lines."""
    rng = np.random.default_rng(0)
    noise = (rng.normal(size=(2, 128)) + 1j * rng.normal(size=(2, 128))) / 100
    lines = [acquired(noise, flags=("NOISE_MEASUREMENT",), sample_time_us=20.0)]
    for number in range(2):
        place: dict[str, Any] = {"slice": number, "position": (10.0, 20.0, 30.0 - 8.0 * number)}
        whole = kspace(images(2, 10, 24, 0.2 * number))
        lines.append(acquired(whole[:, 5], 5, ("NAVIGATION_DATA",), **place))
        for step in (4, 5, 6):
            lines.append(acquired(whole[:, step], step, ("PARALLEL_CALIBRATION",), **place))
        for step in (0, 2, 4, 5, 6, 8):
            back = step == 2
            line = whole[:, step, ::-1] if back else whole[:, step]
            for average in range(2 if step == 8 else 1):
                weight = (0.5, 1.5)[average] if step == 8 else 1.0
                flags = ("REVERSE",) if back else ("PARALLEL_CALIBRATION_AND_IMAGING",) if step == 5 else ()
                lines.append(acquired(weight * line, step, flags, average=average, **place))
    return write_mrd(path, header({"x": 24, "y": 10, "z": 1}, {"x": 12, "y": 10, "z": 1}), lines)


def mrd_volume(path: Path) -> Path:
    """Two contrasts of a volume 4 × 5 × 8 (z, y, x) with two coils, whose lines begin late."""
    lines = []
    for contrast in range(2):
        flat = images(2, 5, 8, 0.1 * contrast)
        whole = kspace(flat[:, None] * np.array([0.2, 1, 0.8, 0.1])[:, None, None], (-3, -2, -1))
        for part in range(4):
            for step in range(5):
                # Samples 2…7 of eight, with one more on either side that is to be discarded.
                line = np.pad(whole[:, part, step, 2:], ((0, 0), (1, 1)), constant_values=99)
                counters: dict[str, Any] = {"kspace_encode_step_2": part, "contrast": contrast}
                lines.append(acquired(line, step, centre=3, discard_pre=1, discard_post=1, **counters))
    return write_mrd(path, header({"x": 8, "y": 5, "z": 4}, {"x": 8, "y": 5, "z": 4}), lines)


def fastmri(path: Path, coils: int) -> Path:
    """fastMRI's layout: (slice, coil, readout, lines), the readout twice as long as wanted; a mask with test data."""
    import h5py

    shape = (24, 16)
    pictures = images(max(coils, 1), *shape)
    samples = kspace(pictures)[None] if coils else kspace(pictures)
    mask = np.arange(shape[1]) % 2 == 0
    with h5py.File(path, "w") as file:
        file["kspace"] = samples * mask if coils else samples
        file["ismrmrd_header"] = header({"x": 24, "y": 16, "z": 1}, {"x": 12, "y": 12, "z": 1})
        file.attrs.update({"acquisition": "AXT2", "max": 1.0, "norm": 1.0, "patient_id": "drawing"})
        if coils:
            file["mask"] = mask
            file["sensitivity_maps"] = pictures[None]
        else:
            file["reconstruction_esc"] = np.abs(pictures[:, 6:18, 2:14])
    return path


def matlab_5(path: Path) -> Path:
    """Variables of all sorts, (x, y, coil) as MATLAB users like it."""
    import scipy.io

    pictures = images(4, 12, 10)
    content = {
        "KSpace": kspace(pictures).transpose(2, 1, 0),
        "sens": pictures.transpose(2, 1, 0),
        "mask": np.ones((10, 12), bool),
        "title": "a drawing",
        "cells": np.array([1, "two"], object),
        "settings": {"TE": 3.0},
    }
    scipy.io.savemat(path, content, do_compression=True)
    return path


def spiral(path: Path) -> Path:
    """Samples of four coils (sample, arm, coil) along six spirals of 60 samples, by sums over all pixels."""
    import scipy.io

    along = np.sqrt(np.linspace(0, 1, 60))[:, None]
    k = 0.5 * along * np.exp(1j * (4 * np.pi * along + 2 * np.pi * np.arange(6) / 6))
    pictures, centred = images(4, 16, 16), np.arange(16) - 8
    rows, columns = (np.exp(-2j * np.pi * way[..., None] * centred) for way in (k.imag, k.real))
    data = np.einsum("sar,crq,saq->sac", rows, pictures, columns) / 16
    noise = np.random.default_rng(0).standard_normal((2, *data.shape))
    data = (data + 0.002 * (noise[0] + 1j * noise[1])).astype(np.complex64)
    scipy.io.savemat(path, {"k": k.astype(np.complex64), "w": np.abs(k).astype(np.float32), "data": data})
    return path


def matlab_73(path: Path) -> Path:
    """The same, as MATLAB writes it to version 7.3: axes in reverse, complex numbers as pairs."""
    import h5py

    pictures = images(4, 12, 10)
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in (("KSpace", kspace(pictures)), ("sens", pictures)):
            pairs = np.empty(array.shape, [("real", "f4"), ("imag", "f4")])
            pairs["real"], pairs["imag"] = array.real, array.imag
            file.create_dataset(name, data=pairs, compression="gzip").attrs["MATLAB_class"] = np.bytes_("single")
        file["mask"] = np.ones((12, 10), np.uint8)
        file["mask"].attrs.update({"MATLAB_class": np.bytes_("logical"), "MATLAB_int_decode": 1})
        file["title"] = np.array([[ord(letter)] for letter in "a drawing"], np.uint16)
        file["title"].attrs.update({"MATLAB_class": np.bytes_("char"), "MATLAB_int_decode": 2})
        file["nothing"] = np.zeros(2, np.uint64)
        file["nothing"].attrs.update({"MATLAB_class": np.bytes_("double"), "MATLAB_empty": 1})
        file["#refs#/a"] = np.ones((1, 1))
        file["cells"] = np.array([[file["#refs#/a"].ref]], h5py.ref_dtype)
        file["cells"].attrs["MATLAB_class"] = np.bytes_("cell")
        file["settings/TE"] = np.ones((1, 1))
        file["settings"].attrs["MATLAB_class"] = np.bytes_("struct")
        file["thin/data"] = np.ones(1)
        file["thin"].attrs.update({"MATLAB_class": np.bytes_("double"), "MATLAB_sparse": 3})
    first = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    with path.open("r+b") as stream:
        stream.write(first.ljust(512, b"\0"))
    return path


def data_exchange(path: Path) -> Path:
    """Two slices of a phantom at 40 angles, counted by 48 pixels: the axis is off their middle, and two are odd."""
    import h5py
    from skimage.data import shepp_logan_phantom
    from skimage.transform import radon, resize

    rng, angles = np.random.default_rng(0), np.arange(40) * 180 / 40
    phantom = np.pad(resize(shepp_logan_phantom(), (36, 36)), 14)
    integrals = np.stack([0.1 * share * radon(phantom, angles).T for share in (1, 0.7)], 1)[:, :, 10:58]
    beam = 20_000 * (1 + 0.2 * np.sin(np.arange(48) / 5)) * np.where(np.arange(48) == 30, 0.0, 1.0)
    odd = np.where(np.arange(48) == 17, 1.04, 1.0)
    with h5py.File(path, "w") as file:
        for name, expected in {
            "data": odd * beam * np.exp(-integrals),
            "data_white": np.broadcast_to(beam, (6, 2, 48)),
            "data_dark": np.zeros((6, 2, 48)),
        }.items():
            counts = 2 * rng.poisson(expected / 2) + 100 + rng.normal(0, 3, expected.shape)
            file[f"exchange/{name}"] = counts.round().astype(np.uint16)
            file[f"exchange/{name}"].attrs["axes"] = "theta:y:x"
        file["exchange/theta"] = angles
        file["exchange/theta"].attrs["units"] = "degrees"
        file["implements"] = "exchange"
    return path


if __name__ == "__main__":
    mrd_slices(FOLDER / "mrd_slices.h5")
    mrd_volume(FOLDER / "mrd_volume.mrd")
    fastmri(FOLDER / "fastmri_multi.h5", 3)
    fastmri(FOLDER / "fastmri_single.h5", 0)
    matlab_5(FOLDER / "matlab_5.mat")
    spiral(FOLDER / "spiral.mat")
    matlab_73(FOLDER / "matlab_73.mat")
    data_exchange(FOLDER / "data_exchange.h5")
