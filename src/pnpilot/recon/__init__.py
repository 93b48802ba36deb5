"""From a file to an image: what a scan needs on the way, in batches, without losing what is done."""

from .files import reconstruct_files
from .modalities import understood
from .options import Options
from .outcome import Outcome, Watch
from .prepared import Prepared, batch
from .run import reconstruct_file

__all__ = [
    "Options",
    "Outcome",
    "Prepared",
    "Watch",
    "batch",
    "reconstruct_file",
    "reconstruct_files",
    "understood",
]
