"""MRD's acquisitions along trajectories: each brings the places of its samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import require
from ..raw import COIL, Raw, Scratch, Stored, checked_shape
from . import _mrd_lines
from ._trajectory import KIND, TRAJECTORY

ARM, SAMPLE = "arm", "sample"


def along(
    data: Any,
    heads: np.ndarray,
    wanted: np.ndarray,
    images: Sequence[np.ndarray],
    axes: Sequence[str],
    scratch: Scratch,
) -> Raw:
    """Samples and their places, image by image; `images` are counters with values from 0 on, and `axes` their names.

    Images with fewer arms than others end in zeros, which count as not measured.
    """
    own = heads[wanted]
    dimensions = _mrd_lines.one(own["trajectory_dimensions"], "components of the trajectory")
    require(dimensions in (2, 3), f"its trajectory has {dimensions} components, not two or three")
    kept = own["number_of_samples"] - own["discard_pre"] - own["discard_post"]
    samples, coils = _mrd_lines.one(kept, "samples"), _mrd_lines.one(own["active_channels"], "coils")
    counts = tuple(int(counter.max()) + 1 for counter in images)
    number = np.ravel_multi_index(tuple(images), counts) if images else np.zeros(len(own), np.int64)
    arms = np.bincount(number)
    shape = (*counts, coils, int(arms.max()), samples)
    held = min(data.file.id.get_filesize(), 8 * len(own) * coils * samples)
    checked_shape(shape, np.dtype(np.complex64), held, "its k-space")
    kspace = scratch.array(shape)
    places = scratch.array((*counts, shape[-2], samples, dimensions), np.float32)
    reached = np.zeros(len(arms), np.int64)
    rows = zip(_mrd_lines.lines(data, heads, wanted), _places(data, heads, wanted), strict=True)
    for image, ((_, line), where) in zip(number, rows, strict=True):
        place, arm = tuple(np.unravel_index(image, counts)) if counts else (), int(reached[image])
        of_line, of_places = (*place, slice(None), arm), (*place, arm)
        kspace[of_line], places[of_places] = line, where
        reached[image] += 1
    raw = Raw(Stored(kspace, (*axes, COIL, ARM, SAMPLE)), "hdf5", kind=KIND)
    first = places.reshape(-1, *places.shape[len(counts) :])[0]
    shared = bool((places == first).all())
    raw.beside[TRAJECTORY] = Stored(first if shared else places, None)
    if len(set(arms.tolist())) > 1:
        raw.notes.append(f"images have {arms.min()} to {arms.max()} arms")
    return raw


def _places(data: Any, heads: np.ndarray, wanted: np.ndarray) -> Iterator[np.ndarray]:
    """The places (samples, components) of the wanted acquisitions, without what is discarded."""
    for numbers, head, reverse in _mrd_lines.stored(data, heads, wanted, "traj"):
        samples, dimensions = int(head["number_of_samples"]), int(head["trajectory_dimensions"])
        fits = len(numbers) == samples * dimensions
        require(fits, f"a trajectory of {samples} samples and {dimensions} components holds {len(numbers)} numbers")
        places = np.asarray(numbers, np.float32).reshape(samples, dimensions)
        places = places[int(head["discard_pre"]) : samples - int(head["discard_post"])]
        yield places[::-1] if reverse else places
