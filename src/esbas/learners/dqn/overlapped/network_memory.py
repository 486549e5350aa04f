"""The arrays of one network that is trained beside the acting, in memory that processes can share."""

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.learners.deep.excerpts import excerpt_of, layouts
from esbas.learners.deep.group import UpdateOptions
from esbas.learners.deep.layout import NetworkLayout

ALIGNMENT = 64  # bytes: the same for all arrays, because libraries may round differently otherwise


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """What training a network needs besides its arrays. Plain data, which is sent to processes.

    Attributes:
        layout: of the network.
        shape, dtype: of an observation.
        optimizer: "adam" or "rmsprop".
        batch: steps per update.
        options: of an update.
    """

    layout: NetworkLayout
    shape: tuple[int, ...]
    dtype: Any
    optimizer: str
    batch: int
    options: UpdateOptions


class NetworkMemory:
    """Weights and optimiser before and after an update, the target network, and the excerpt to learn from.

    An update reads one of two versions and writes the other, so that a process that is killed in between leaves the first one
    as it was, and the policy can act with it meanwhile.

    Args:
        spec: describes the network.
        file: the number of an open file that contains the arrays; None creates an anonymous one.

    Attributes:
        weights, first, second: (2, size) each; `first` has size 0 for RMSprop, which does not use it.
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
            **layouts(spec.batch, spec.options.n_step, spec.options.corrected, spec.shape, spec.dtype),
        }
        offsets, total = {}, 0
        for name, (shape, dtype) in shapes.items():
            offsets[name] = total
            total += math.ceil(math.prod(shape) * np.dtype(dtype).itemsize / ALIGNMENT) * ALIGNMENT
        self.spec = spec
        self.file = _anonymous_file(total) if file is None else file
        memory = mmap.mmap(self.file, total)
        arrays = {name: np.ndarray(shape, dtype, memory, offset=offsets[name]) for name, (shape, dtype) in shapes.items()}
        self.weights, self.second = arrays["weights"][:, :size], arrays["second"][:, :size]
        self.first, self.target = arrays["first"][:, :moments], arrays["target"]
        self.excerpt = excerpt_of(arrays)


def _padded(size: int) -> int:
    """A row length at which all rows are aligned."""
    return math.ceil(size * 4 / ALIGNMENT) * ALIGNMENT // 4


def _anonymous_file(size: int) -> int:
    """An open file without a name in main memory, where the system has such files; it ends with the processes that use it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("esbas-network")
    else:
        with tempfile.TemporaryFile() as opened:
            file = os.dup(opened.fileno())
    os.ftruncate(file, size)
    return file
