"""Files that would crash or hang the library that reads them are tried in a process of their own."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pnpilot import plugins
from pnpilot.errors import BadInput
from pnpilot.io.raw import Scratch
from pnpilot.io.readers import READERS, _trial, open_raw

FILES = Path(__file__).parent / "files"
OWN = '''
    import os, signal

    import numpy as np

    from pnpilot.errors import BadInput
    from pnpilot.io.raw import Raw, Stored
    from pnpilot.io.readers import READERS, Reader

    print("this module likes to talk")

    @READERS.register("moody")
    class Moody(Reader):
        """Files that say what becomes of the process that reads them."""

        suffixes = (".moody",)
        known_by, shape, units = "its name", "none", "none"

        @classmethod
        def fragile(cls, head):
            return head.startswith(b"moody")

        def read(self, path, scratch, key=None):
            path.with_suffix(".begun").touch()
            does = path.read_text().split()[1]
            if does == "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            elif does == "ends":
                os._exit(7)
            elif does == "hangs":
                while True:
                    pass
            elif does == "grows":
                np.empty(2**30 + 2**20)
            elif does == "refuses":
                raise BadInput(f"process {os.getpid()} does not like it")
            array = scratch.array((3, 4))
            return Raw(Stored(array, ("y", "x")), "numpy", notes=[str(os.getpid()), str(key)])
'''
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are those of other systems")


@pytest.fixture
def moody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Makes a file for a user's own reader, which is forgotten after the test."""
    own = tmp_path / "moody_reader.py"
    own.write_text(textwrap.dedent(OWN))
    monkeypatch.setattr(READERS, "_entries", {name: READERS[name] for name in READERS})
    monkeypatch.setattr(plugins, "_loaded", set())
    monkeypatch.setenv(plugins.VARIABLE, "")
    plugins.use(str(own))

    def made(does: str, name: str = "scan.moody") -> Path:
        (tmp_path / name).write_text(f"moody {does}")
        return tmp_path / name

    yield made
    sys.modules.pop("pnpilot_with_moody_reader", None)


def refusal(path: Path) -> str:
    scratch = Scratch(path.parent / "scratch")
    with pytest.raises(BadInput) as caught:
        open_raw(path, scratch)
    assert not list(scratch.folder.iterdir())
    assert str(caught.value).startswith(f"{path}: ") and str(caught.value).count(path.name) == 1
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("crashes", "it is damaged so that the library that reads it crashes (SIGSEGV)"),
        ("ends", "it is damaged so that the library that reads it crashes (exit code 7)"),
        ("hangs", "it is damaged so that the library that reads it hangs"),
        ("grows", "it asks for more memory than there is"),
    ],
)
def test_what_would_end_the_process_is_told(
    does: str, told: str, moody: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_trial, "SECONDS", 1)
    assert refusal(moody(does)) == told


@pytest.mark.parametrize("name", ["scan.moody", *[os.fsdecode(b"\xff: a.moody")] * (sys.platform == "linux")])
def test_a_refusal_is_passed_on(name: str, moody: Callable[..., Path]) -> None:
    told = refusal(moody("refuses", name))
    assert re.fullmatch("process [0-9]+ does not like it", told) and str(os.getpid()) not in told.split()


def test_a_good_file_is_read_here_and_leaves_nothing_else(moody: Callable[[str], Path]) -> None:
    path = moody("reads")
    scratch = Scratch(path.parent / "scratch")
    with open_raw(path, scratch, "a key") as raw:
        assert raw.notes == [str(os.getpid()), "a key"]
    assert [file.stat().st_size for file in scratch.folder.iterdir()] == [8 * 12]


def test_modules_beside_the_files_are_not_taken_for_others(
    moody: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "contextlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    open_raw(Path(moody("reads").name), Scratch(Path("scratch")))


def test_ctrl_c_ends_both_and_is_told_once(moody: Callable[[str], Path]) -> None:
    path = moody("hangs")
    code = "import sys; from pathlib import Path; from pnpilot.io.raw import Scratch\n"
    code += "from pnpilot.io.readers import open_raw; open_raw(Path(sys.argv[1]), Scratch(Path(sys.argv[2])))"
    command = [sys.executable, "-c", code, str(path), str(path.parent / "scratch")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not path.with_suffix(".begun").exists() and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        told = process.communicate()[1]
    assert told.count("Traceback") == 1 and told.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):  # nobody of the group is left
        os.killpg(process.pid, 0)
    assert not list((path.parent / "scratch").iterdir())


def test_a_trial_that_ctrl_c_ended_first_does_not_make_the_file_a_damaged_one(
    moody: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are told, in no order."""
    path = moody("reads")
    ended = subprocess.CompletedProcess([], -signal.SIGINT, b"")
    monkeypatch.setattr(_trial, "subprocess", SimpleNamespace(run=lambda *_, **__: ended, DEVNULL=None, PIPE=None))
    with pytest.raises(KeyboardInterrupt):
        open_raw(path, Scratch(path.parent / "scratch"))


def test_the_time_grows_with_the_file_and_nothing_is_tried_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        tried.append((Path(command[3]).name, command[6]))
        return subprocess.CompletedProcess(command, 0, b"")

    monkeypatch.setattr(_trial, "subprocess", SimpleNamespace(run=run, DEVNULL=None, PIPE=None))
    for name in ("mrd_volume.mrd", "fastmri_multi.h5", "matlab_73.mat", "matlab_5.mat", "complex.npy", "one.dcm"):
        open_raw(FILES / name, Scratch(tmp_path)).closes()
    assert [name for name, _ in tried] == ["mrd_volume.mrd", "fastmri_multi.h5", "matlab_73.mat"]
    large = tmp_path / "large.h5"
    with large.open("wb") as file:
        file.truncate(10**10)
    _trial.tried(large, Scratch(tmp_path), None)
    assert [seconds for _, seconds in tried] == ["60", "60", "60", "1060"]


def test_a_trial_starts_quickly() -> None:
    """Without torch, which takes seconds to import."""
    code = "import sys; from pnpilot.io.readers import READERS; list(READERS); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {plugins.VARIABLE: ""}).returncode == 0


# Damage that is known to do harm.


def test_a_heap_that_goes_in_circles_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a size that ends where it began, HDF5 2.0 looks for the next object for ever."""
    monkeypatch.setattr(_trial, "SECONDS", 1)
    content = bytearray((FILES / "mrd_slices.h5").read_bytes())
    size = content.index(b"GCOL") + 16 + 8
    content[size : size + 8] = struct.pack("<Q", 2**64 - 16)
    path = tmp_path / "scan.h5"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"hangs$|cannot be read"):
        open_raw(path, Scratch(tmp_path / "scratch"))


def matlab(path: Path, packed: bool, **content: np.ndarray) -> bytearray:
    import scipy.io

    scipy.io.savemat(path, content, do_compression=packed)
    return bytearray(path.read_bytes())


KSPACE = (np.arange(60).reshape(3, 4, 5) + 1j).astype(np.complex64)
SMALL = np.array([[1, 2]], np.int16)
"""So short that it stands in its own tag."""


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("kind", [0, 8, 16, 250, 2**16 - 1])
def test_matlabs_types_are_looked_at_first(part: int, kind: int, tmp_path: Path) -> None:
    """SciPy takes the type for a place in memory."""
    path = tmp_path / "scan.mat"
    content = matlab(path, False, kspace=KSPACE)
    tags = [at for at in range(0, len(content), 8) if content[at : at + 8] == struct.pack("<II", 7, 4 * KSPACE.size)]
    assert len(tags) == 2
    content[tags[part] : tags[part] + 4] = struct.pack("<I", kind)
    path.write_bytes(content)
    with pytest.raises(BadInput, match=f"kspace is damaged: there is no type {kind} of numbers"):
        open_raw(path, Scratch(tmp_path / "scratch"))


@pytest.mark.parametrize("packed", [False, True])
def test_matlabs_good_files_pass(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "scan.mat"
    matlab(
        path, packed, before=KSPACE[0].real, kspace=KSPACE, maps=SMALL, mask=np.ones((3, 4), bool), text=np.array("ä")
    )
    raw = open_raw(path, Scratch(tmp_path / "scratch"))
    assert raw.measured is not None and raw.maps is not None and raw.mask is not None
    assert np.array_equal(raw.measured.data[:], KSPACE)
    assert np.array_equal(raw.maps.data[:], SMALL) and np.array_equal(raw.mask.data[:], np.ones((3, 4)))


def test_matlabs_other_classes_are_no_numbers_whatever_their_flags(tmp_path: Path) -> None:
    path = tmp_path / "scan.mat"
    content = matlab(path, False, kspace=np.array("a text that says: logical"))
    assert content[128 + 16] == 4  # class char
    content[128 + 17] |= 2  # logical, which SciPy then says it is
    path.write_bytes(content)
    with pytest.raises(BadInput, match="kspace is no full array of numbers"):
        open_raw(path, Scratch(tmp_path / "scratch"))


def test_a_little_file_does_not_become_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pnpilot.io.readers._mat5.SMALL", 10_000)
    path = tmp_path / "scan.mat"
    matlab(path, True, kspace=np.zeros((100, 200), np.complex64))
    with pytest.raises(BadInput, match=r"kspace claims 1\.6e\+05 bytes, more than a file of [0-9]+ bytes is read for"):
        open_raw(path, Scratch(tmp_path / "scratch"))
    content = matlab(path, False, kspace=KSPACE)
    name = content.index(b"kspace") - 8
    content[name : name + 8] = struct.pack("<II", 1, 2**31)
    path.write_bytes(content)
    with pytest.raises(BadInput, match="the name or the sizes of a variable are endless"):
        open_raw(path, Scratch(tmp_path / "scratch"))
