"""Files of many formats, each written by the program that its format comes from.

    python tests/files/make_others.py

It needs BART, and `pip install 'pnpilot[mri]'`. What is in them is `pattern`, which the tests know too; what BART
wrote is its phantom.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import tifffile
from PIL import Image
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage, RLELossless, generate_uid

HERE = Path(__file__).parent
AFFINE = np.array([[1.5, 0.2, 0, -20], [-0.2, 1.5, 0.1, 10], [0, -0.1, 4, 30], [0, 0, 0, 1]])


def pattern(*shape: int) -> np.ndarray:
    """Numbers that all differ from their neighbours, below 251."""
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 251).astype(np.uint8)


def bart() -> None:
    """K-space of four coils, and two sets of their maps."""
    for command in ("phantom -k -s 4 -x 20 bart_kspace", "ecalib -m2 -r 20 bart_kspace bart_maps"):
        subprocess.run(["bart", *command.split()], cwd=HERE, check=True, capture_output=True)


def numpy() -> None:
    """Complex arrays, pairs of real numbers, pictures; archives with maps, a mask and the names of axes."""
    kspace = (pattern(3, 4, 10, 8) - 1j * pattern(3, 4, 10, 8)[::-1]).astype(np.complex64)
    arrays = {"kspace": kspace, "maps": kspace[:, :, ::-1], "mask": pattern(10, 8) % 2 == 0}
    np.save(HERE / "complex.npy", kspace)
    np.save(HERE / "fortran.npy", np.asfortranarray(kspace[0]))
    np.save(HERE / "pairs.npy", np.stack([kspace.real, kspace.imag], -1))
    np.save(HERE / "pictures.npy", pattern(3, 10, 8))
    np.savez(HERE / "plain.npz", **arrays, axes=np.array(["slice", "coil", "y", "x"]))
    np.savez_compressed(HERE / "packed.npz", **arrays)


def nifti() -> None:
    """An oblique volume with slope and intercept, a packed series of volumes, and the second version in 2-D."""
    volume = nibabel.Nifti1Image(pattern(10, 8, 3).astype(np.int16), AFFINE)
    volume.header.set_slope_inter(0.5, 3)
    volume.to_filename(HERE / "volume.nii")
    nibabel.Nifti1Image(pattern(10, 8, 3, 1, 2).astype(np.float32), AFFINE).to_filename(HERE / "series.nii.gz")
    nibabel.Nifti2Image(pattern(10, 8), AFFINE).to_filename(HERE / "flat.nii")


def dicom() -> None:
    """One frame, its negative with other corners, and three frames in the packing that pydicom writes itself."""
    one = _image(pattern(10, 8), "MONOCHROME2")
    one.RescaleSlope, one.RescaleIntercept = "0.5", "3"
    one.PixelSpacing, one.SliceThickness = [1.5, 2], 4
    one.ImageOrientationPatient, one.ImagePositionPatient = [1, 0, 0, 0, 0, -1], [-20, 10, 30]
    one.save_as(HERE / "one.dcm", enforce_file_format=True)
    _image(255 - pattern(10, 8), "MONOCHROME1").save_as(HERE / "negative.dcm", enforce_file_format=True)
    many = _image(pattern(3, 10, 8), "MONOCHROME2")
    many.NumberOfFrames = 3
    many.SharedFunctionalGroupsSequence = [_groups(PixelMeasures=_of(PixelSpacing=[1.5, 2], SliceThickness=9))]
    orientation = _of(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])
    many.PerFrameFunctionalGroupsSequence = [
        _groups(
            PlaneOrientation=orientation,
            PlanePosition=_of(ImagePositionPatient=[-20, 10, 30 + 4 * frame]),
            PixelValueTransformation=_of(RescaleSlope=frame + 1, RescaleIntercept=0),
        )
        for frame in range(3)
    ]
    many.compress(RLELossless)
    many.save_as(HERE / "many.dcm", enforce_file_format=True)


def _image(pixels: np.ndarray, kind: str) -> FileDataset:
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[kind, str(pixels.shape)])
    dataset = FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    dataset.SOPClassUID, dataset.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    dataset.Modality, dataset.PatientName = "MR", "Pattern"
    dataset.Rows, dataset.Columns = pixels.shape[-2:]
    dataset.SamplesPerPixel, dataset.PixelRepresentation, dataset.PhotometricInterpretation = 1, 0, kind
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 8, 8, 7
    dataset.PixelData = pixels.tobytes()
    return dataset


def _of(**values: object) -> Dataset:
    dataset = Dataset()
    for name, value in values.items():
        setattr(dataset, name, value)
    return dataset


def _groups(**groups: Dataset) -> Dataset:
    return _of(**{f"{name}Sequence": pydicom.Sequence([group]) for name, group in groups.items()})


def pictures() -> None:
    """Depths of 8 and 16 bits, colours, and a TIFF with three pages."""
    grey = Image.fromarray(pattern(10, 8))
    deep = [Image.fromarray(page.astype(np.uint16) * 256) for page in pattern(3, 10, 8)]
    grey.save(HERE / "grey.png")
    deep[0].save(HERE / "deep.png")
    grey.save(HERE / "grey.bmp")
    Image.fromarray(np.full((10, 8, 3), 100, np.uint8)).save(HERE / "colour.jpg")
    deep[0].save(HERE / "pages.tif", save_all=True, append_images=deep[1:])
    Image.fromarray(pattern(10, 8).astype(np.float32) / 4).save(HERE / "float.tif", compression="tiff_lzw")


def microscopes() -> None:
    """Packed colours of 16 bits, and two channels of a stack as OME has them."""
    colours = pattern(10, 8, 3).astype(np.uint16) * 257
    tifffile.imwrite(HERE / "colours.tif", colours, photometric="rgb", compression="zlib")
    tifffile.imwrite(HERE / "stack.ome.tif", pattern(2, 3, 10, 8), metadata={"axes": "CZYX"})


if __name__ == "__main__":
    for make in (bart, numpy, nifti, dicom, pictures, microscopes):
        make()
