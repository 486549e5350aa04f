import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from esbas._internal import archive
from esbas.errors import SaveFileError

STATE = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "nested": [{"flags": np.array([True, False]), "none": None}, (1, 2.5, "text", True)],
    "scalar": np.float32(0.5),
    "whole": 2**100,
    "odd": float("inf"),
}


@pytest.fixture
def path(tmp_path):
    archive.write(tmp_path / "file.esbas", "run", STATE)
    return tmp_path / "file.esbas"


def as_text(state):
    """Comparable text of what was read."""
    return json.dumps(state, default=lambda array: [str(array.dtype), array.tolist()])


def test_written_state_is_read_back(path):
    read = archive.read(path, "run")
    assert np.array_equal(read["numbers"], STATE["numbers"])
    assert read["nested"][0]["flags"].dtype == bool
    assert read["nested"][0]["none"] is None
    assert read["nested"][1] == [1, 2.5, "text", True]
    assert (read["scalar"], read["whole"], read["odd"]) == (0.5, 2**100, float("inf"))


def test_writing_leaves_no_temporary_files(path):
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            {"a": object()},
            "Plain data and arrays can be saved, but got object: store what it is made of",
        ),
        ({"a": np.array([object()])}, "Arrays of numbers can be saved, but got objects"),
        (
            {"a": np.array([(1, None)], dtype=[("x", int), ("y", object)])},
            "Arrays of numbers can be saved, but got objects",
        ),
        ({"a": {1: 2}}, "The keys of saved data must be text"),
        ({"a": {"$array": 2}}, "The keys of saved data must be text other than"),
        ({"a": {1, 2}}, "Plain data and arrays can be saved, but got set"),
    ],
)
def test_an_unsupported_state_raises_and_keeps_the_old_file(path, state, message):
    before = path.read_bytes()
    with pytest.raises(SaveFileError, match=message):
        archive.write(path, "run", state)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_full_disk_keeps_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        archive.write(path, "run", {"a": 1})
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def expect_damage(path):
    with pytest.raises(
        SaveFileError,
        match=r"must be a whole esbas save file, but is damaged .*: go back to an earlier copy",
    ) as caught:
        archive.read(path, "run")
    assert str(path) in str(caught.value)


def test_a_truncated_file_is_refused(path):
    whole = path.read_bytes()
    for length in [0, 1, 4, 30, *range(50, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        expect_damage(path)


def test_a_flipped_bit_is_detected_or_harmless(path):
    whole = path.read_bytes()
    expected = as_text(archive.read(path, "run"))
    refused = 0
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(bytes(damaged))
        try:
            # for example, a date in the directory of the zip file
            assert as_text(archive.read(path, "run")) == expected
        except SaveFileError:
            refused += 1
    assert refused > len(whole) / 3 / 2


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", b"PK\x03\x04", bytes(500)])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    expect_damage(path)


def test_other_arrays_and_zips_are_refused(path):
    np.save(path.with_suffix(".npy"), np.arange(3))
    np.savez(path.with_suffix(".npz"), a=np.arange(3))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("json", "{}")
    for other in (path, path.with_suffix(".npy"), path.with_suffix(".npz")):
        expect_damage(other)


def test_a_file_without_one_of_its_arrays_is_refused(path):
    text = json.dumps({"kind": "run", "format": archive.FORMAT, "state": {"a": {"$array": "a0"}}})
    with path.open("wb") as file:
        np.savez(file, json=np.frombuffer(text.encode(), np.uint8))
    expect_damage(path)


class Trap:
    """Unpickling it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_reading_never_runs_code(path):
    trap = path.with_name("sprung")
    text = json.dumps({"kind": "run", "format": archive.FORMAT, "state": {"a": {"$array": "a0"}}})
    with path.open("wb") as file:
        np.savez(
            file,
            json=np.frombuffer(text.encode(), np.uint8),
            a0=np.array([Trap(trap)], dtype=object),
        )
    expect_damage(path)
    path.write_bytes(pickle.dumps(Trap(trap)))
    expect_damage(path)
    assert not trap.exists()
    with np.load(io.BytesIO(_object_array(trap)), allow_pickle=True) as file:  # the trap works
        file["a0"][0].close()
    assert trap.exists()


def _object_array(trap):
    buffer = io.BytesIO()
    np.savez(buffer, a0=np.array([Trap(trap)], dtype=object))
    return buffer.getvalue()


def test_a_missing_file_raises(tmp_path):
    with pytest.raises(SaveFileError, match=r"There is no save file at .*: check the path"):
        archive.read(tmp_path / "nothing", "run")


def test_a_folder_is_not_a_save_file(tmp_path):
    with pytest.raises(SaveFileError, match=r"cannot be read .*: check the path"):
        archive.read(tmp_path, "run")


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(3, "upgrade esbas"), (1, "continue with the version of esbas that wrote it")],
)
def test_another_format_is_refused(path, monkeypatch, version, remedy):
    monkeypatch.setattr(archive, "FORMAT", version)
    archive.write(path, "run", STATE)
    monkeypatch.undo()
    with pytest.raises(
        SaveFileError,
        match=f"Save files must have format 2, but .* has format {version}: {remedy}",
    ):
        archive.read(path, "run")


def test_a_file_of_another_kind_raises(path):
    with pytest.raises(
        SaveFileError, match="must have a study, but has a run: give the path of a study"
    ):
        archive.read(path, "study")
