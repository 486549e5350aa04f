"""The rows of a large replay memory on disk. Each save adds one compressed file with the rows that are new."""

import hashlib
import itertools
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.files import file_errors, open_atomically, open_regular
from esbas.learners.deep.replay_checks import WHERE
from esbas.learners.deep.replay_storage import Pool
from esbas.schema import ArrayOf

LARGE = 64 * 2**20  # bytes: smaller memories are saved as part of the state
LEVEL = 1  # of zlib: higher levels take twice the time and save a third of the space
PIECE = 2**20  # bytes that are read at a time
BLOCK = 2**21  # bytes of rows whose columns are stored together: part of the file format, as is the order of the columns
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

    The folder belongs to one memory. A file stays until the state after the one that needs it last has been saved: whoever is
    killed in between finds the earlier state complete. Earlier states cannot be loaded any more.

    Args:
        folder: created with the first file.
        columns: the arrays of the memory, one row per step, used as a ring.
        check: raises an error if values that were read are not allowed.
    """

    def __init__(self, folder: Path, columns: Mapping[str, Array], *, check: Callable[[Mapping[str, Array]], None]) -> None:
        self._folder, self._columns, self._check = folder, columns, check
        self._rows = len(columns["rewards"])
        self._row_size = sum(column[:1].nbytes for column in columns.values())
        self._block = max(1, BLOCK // self._row_size)  # rows
        self.needed: list[RowFile] = []  # by the state that was saved or loaded last, the oldest first

    @property
    def large(self) -> bool:
        """Whether a full memory is too large for a save file."""
        return self._rows * self._row_size > LARGE

    def save(self, added: int) -> dict[str, Array]:
        """Write the rows that are new since the last state, if any. Returns what `load` needs."""
        oldest, before = max(0, added - self._rows), self.needed
        start = max(before[-1].end if before else 0, oldest)
        if start < added:
            with file_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
            written = self._write(start, added)
            self.needed = [*(each for each in before if each.end > oldest), written]
            self._remove_all_but({each.name for each in (*before, written)})
        numbers = np.array([each[:3] for each in self.needed], np.int64).reshape(-1, 3)
        return {"files": numbers, "digests": np.array([list(each.digest) for each in self.needed], np.uint8).reshape(-1, 32)}

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
        """The files as the state lists them, if they can be those of a memory of this size."""
        numbers, digests = state["files"].tolist(), state["digests"]
        schema.require(len(numbers) == len(digests), "each file has a digest", WHERE, files=len(numbers), digests=len(digests))
        listed = zip(numbers, digests, strict=True)
        found = [RowFile(first, rows, size, digest.tobytes()) for (first, rows, size), digest in listed]
        fits = all(each.first >= 0 and 1 <= each.rows <= self._rows and each.size >= 0 for each in found)
        schema.require(fits, f"a file has 1 to {self._rows} rows", WHERE, files=numbers)
        follow = all(one.end == other.first for one, other in itertools.pairwise(found))
        oldest = max(0, added - self._rows)
        whole = bool(found) and found[0].first <= oldest < found[0].end and found[-1].end == added
        schema.require(follow and whole, f"the files have the rows {oldest} to {added}", WHERE, files=numbers)
        return found

    def _write(self, start: int, end: int) -> RowFile:
        digest, size, compress = hashlib.sha256(), 0, zlib.compressobj(LEVEL)
        name = RowFile(start, end - start, 0, b"").name
        with open_atomically(self._folder / name) as file:
            for first in [*range(start, end, self._block), end]:
                rows = np.arange(first, min(first + self._block, end)) % self._rows
                data = compress.compress(self._packed(rows)) if len(rows) else compress.flush()
                digest.update(data)
                size += file.write(data)
        return RowFile(start, end - start, size, digest.digest())

    def _packed(self, rows: Array) -> bytes:
        """Rows as bytes, column by column. Of a frame, only the difference to the frame before is stored: it is mostly zero."""
        parts = {name: np.ascontiguousarray(column[rows]).reshape(-1).view(np.uint8) for name, column in self._columns.items()}
        frames = parts["frames"].reshape(len(rows), -1)
        frames[1:] = frames[1:] ^ frames[:-1]
        return b"".join(part.tobytes() for part in parts.values())

    def _unpacked(self, data: bytes, count: int) -> dict[str, Array]:
        columns, start = {}, 0
        for name, column in self._columns.items():
            size = column[:1].nbytes * count
            part = np.frombuffer(data, np.uint8, size, start).copy()
            if name == "frames":
                frames = part.reshape(count, -1)
                for i in range(1, count):  # three times as fast as np.bitwise_xor.accumulate
                    frames[i] ^= frames[i - 1]
            if column.dtype == bool and part.max(initial=0) > 1:
                raise ValueError(f"{name} are not true or false")
            columns[name], start = part.view(column.dtype).reshape(count, *column.shape[1:]), start + size
        return columns

    def _blocks(self, files: Sequence[RowFile]) -> Iterator[tuple[int, dict[str, Array]]]:
        """The first row and the columns of each block of rows. Each file is checked when its last block has been read."""
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
                message = f"a saved replay memory needs the file {str(path)!r}, but it does not exist"
                raise SaveFileError(f"{message}: restore it, or start again") from None
            except (OSError, ValueError, zlib.error) as error:
                cause = " ".join(str(error).removesuffix(f": {schema.REMEDY}").split())[:300]
                message = f"{str(path)!r} must have rows of a replay memory as they were saved, but {cause}"
                raise SaveFileError(f"{message}: {schema.REMEDY}") from error

    def _remove_all_but(self, names: set[str]) -> None:
        with suppress(OSError):  # another attempt follows at the next save
            for entry in os.scandir(self._folder):
                if _NAME.fullmatch(entry.name) and entry.name not in names:
                    Path(entry.path).unlink()


class _Reader:
    """Decompresses a file, and never more than what is asked for."""

    def __init__(self, file: BinaryIO, described: RowFile) -> None:
        size = os.fstat(file.fileno()).st_size
        if size != described.size:
            raise ValueError(f"it has {size:,} bytes instead of {described.size:,}")
        self._file, self._expected = file, described.digest
        self._digest, self._stream = hashlib.sha256(), zlib.decompressobj()

    def read(self, size: int) -> bytes:
        parts = list[bytes]()
        while size:
            pending = self._pending()
            part = self._stream.decompress(pending, size)
            parts, size = [*parts, part], size - len(part)
            if not part and (not pending or self._stream.eof):
                raise ValueError("it has too few rows")
        return parts[0] if len(parts) == 1 else b"".join(parts)

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
    """The states of the pools, with compressed items."""
    arrays: dict[str, Array] = {}
    for name, pool in pools.items():
        state = pool.state_dict()
        items = zlib.compress(state["items"].tobytes(), LEVEL)
        arrays |= {f"{name}_rows": state["rows"], f"{name}_packed": np.frombuffer(items, np.uint8)}
    return arrays


def unpacked(state: Mapping[str, Any], pools: Mapping[str, Pool], *, rows: int) -> dict[str, Any]:
    """The state of a memory, with the items of `packed` as they were."""
    names = {name: (f"{name}_rows", f"{name}_packed") for name in pools}
    keys = {key for pair in names.values() for key in pair}
    shapes = {key: ArrayOf("i" if key.endswith("rows") else "u", (None,)) for key in keys}
    schema.check(state, {**shapes, str: Any}, WHERE)
    found = {key: value for key, value in state.items() if not key.endswith("_packed")}
    for name, (where, what) in names.items():
        count, like = len(state[where]), pools[name].items
        schema.require(count <= rows, f"at most {rows} rows have items", WHERE, rows=count)
        size, stream = count * like[:1].nbytes, zlib.decompressobj()
        try:
            data = stream.decompress(state[what].tobytes(), size + 1)
        except zlib.error as error:
            raise SaveFileError(f"{WHERE} must have compressed items, but {error}: {schema.REMEDY}") from None
        schema.require(len(data) == size and stream.eof, f"compressed items have {size} bytes", WHERE, found=len(data))
        found[f"{name}_items"] = np.frombuffer(data, like.dtype).reshape(count, *like.shape[1:])
    return found
