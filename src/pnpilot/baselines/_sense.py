"""What other programs' methods for multi-coil MRI share: arrays for them, a weight, and how to call BART."""

from __future__ import annotations

import subprocess
import tempfile
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from deepinv.physics import Physics
from torch import Tensor

from ..errors import BadInput, Incompatible
from ..io.cfl import read_cfl, write_cfl
from ..problems._kspace import as_complex
from ..problems.masked_fourier import MaskedFourier
from ..problems.multi_coil import MultiCoil
from ..types import to_two_channels
from .base import Baseline


class Sense(Baseline):
    """A method for Cartesian MRI, of several coils or one, whose images depend on the weight of its regulariser."""

    serves = frozenset({"multi-coil"})
    one_by_one = True
    iterations = 100
    extra = "mri"
    weights: tuple[float, float]
    """Where a search for the best weight looks."""

    def __init__(self, weight: float | None = None) -> None:
        self.weight = (self.weights[0] * self.weights[1]) ** 0.5 if weight is None else weight

    @torch.no_grad()
    def __call__(self, y: Tensor, physics: Physics) -> Tensor:
        """Solve slice after slice."""
        single = MaskedFourier.accepts(physics)
        if not (single or MultiCoil.accepts(physics)):
            raise Incompatible(f"{self.name} needs Cartesian slices of MRI, got a {type(physics).__name__}")
        kspace = as_complex(y, coils=not single)
        maps = torch.ones_like(kspace) if single else physics.coil_maps.to(kspace).expand(len(y), -1, -1, -1)
        mask = physics.mask[:, :1].to(y.real).expand(len(y), -1, -1, -1)
        if not bool(((mask == 0) | (mask == 1)).all()):
            raise Incompatible(f"{self.name} needs a mask of zeros and ones")
        slices = [
            self.solve((own != 0).numpy() * one.numpy(), coils.numpy(), own[0].numpy())
            for one, coils, own in zip(kspace.cpu(), maps.cpu(), mask.cpu(), strict=True)
        ]
        image = torch.from_numpy(np.stack(slices)[:, None].astype(np.complex64))
        return to_two_channels(image).to(y.device)

    @abstractmethod
    def solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """A complex image (H, W) from k-space and maps (coils, H, W), centred."""

    def made_with(self) -> Any:
        """Its weight."""
        return self.weight


class Bart(Sense):
    """By `bart pics`, the reconstruction tool of the Berkeley toolbox."""

    reference = "Uecker et al., ISMRM 2015: the BART toolbox"
    programs = ("bart",)
    weights = (3e-4, 3e-2)
    penalty: str
    """What BART calls the regulariser; the axes 6 are the two of the image."""

    def solve(self, kspace: np.ndarray, maps: np.ndarray, mask: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """BART scales the data by itself; -S takes that back."""
        options = ["-S", f"-i{self.iterations}", "-R", f"{self.penalty}:6:0:{self.weight:g}"]
        found = bart(["pics", *options], *(np.moveaxis(array, 0, -1)[None] for array in (kspace, maps)))
        return found.reshape(kspace.shape[1:], order="F")


def bart(command: list[str], *arrays: np.ndarray) -> np.ndarray:
    """What a tool of BART makes of arrays, which have BART's axes."""
    with tempfile.TemporaryDirectory(prefix="pnpilot-") as folder:
        files = [str(Path(folder, f"in{index}")) for index in range(len(arrays))]
        for name, array in zip(files, arrays, strict=True):
            write_cfl(Path(name), array)
        ran = subprocess.run(["bart", *command, *files, str(Path(folder, "out"))], capture_output=True, text=True)
        if ran.returncode != 0:
            raise BadInput(f"bart {command[0]} failed: {' '.join((ran.stderr or ran.stdout).split())[:300]}")
        return read_cfl(Path(folder, "out"))
