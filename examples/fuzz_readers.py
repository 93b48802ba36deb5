"""How readers take damaged files: thousands of them, made from good ones.

    python examples/fuzz_readers.py [FOLDER] [--count 200] [--seed 0]

Every file of the folder is damaged again and again: bytes flipped, cut, inserted or repeated, numbers set to extremes.
Each of the results is opened, and its first and last image are read, by a process that may use 4 GB of addresses and
20 s. Of these, a trial may take 8 s: files of libraries that may crash or hang are first read in another process. All
should be refused in one line or read; the table counts what happened. The rest is listed below it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import multiprocessing
import os
import re
import resource
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from pnpilot.benchmark.report import table
from pnpilot.errors import BadInput
from pnpilot.io.raw import NOT_IMAGES, Scratch, Stored
from pnpilot.io.readers import READERS, _trial, open_raw
from pnpilot.io.readers.base import HEAD

ADDRESSES, SECONDS, TRIED = 4 * 2**30, 20, 8
REFUSED, DIED, READ, CRASH, HANG, MEMORY, OTHER = OUTCOMES = (
    "refused in one line",
    "refused as its trial died",
    "read anyway",
    "crashes",
    "hangs",
    "memory errors",
    "other exceptions",
)
EXTREMES = [b"\0", b"\1", b"\x7f", b"\x80", b"\xff"]
TEXTS = [b"0", b"-1", b"65536", b"2147483648", b"99999999999", b"1e308", b"nan"]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The same file with one to three faults, most of them near its beginning."""
    for _ in range(rng.integers(1, 4)):
        near = rng.random() < 0.6
        at = int(rng.integers(0, min(len(content), 700) if near else len(content)))
        size = int(2 ** rng.integers(0, 7))
        kind = rng.integers(0, 7)
        if kind == 0:
            content = content[:at] + bytes([content[at] ^ 1 << rng.integers(0, 8)]) + content[at + 1 :]
        elif kind == 1:
            content = content[: max(at, 1)]
        elif kind == 2:
            content = content[:at] + rng.bytes(size) + content[at:]
        elif kind == 3:
            content = content[: at + size] + content[at:]
        elif kind == 4:
            content = content[:at] + rng.bytes(size) + content[at + size :]
        elif kind == 5:
            length = int(2 ** rng.integers(0, 4))
            number = (EXTREMES[rng.integers(0, 5)] + bytes([255 * int(rng.integers(0, 2))]) * (length - 1))[:length]
            content = content[:at] + (number if rng.random() < 0.5 else number[::-1]) + content[at + length :]
        else:
            found = list(re.finditer(rb"\d+", content[:5000]))
            if found:
                match = found[rng.integers(0, len(found))]
                content = content[: match.start()] + TEXTS[rng.integers(0, len(TEXTS))] + content[match.end() :]
    return content


def mutants(path: Path, count: int, seed: int) -> Iterator[bytes]:
    """Damaged copies; of a packed file, half are damaged before they are packed."""
    content = path.read_bytes()
    for number in range(count):
        rng = np.random.default_rng([seed, zlib.crc32(path.name.encode()), number])
        if path.suffix == ".gz" and number % 2:
            yield gzip.compress(damaged(gzip.decompress(content), rng))
        else:
            yield damaged(content, rng)


def part(stored: Stored, last: bool) -> np.ndarray:
    """The first or the last image."""
    shape = stored.data.shape
    axes = stored.axes or ("image", *["y"] * (len(shape) - 1))
    index = (
        slice(None) if axis in NOT_IMAGES else last * (length - 1) for axis, length in zip(axes, shape, strict=True)
    )
    return np.asarray(stored.data[tuple(index)])


def outcome(path: Path) -> tuple[str, str]:
    """What comes of a file, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with open_raw(path, Scratch(Path(folder))) as raw:
                for stored in (raw.measured, raw.maps, raw.mask, raw.noise, *raw.beside.values()):
                    if stored is not None:
                        part(stored, False), part(stored, True)
            return READ, ""
        except BadInput as error:
            memory = isinstance(error.__cause__, MemoryError)
            whole = str(error).startswith(str(path)) and len(str(error).splitlines()) == 1
            died = "so that the library that reads it" in str(error)
            return MEMORY if memory else OTHER if not whole else DIED if died else REFUSED, str(error)
        except MemoryError as error:
            return MEMORY, repr(error)
        except Exception as error:
            return OTHER, repr(error)


def work(connection: Connection) -> None:
    """Answer for one file after the other."""
    _trial.SECONDS = TRIED
    list(READERS)  # whose imports may take what they want
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries in C complain there
    connection.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            connection.send(outcome(connection.recv()))


class Worker:
    """A process that is replaced when it dies or takes too long."""

    process: Any = None

    def ask(self, path: Path) -> tuple[str, str]:
        """What comes of a file."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, other = context.Pipe()
            self.process = context.Process(target=work, args=(other,), daemon=True)
            self.process.start()
            other.close()
            self.connection.recv()
        self.connection.send(path)
        try:
            if self.connection.poll(SECONDS):
                found: tuple[str, str] = self.connection.recv()
                return found
            result = HANG, ""
        except EOFError:
            self.process.join()
            result = CRASH, f"exit code {self.process.exitcode}"
        self.process.kill()
        self.process = None
        return result


def reader_of(path: Path) -> str | None:
    """The name of the reader that takes a file."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    return next((name for name in READERS if READERS[name].knows(path, head)), None)


def main() -> None:
    """Damage, ask, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent / "tests/files")
    parser.add_argument("--count", type=int, default=200, help="damaged copies of each file")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    strange: dict[tuple[str, str, str], str] = {}
    worker = Worker()
    for path in sorted(path for path in asked.folder.iterdir() if path.is_file()):
        reader = reader_of(path)
        if reader is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for partner in path.parent.glob(path.stem + ".*"):  # some formats are pairs of files
                Path(folder, partner.name).write_bytes(partner.read_bytes())
            target = Path(folder, path.name)
            for number, content in enumerate(mutants(path, asked.count, asked.seed)):
                target.write_bytes(content)
                kind, told = worker.ask(target)
                counts[reader][kind] += 1
                if kind not in (REFUSED, READ):
                    strange.setdefault((reader, kind, told.replace(folder, "")[:60]), f"{path.name}, {number}: {told}")
    rows = [[name, str(count.total()), *(str(count[kind]) for kind in OUTCOMES)] for name, count in counts.items()]
    print(table(["reader", "damaged files", *OUTCOMES], rows))
    for (name, kind, _), where in strange.items():
        print(f"\n{name}, {kind}: {where}")


if __name__ == "__main__":
    main()
