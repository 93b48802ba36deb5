"""Files are tried in a process of their own, where the library that reads them may crash or hang on a damaged one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ...errors import BadInput, PnPilotError, require
from ..files import writing
from ..raw import Scratch

SECONDS = 60.0
SPEED = 10e6
"""Seconds of computing that a trial may take, and bytes that allow one more: libraries read many times as fast.

Computing is limited, and not the time that passes: a library that hangs computes, and one that waits for a slow disk,
or for its turn on a busy machine, does not.
"""
MEMORY = 2**33
"""Bytes. Readers leave large arrays on disk, which does not count."""
REFUSED = 3
"""Exit code of a trial whose file is refused in the usual way; the reason is what it prints."""
LONGEST = 2000
"""Letters of a reason."""
START = "import sys; sys.path[:] = sys.argv[5:]; from pnpilot.io.readers._trial import main; main(*sys.argv[1:5])"
"""Looks for modules where this process does, and above all not in the folder with the files."""


def tried(path: Path, scratch: Scratch, key: str | None) -> None:
    """Refuse a file that would crash or hang this process; all that the trial leaves on disk is gone afterwards."""
    if not sys.executable:  # Python inside another program cannot be started once more
        return
    with contextlib.ExitStack() as stack:
        with writing(f"to the folder {scratch.folder}"):
            scratch.folder.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=scratch.folder, ignore_cleanup_errors=True))
        seconds = SECONDS + (path.stat().st_size / SPEED if path.is_file() else 0)
        command = [sys.executable, "-c", START, str(path), key or "", folder, str(int(seconds)), *sys.path]
        # Threads of numerical libraries would take memory for nothing.
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        ran = subprocess.run(
            command, env=os.environ | alone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    if ran.returncode == -signal.SIGINT:  # it may end before this process is told
        raise KeyboardInterrupt
    if ran.returncode == REFUSED:
        raise BadInput(f"{path}{ran.stdout.decode(errors='replace')}")
    ending = _ending(ran.returncode)
    does = "hangs" if ending == "SIGXCPU" else f"crashes ({ending})"
    require(ran.returncode == 0, f"it is damaged so that the library that reads it {does}")


def _ending(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def main(name: str, key: str, folder: str, seconds: str) -> None:
    """Read what may do harm of a file, in a process that was started for it."""
    from .base import READERS, reader_of, refusals

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # quietly: whoever started this tells the user
    answer = os.dup(1)
    os.dup2(2, 1)  # what others print is no answer
    path = Path(name)
    try:
        with refusals(path):
            list(READERS)  # whose imports may take what they want
            _limit(int(seconds))
            reader_of(path).risk(path, Scratch(Path(folder)), key or None)
    except PnPilotError as error:
        os.write(answer, str(error).removeprefix(name)[:LONGEST].encode(errors="replace"))
        os._exit(REFUSED)  # a damaged library may yet crash as it is closed
    os._exit(0)


def _limit(seconds: int) -> None:
    """Where the system can: how long it may compute, how much memory it may take, and no picture of its end on disk."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for what, most in (
        (resource.RLIMIT_CPU, int(used) + seconds),
        (resource.RLIMIT_DATA, MEMORY),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # a stricter limit is in force already, or the system has none
            resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
