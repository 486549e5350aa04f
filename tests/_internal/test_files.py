"""Files that are written completely or not at all.

Errors of the file system in one sentence.
"""

import errno
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from esbas._internal import archive
from esbas._internal.files import file_error, write_atomically
from esbas.errors import EsbasError, FileError

WAIT = 300.0  # seconds: the machine may be busy


def failing(number):
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full: free some space, then try again"),
        (errno.EDQUOT, "the disk quota is used up: free some space"),
        (
            errno.EMFILE,
            r"too many files are open: raise the limit \(`ulimit -n`\), or use fewer jobs",
        ),
        (errno.EROFS, "the disk is read-only: make it writable"),
        (errno.EACCES, "permission is denied: change its permissions"),
        (errno.EIO, "Input/output error: fix the cause"),
    ],
)
def test_a_failed_write_is_one_sentence_and_loses_nothing(tmp_path, monkeypatch, number, sentence):
    path = tmp_path / "a.npz"
    archive.write(path, "run", {"x": 1})
    monkeypatch.setattr("os.fsync", failing(number))
    with pytest.raises(
        FileError, match=f"a.npz' must be readable and writable, but {sentence}"
    ) as caught:
        archive.write(path, "run", {"x": 2})
    assert caught.value.errno == number
    monkeypatch.undo()
    assert archive.read(path, "run") == {"x": 1}
    archive.write(path, "run", {"x": 2})  # the cause is gone
    assert archive.read(path, "run") == {"x": 2}
    assert [each.name for each in tmp_path.iterdir()] == ["a.npz"]


def test_a_full_disk_while_writing(tmp_path):
    path = tmp_path / "a"
    write_atomically(path, b"old")
    former = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, former[0][1]))
        with pytest.raises(FileError, match="larger than this process may write"):
            write_atomically(path, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former[0])
        signal.signal(signal.SIGXFSZ, former[1])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_and_a_file_in_its_place(tmp_path):
    with pytest.raises(FileError, match="the folder does not exist any more: restore the folder"):
        write_atomically(tmp_path / "gone" / "a", b"")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="there is a file instead of its folder"):
        write_atomically(tmp_path / "file" / "a", b"")
    assert (tmp_path / "file").read_text() == "mine"


def test_too_many_open_files_change_nothing(tmp_path):
    path = tmp_path / "a"
    opened = []
    failures = []
    write_atomically(path, b"old")
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, former[1]))
        with suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        while True:  # each step of a write fails once
            try:
                write_atomically(path, b"new")
                break
            except FileError as error:
                failures.append(str(error))
                os.close(opened.pop())
    finally:
        for descriptor in opened:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, former)
    assert len(failures) >= 2
    assert all("too many files are open" in failure for failure in failures)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    path = tmp_path / "a"
    code = "import os, signal; from esbas._internal.files import open_atomically as o\n"
    code += f"with o({str(path)!r}) as f: os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", code], timeout=WAIT, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    # of a running process; of another file
    others = tmp_path / f".a.{os.getppid()}-1.tmp", tmp_path / ".ab.999999999.tmp"
    for other in others:
        other.write_text("")
    (tmp_path / ".a.999999999.tmp").write_text("")  # as esbas 0.1 named them
    write_atomically(path, b"new")
    assert not left.exists()
    assert {each.name for each in tmp_path.iterdir()} == {"a", *(other.name for other in others)}


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    events = []
    replace = Path.replace
    sync = os.fsync

    def fsync(descriptor):
        events.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        sync(descriptor)

    monkeypatch.setattr("os.fsync", fsync)
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda *paths: (events.append("rename"), replace(*paths))
    )
    write_atomically(tmp_path / "a", b"")
    assert events[1:] == ["rename", str(tmp_path)]
    assert events[0].endswith(".tmp")


def test_links_are_never_followed(tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    monkeypatch.setattr("threading.get_ident", lambda: 7)
    (tmp_path / f".a.{os.getpid()}-7.tmp").symlink_to(secret)
    (tmp_path / "a").symlink_to(secret)
    write_atomically(tmp_path / "a", b"new")
    assert secret.read_text() == "mine"
    assert (tmp_path / "a").read_text() == "new"
    assert not (tmp_path / "a").is_symlink()


def test_an_error_without_a_path_is_a_sentence_too():
    error = file_error(OSError(errno.EMFILE, "Too many open files"))
    assert isinstance(error, EsbasError)
    assert str(error).startswith("Files must be readable and writable, but too many files are open")
