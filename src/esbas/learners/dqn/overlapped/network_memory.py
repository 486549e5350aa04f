"""The arrays of a network that is trained beside the acting, in memory that processes share."""

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.learners.dqn.group import UpdateOptions
from esbas.learners.dqn.layout import NetworkLayout
from esbas.learners.dqn.overlapped.excerpts import excerpt_of, layouts

ALIGNMENT = 64  # bytes: the same for all arrays, because libraries may round differently otherwise


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """What the training of a network needs besides its arrays: plain data, sent to processes.

    Attributes:
        layout: of the network.
        shape, dtype: of an observation.
        optimizer: "adam" or "rmsprop".
        batch_size: steps per update.
        options: of an update.
    """

    layout: NetworkLayout
    shape: tuple[int, ...]
    dtype: Any
    optimizer: str
    batch_size: int
    options: UpdateOptions


class NetworkMemory:
    """Weights and optimizer before and after an update, the target network, and the excerpt.

    An update reads one of two versions and writes the other, so that a process that is killed in
    between leaves the first one as it was, and the policy can act with it meanwhile.

    Args:
        spec: describes the network.
        file: the number of an open file that contains the arrays; None creates an anonymous one.

    Attributes:
        weights, first, second: (2, size) each; `first` has size 0 for RMSprop, which does not use
            it.
        target: (size,).
    """

    def __init__(self, spec: NetworkSpec, *, file: int | None = None) -> None:
        size = spec.layout.size
        moments = size if spec.optimizer == "adam" else 0
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "weights": ((2, _padded(size)), np.float32),
            "second": ((2, _padded(size)), np.float32),
            "first": ((2, _padded(moments)), np.float32),
            "target": ((size,), np.float32),
        }
        options = spec.options
        shapes |= layouts(
            spec.batch_size, options.n_steps, options.corrected, spec.shape, spec.dtype
        )
        offsets = {}
        total = 0
        for name, (shape, dtype) in shapes.items():
            offsets[name] = total
            total += _aligned(math.prod(shape) * np.dtype(dtype).itemsize)
        self.spec = spec
        self.file = _anonymous_file(total) if file is None else file
        memory = mmap.mmap(self.file, total)
        arrays = {}
        for name, (shape, dtype) in shapes.items():
            arrays[name] = np.ndarray(shape, dtype, memory, offset=offsets[name])
        self.weights = arrays["weights"][:, :size]
        self.second = arrays["second"][:, :size]
        self.first = arrays["first"][:, :moments]
        self.target = arrays["target"]
        self.excerpt = excerpt_of(arrays)


def _aligned(size: int) -> int:
    """Return the smallest multiple of the alignment that is at least this many bytes."""
    return math.ceil(size / ALIGNMENT) * ALIGNMENT


def _padded(size: int) -> int:
    """Return a length of rows of float32 at which all rows are aligned."""
    return _aligned(size * 4) // 4


def _anonymous_file(size: int) -> int:
    """Open a file without a name, in main memory if the system has such files.

    It ends with the processes that use it.
    """
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("esbas-network")
    else:
        with tempfile.TemporaryFile() as opened:
            file = os.dup(opened.fileno())
    os.ftruncate(file, size)
    return file
