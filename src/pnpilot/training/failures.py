"""Running out of disk or memory while training, reported in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import PnPilotError, first_line

NO_MEMORY = ("out of memory", "allocate memory", "storage size calculation overflowed")
"""How torch reports it, on all kinds of devices."""


@contextmanager
def mendable(folder: Path) -> Iterator[None]:
    """Turn a full disk, or too little memory, into an error that a user can fix."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise PnPilotError(f"cannot write to {folder}: {reason}; what was saved there before is kept") from error
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error).lower() for words in NO_MEMORY):
            raise
        raise PnPilotError("the machine has too little memory for this: choose a smaller --batch or size") from error
