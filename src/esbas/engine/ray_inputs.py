"""Jobs as bytes. A large value that several jobs share is sent to the cluster once."""

import io
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ray import cloudpickle

from esbas.engine.protocol import Job

LARGE = 100_000  # bytes from which on a shared value is stored in the cluster


class JobPacker:
    """Packs jobs for `unpack_job`, each time they are started.

    Shared values are found by identity among the arguments of jobs, and among those of a
    `functools.partial` in them.

    Args:
        function: that all jobs call.
        jobs: all jobs that may be packed.
        put: stores bytes in the cluster and returns a reference.
    """

    def __init__(
        self, function: Callable[..., Any], jobs: Iterable[Job], put: Callable[[bytes], Any]
    ) -> None:
        self._function = function
        self._put = put
        values: dict[int, Any] = {}  # by id; kept, so that an id stays that of its value
        counts: Counter[int] = Counter()  # of jobs
        for job in jobs:
            of_job = {id(value): value for value in _parts(job.arguments)}
            values |= of_job
            counts.update(of_job.keys())
        self._candidates = {key: value for key, value in values.items() if counts[key] > 1}
        self._references: dict[int, Any] = {}  # by the id of the value
        self._small: set[int] = set()

    def pack(self, job: Job) -> tuple[bytes, list[Any]]:
        """Return the job as bytes, and references to the shared values that it needs.

        Raises whatever pickling raises.
        """
        shared: list[int] = []  # ids
        for value in _parts(job.arguments):
            key = id(value)
            if self._is_shared(key) and key not in shared:
                shared.append(key)
        content = io.BytesIO()
        pickler = _Pickler(content, shared)
        pickler.dump((self._function, job.arguments))  # type: ignore[no-untyped-call]
        return content.getvalue(), [self._references[key] for key in shared]

    def _is_shared(self, key: int) -> bool:
        if key in self._candidates and key not in self._references and key not in self._small:
            packed = cloudpickle.dumps(self._candidates[key])
            if len(packed) < LARGE:
                self._small.add(key)
            else:
                self._references[key] = self._put(packed)
        return key in self._references


def unpack_job(
    content: bytes, shared: Sequence[bytes]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the function and the arguments.

    Each job gets a separate copy of shared values, which it may change.
    """
    function, arguments = _Unpickler(io.BytesIO(content), shared).load()
    return function, arguments


def _parts(arguments: Iterable[Any]) -> Iterator[Any]:
    """Yield the arguments, and those of partial functions among them."""
    for value in arguments:
        yield value
        if isinstance(value, partial):
            yield from _parts((*value.args, *value.keywords.values()))


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, shared: Sequence[int]) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._numbers = {key: number for number, key in enumerate(shared)}

    def persistent_id(self, value: Any) -> int | None:
        return self._numbers.get(id(value))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Sequence[bytes]) -> None:
        super().__init__(file)
        self._shared = [cloudpickle.loads(content) for content in shared]

    def persistent_load(self, number: Any) -> Any:
        return self._shared[number]
