"""The rows of a large replay memory on disk. Each save adds a compressed file with new rows."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.files import file_errors, open_atomically, open_regular
from esbas._internal.schema import ArrayOf
from esbas.errors import SaveFileError, require
from esbas.learners.dqn.replay.checks import WHERE
from esbas.learners.dqn.replay.storage import Pool

LARGE = 64 * 2**20  # bytes: smaller memories are saved as part of the state
LEVEL = 1  # of zlib: higher levels take twice the time and save a third of the space
PIECE = 2**20  # bytes that are read at a time
# Bytes of rows whose columns are stored together. It is part of the file format, as is the order
# of the columns.
BLOCK = 2**21
SHAPES = {"files": ArrayOf("i", (None, 3)), "digests": ArrayOf("u", (None, 32))}
"""What the state of a memory has instead of its rows."""
_NAME = re.compile(r"rows-(\d{12,19})\.zlib")


class RowFile(NamedTuple):
    """A file with consecutive rows. Rows are numbered by when they were added."""

    first: int
    rows: int
    size: int  # of the file in bytes
    digest: bytes  # SHA-256 of the file

    @property
    def end(self) -> int:
        return self.first + self.rows

    @property
    def name(self) -> str:
        return f"rows-{self.first:012}.zlib"


class RowFiles:
    """Writes the rows of a memory into a folder, and reads them back.

    The folder belongs to one memory. A file stays until the state after the one that needs it last
    has been saved: a process that is killed in between leaves the earlier state complete. Earlier
    states cannot be loaded any more.

    Args:
        folder: created with the first file.
        columns: the arrays of the memory, one row per step, used as a ring.
        check: raises an error if values that were read are not allowed.
    """

    def __init__(
        self,
        folder: Path,
        columns: Mapping[str, Array],
        *,
        check: Callable[[Mapping[str, Array]], None],
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._check = check
        self._rows = len(columns["rewards"])
        self._row_size = sum(column[:1].nbytes for column in columns.values())
        self._block = max(1, BLOCK // self._row_size)  # rows
        # The files of the state that was saved or loaded last, the oldest first.
        self.needed: list[RowFile] = []

    @property
    def large(self) -> bool:
        """Whether a full memory is too large for a save file."""
        return self._rows * self._row_size > LARGE

    def save(self, added: int) -> dict[str, Array]:
        """Write the rows that are new since the last state, and return what `load` needs."""
        oldest = max(0, added - self._rows)
        before = self.needed
        start = max(before[-1].end if before else 0, oldest)
        if start < added:
            with file_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
            written = self._write(start, added)
            self.needed = [each for each in before if each.end > oldest]
            self.needed.append(written)
            self._remove_all_but({each.name for each in (*before, written)})
        numbers = [[each.first, each.rows, each.size] for each in self.needed]
        digests = [list(each.digest) for each in self.needed]
        return {
            "files": np.array(numbers, np.int64).reshape(-1, 3),
            "digests": np.array(digests, np.uint8).reshape(-1, 32),
        }

    def load(self, state: Mapping[str, Array], *, added: int, present: int) -> None:
        """Read all rows back. Nothing changes unless every file is complete and fits.

        Args:
            state: with what `save` returned.
            added: how many rows had been added when it did.
            present: how many have been added to the memory that loads them.
        """
        needed = self._checked(state, added)
        if needed == self.needed and added == present:  # another learner has loaded them
            return
        for _ in self._blocks(needed):  # checks everything
            pass
        self.needed = []  # the rows are those of no state until all are loaded
        for first, columns in self._blocks(needed):
            where = np.arange(first, first + len(columns["rewards"])) % self._rows
            for name, values in columns.items():
                self._columns[name][where] = values
        self.needed = needed

    def _checked(self, state: Mapping[str, Array], added: int) -> list[RowFile]:
        """Return the files that the state lists, if they have the rows of a memory of this size."""
        numbers = state["files"].tolist()
        digests = state["digests"]
        oldest = max(0, added - self._rows)
        fits = len(numbers) == len(digests) and self._covers(numbers, oldest, added)
        require(
            fits,
            f"In {WHERE}, the files must have the rows {oldest} to {added}, each with a digest, "
            f"but got {schema.short(numbers)}: {schema.REMEDY}.",
        )
        found = []
        for (first, rows, size), digest in zip(numbers, digests, strict=True):
            found.append(RowFile(first, rows, size, digest.tobytes()))
        return found

    def _covers(self, numbers: Sequence[Sequence[int]], oldest: int, added: int) -> bool:
        """Return whether files (first, rows, size) follow each other and have these rows."""
        if not numbers:
            return False
        first, rows, _ = numbers[0]
        if not 0 <= first <= oldest < first + rows:
            return False
        end = first
        for first, rows, size in numbers:
            if first != end or not 1 <= rows <= self._rows or size < 0:
                return False
            end = first + rows
        return end == added

    def _write(self, start: int, end: int) -> RowFile:
        digest = hashlib.sha256()
        size = 0
        compress = zlib.compressobj(LEVEL)
        name = RowFile(start, end - start, 0, b"").name
        with open_atomically(self._folder / name) as file:
            for first in range(start, end, self._block):
                rows = np.arange(first, min(first + self._block, end)) % self._rows
                data = compress.compress(self._packed(rows))
                digest.update(data)
                size += file.write(data)
            data = compress.flush()
            digest.update(data)
            size += file.write(data)
        return RowFile(start, end - start, size, digest.digest())

    def _packed(self, rows: Array) -> bytes:
        """Return rows as bytes, column by column.

        Of a frame, only the difference to the frame before is stored: it is mostly zero.
        """
        parts = []
        for name, column in self._columns.items():
            part = np.ascontiguousarray(column[rows]).reshape(-1).view(np.uint8)
            if name == "frames":
                frames = part.reshape(len(rows), -1)
                frames[1:] = frames[1:] ^ frames[:-1]
            parts.append(part.tobytes())
        return b"".join(parts)

    def _unpacked(self, data: bytes, count: int) -> dict[str, Array]:
        columns = {}
        start = 0
        for name, column in self._columns.items():
            size = column[:1].nbytes * count
            part = np.frombuffer(data, np.uint8, size, start).copy()
            if name == "frames":
                frames = part.reshape(count, -1)
                for i in range(1, count):  # three times as fast as np.bitwise_xor.accumulate
                    frames[i] ^= frames[i - 1]
            if column.dtype == bool and part.max(initial=0) > 1:
                raise ValueError(f"`{name}` are not true or false")
            columns[name] = part.view(column.dtype).reshape(count, *column.shape[1:])
            start += size
        return columns

    def _blocks(self, files: Sequence[RowFile]) -> Iterator[tuple[int, dict[str, Array]]]:
        """Yield the first row and the columns of each block of rows.

        Each file is checked when its last block has been read.
        """
        for each in files:
            path = self._folder / each.name
            try:
                with open_regular(path, follow=False) as file:
                    reader = _Reader(file, each)
                    for first in range(each.first, each.end, self._block):
                        count = min(self._block, each.end - first)
                        columns = self._unpacked(reader.read(count * self._row_size), count)
                        self._check(columns)
                        yield first, columns
                    reader.end()
            except FileNotFoundError:
                raise SaveFileError(
                    f"A saved replay memory needs the file {str(path)!r}, but it does not exist: "
                    "restore it, or start again."
                ) from None
            except (OSError, ValueError, zlib.error) as error:
                cause, _, _ = " ".join(str(error).split())[:300].partition(f": {schema.REMEDY}")
                raise SaveFileError(
                    f"{str(path)!r} must have rows of a replay memory as they were saved, "
                    f"but {cause}: {schema.REMEDY}."
                ) from error

    def _remove_all_but(self, names: set[str]) -> None:
        with suppress(OSError):  # another attempt follows at the next save
            for entry in os.scandir(self._folder):
                if _NAME.fullmatch(entry.name) and entry.name not in names:
                    Path(entry.path).unlink()


class _Reader:
    """Decompresses a file, and never more than what was requested."""

    def __init__(self, file: BinaryIO, described: RowFile) -> None:
        size = os.fstat(file.fileno()).st_size
        if size != described.size:
            raise ValueError(f"it has {size:,} bytes instead of {described.size:,}")
        self._file = file
        self._expected = described.digest
        self._digest = hashlib.sha256()
        self._stream = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            pending = self._pending()
            part = self._stream.decompress(pending, size)
            parts.append(part)
            size -= len(part)
            if not part and (not pending or self._stream.eof):
                raise ValueError("it has too few rows")
        return b"".join(parts)

    def end(self) -> None:
        """Raise an error unless the file ends here, with the right checksum."""
        while not self._stream.eof:
            pending = self._pending()
            if self._stream.decompress(pending, 1) or not pending:
                raise ValueError("it does not end after its last row")
        if self._stream.unused_data or self._file.read(1):
            raise ValueError("it has more than its rows")
        if self._digest.digest() != self._expected:
            raise ValueError("its checksum is wrong")

    def _pending(self) -> bytes:
        if self._stream.unconsumed_tail:
            return self._stream.unconsumed_tail
        data = self._file.read(PIECE)
        self._digest.update(data)
        return data


def packed(pools: Mapping[str, Pool]) -> dict[str, Array]:
    """Return the states of the pools, with compressed items."""
    arrays: dict[str, Array] = {}
    for name, pool in pools.items():
        state = pool.state_dict()
        items = zlib.compress(state["items"].tobytes(), LEVEL)
        arrays[f"{name}_rows"] = state["rows"]
        arrays[f"{name}_packed"] = np.frombuffer(items, np.uint8)
    return arrays


def unpacked(state: Mapping[str, Any], pools: Mapping[str, Pool], *, rows: int) -> dict[str, Any]:
    """Return the state of a memory, with the items of `packed` as they were."""
    shapes: dict[Any, Any] = {str: Any}
    for name in pools:
        shapes[f"{name}_rows"] = ArrayOf("i", (None,))
        shapes[f"{name}_packed"] = ArrayOf("u", (None,))
    schema.check(state, shapes, WHERE)
    found = {key: value for key, value in state.items() if not key.endswith("_packed")}
    for name, pool in pools.items():
        count = len(state[f"{name}_rows"])
        require(
            count <= rows,
            f"In {WHERE}, at most {rows} rows must have items, but {count} have: {schema.REMEDY}.",
        )
        data = _decompressed(state[f"{name}_packed"], size=count * pool.items[:1].nbytes)
        items = np.frombuffer(data, pool.items.dtype)
        found[f"{name}_items"] = items.reshape(count, *pool.items.shape[1:])
    return found


def _decompressed(data: Array, *, size: int) -> bytes:
    """Return the compressed bytes, and decompress no more than `size` of them."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data.tobytes(), size + 1)
    except zlib.error as error:
        raise SaveFileError(
            f"In {WHERE}, items must be compressed by zlib, but {error}: {schema.REMEDY}."
        ) from None
    require(
        len(found) == size and stream.eof,
        f"In {WHERE}, compressed items must have {size} bytes, but have others: {schema.REMEDY}.",
    )
    return found
