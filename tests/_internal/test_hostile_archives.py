"""Save files from anywhere.

Nothing is unpacked, waited for or allocated that the file itself does not contain.
"""

import io
import json
import os
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from esbas._internal import archive
from esbas.errors import SaveFileError


def with_entries(path, entries, *, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in entries:
            file.writestr(name, data)
    return path


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def entries_of(path):
    with zipfile.ZipFile(path) as file:
        return [(entry.filename, file.read(entry)) for entry in file.infolist()]


def with_json(path, text):
    return with_entries(path, [("json.npy", npy(np.frombuffer(text.encode(), np.uint8)))])


def refused(path, match=r"must be a whole esbas save file, but is damaged"):
    with pytest.raises(SaveFileError, match=match) as caught:
        archive.read(path, "run")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800
    return caught.value


@pytest.fixture
def path(tmp_path):
    archive.write(tmp_path / "file.esbas", "run", {"a": np.arange(6.0).reshape(2, 3), "n": 1})
    return tmp_path / "file.esbas"


def test_a_fifo_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    code = f"from esbas._internal import archive; archive.read({str(tmp_path / 'fifo')!r}, 'run')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "is not a regular file): check the path." in done.stderr


@pytest.mark.parametrize("place", ["/dev/null", "/dev/zero", "/", "a\0b"])
def test_other_things_than_files_are_refused(place):
    refused(
        place,
        match=r"^'.*' cannot be read .*: check the path\.$",
    )


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_entries_are_refused(path, method):
    with_entries(path, entries_of(path), compression=method)
    refused(path, match="damaged .*its entries are compressed")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("json.npy", "w") as entry,
    ):
        entry.write(npy(np.zeros(0, np.uint8)))
        for _ in range(200):
            entry.write(bytes(1_000_000))  # 200 MB in a file of 200 kB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, match="damaged .*its entries are compressed")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


def test_an_array_larger_than_its_entry_is_refused_before_it_is_allocated(path):
    for shape in (
        b"(999999999999,)",
        b"(-6,)",
        b"(7,)",
        b"(5,)",
        b"(2**9,)",
        b"('6',)",
        b"6",
        b"(99999999999, 99999999999)",
    ):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + b", }"
        header += b" " * (118 - len(header) - 1) + b"\n"
        entry = (
            b"\x93NUMPY\x01\x00"
            + len(header).to_bytes(2, "little")
            + header
            + np.arange(6.0).tobytes()
        )
        with_entries(path, [("json.npy", npy(np.frombuffer(b"{}", np.uint8))), ("a0.npy", entry)])
        refused(path)


def test_overlapping_entries_are_refused(path):
    """Many names for the same bytes would multiply the size of the file."""
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    directory = content[start:end]
    count = len(entries_of(path))
    tail = b"PK\x05\x06" + bytes(4) + (50 * count).to_bytes(2, "little") * 2
    tail += (50 * len(directory)).to_bytes(4, "little") + start.to_bytes(4, "little") + bytes(2)
    path.write_bytes(content[:start] + directory * 50 + tail)
    with zipfile.ZipFile(path) as file:
        assert len(file.infolist()) == 50 * count
    refused(path)


def test_objects_are_refused(path):
    data = io.BytesIO()
    np.save(data, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with_entries(path, [*entries_of(path), ("b.npy", data.getvalue())])
    refused(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"kind": "run"}',
        '{"kind": "run", "format": 2}',
        '{"kind": "run", "format": 2, "state": []}',
        '{"kind": "run", "format": true, "state": {}}',
        '{"kind": "run", "format": -1, "state": {}}',
        '{"kind": "run", "format": "2", "state": {}}',
        '{"kind": "run", "format": 2, "state": {"a": {"$array": "a7"}}}',
        '{"kind": "run", "format": 2, "state": {"a": {"$array": ["a0"]}}}',
        '{"kind": "run", "format": 2, "state": {"$array": "json"}}',
        '{"kind": "run", "format": 2, "state": {"a": ' + "9" * 5000 + "}}",
        '{"kind": "run", "format": 2, "state": {"a": ' + "[" * 900 + "]" * 900 + "}}",
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_json_of_another_shape_is_refused(path, text):
    refused(with_json(path, text))


def test_what_is_too_deep_or_too_large_to_read_is_not_written(tmp_path):
    deep = {}
    for _ in range(80):
        deep = {"a": deep}
    with pytest.raises(SaveFileError, match="nested levels, but has more: store it flat"):
        archive.write(tmp_path / "deep", "run", deep)
    with pytest.raises(SaveFileError, match="may have 1000 bits"):
        archive.write(tmp_path / "large", "run", {"a": 10**5000})
    assert list(tmp_path.iterdir()) == []
    deep = {"a": np.arange(2)}
    levels = 0
    while True:
        try:
            archive.write(tmp_path / "deep", "run", deep)
        except SaveFileError:
            break
        # all that is written can be read
        assert json.dumps(archive.read(tmp_path / "deep", "run"), default=np.ndarray.tolist)
        deep = {"a": deep}
        levels = levels + 1
    assert 50 < levels < 80


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3)),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(1.5),
        np.array(["a", "bc"]),
        np.zeros(3, "f4, i8"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_all_kinds_are_read_writable(tmp_path, array):
    archive.write(tmp_path / "it", "run", {"a": array})
    read = archive.read(tmp_path / "it", "run")["a"]
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert (read == array).all()
    assert read.flags.writeable
    assert read.flags.f_contiguous == array.flags.f_contiguous
