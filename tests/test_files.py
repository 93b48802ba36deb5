"""Files appear whole or not at all, and nothing of the user's is overwritten."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pnpilot.errors import BadInput, CannotWrite
from pnpilot.io.files import (
    read_json,
    writable_file,
    writable_folder,
    writable_json,
    write_atomically,
    write_json,
)

RESULT = {"command": "pnpilot bench policies --data DIR", "versions": {"pnpilot": "1"}, "rows": []}


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("owner", "call"), [(tempfile, "mkstemp"), (os, "fsync"), (Path, "chmod"), (Path, "replace")])
def test_a_full_disk_is_one_line_and_leaves_the_old_file(
    owner: Any, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "result"
    write_atomically(file, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(owner, call, full)
        with pytest.raises(CannotWrite) as caught:
            write_atomically(file, b"new")
    assert str(caught.value) == f"cannot write {file}: No space left on device"
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_ctrl_c_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "result"
    write_atomically(file, b"old")

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "result", []

    def sync(handle: int) -> None:
        seen.append(("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file", file.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(file, b"new")
    assert seen == [("file", False), ("folder", True)]


def test_a_system_that_opens_no_folders_writes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    write_atomically(tmp_path / "result", b"new")
    assert (tmp_path / "result").read_bytes() == b"new"


def test_a_command_that_finds_no_room_ends_with_one_line(tmp_path: Path) -> None:
    """The system itself refuses: files of this process may have at most 1000 bytes."""
    resource = pytest.importorskip("resource")
    assert resource is not None
    file = tmp_path / "result"
    write_atomically(file, b"old")
    code = f"""
import resource
from pathlib import Path
from pnpilot.cli import app, main
from pnpilot.io.files import write_atomically

@app.command("fill")
def fill() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    write_atomically(Path({str(file)!r}), bytes(2000))

main()
"""
    result = subprocess.run([sys.executable, "-c", code, "fill"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"pnpilot: cannot write {file}: {os.strerror(errno.EFBIG)}\n"
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("n" * 255), b"new")
    with pytest.raises(CannotWrite, match=f"{os.strerror(errno.ENAMETOOLONG)}$"):
        writable_file(tmp_path / ("n" * 256))


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="pipe is a device or a pipe; results go to a file"):
        writable_file(tmp_path / "pipe")
    with pytest.raises(BadInput, match="is a folder; results go to a file"):
        writable_file(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match=f"cannot write .*: {os.strerror(errno.ENOTDIR)}$"):
        writable_file(tmp_path / "file" / "below")


def test_a_disk_without_the_room_is_said_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match=r"is full: .* MB free, 1000000000000 MB needed"):
        writable_folder(tmp_path, needed=10**18)


def test_results_replace_results(tmp_path: Path) -> None:
    file = tmp_path / "new" / "r.json"
    assert writable_json(file) == file
    assert not file.exists()
    write_json(file, RESULT)
    assert writable_json(file) == file
    assert json.loads(file.read_text()) == RESULT
    (tmp_path / "empty.json").touch()
    writable_json(tmp_path / "empty.json")


@pytest.mark.parametrize(
    "content",
    [
        b"my thesis",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"{}",
        b"[1, 2]",
        b'"pnpilot bench"',
        b'{"command": "pnpilot bench policies", "versions": {}',
        b'{"command": "rm", "versions": {}}',
        b'{"command": 5, "versions": {}}',
        b'{"command": "pnpilot train denoiser compact", "sha256": "abc"}',
    ],
)
def test_what_is_not_a_result_of_ours_is_kept(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "thesis.txt"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"thesis\.txt holds something else than results of pnpilot"):
        writable_json(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"[" * 100_000, "nested too deep"), (b"1" * 101, "more than 0.0001 MB"), (b"\xff", "decode"), (b"{", "line 1")],
)
def test_unreadable_json_says_why(content: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    largest = 10**6 if len(content) > 1000 else 100
    with pytest.raises(BadInput, match=rf"^{file} is not a readable card: .*{reason}"):
        read_json(file, "card", largest)
    with pytest.raises(BadInput, match="there is no such file"):
        read_json(tmp_path)
