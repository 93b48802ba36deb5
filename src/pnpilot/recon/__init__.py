"""From a file to an image: what a scan needs on the way, in batches, without losing what is done."""

from .files import reconstruct_files
from .options import STEPS, Options
from .outcome import Outcome, Watch
from .prepare import Preparation
from .prepared import Prepared, batch
from .run import reconstruct_file

__all__ = [
    "STEPS",
    "Options",
    "Outcome",
    "Preparation",
    "Prepared",
    "Watch",
    "batch",
    "reconstruct_file",
    "reconstruct_files",
]
