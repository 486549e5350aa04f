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

    Shared values are found by identity among the arguments of jobs, and among those of a `functools.partial` in them.

    Args:
        function: that all jobs call.
        jobs: all jobs that may be packed.
        put: stores bytes in the cluster and returns a reference.
    """

    def __init__(self, function: Callable[..., Any], jobs: Iterable[Job], put: Callable[[bytes], Any]) -> None:
        self._function, self._put = function, put
        values = {id(value): value for job in jobs for value in _parts(job.arguments)}  # keeps them, so that ids stay theirs
        counts = Counter(key for job in jobs for key in {id(value) for value in _parts(job.arguments)})
        self._candidates = {key: value for key, value in values.items() if counts[key] > 1}
        self._references: dict[int, Any] = {}  # by the id of the value
        self._small: set[int] = set()

    def pack(self, job: Job) -> tuple[bytes, list[Any]]:
        """The job, and references to the shared values that it needs. Whatever pickling raises is raised."""
        shared = list(dict.fromkeys(id(value) for value in _parts(job.arguments) if self._is_shared(id(value))))
        content = io.BytesIO()
        _Pickler(content, shared).dump((self._function, job.arguments))  # type: ignore[no-untyped-call]
        return content.getvalue(), [self._references[key] for key in shared]

    def _is_shared(self, key: int) -> bool:
        if key in self._candidates and key not in self._references and key not in self._small:
            packed = cloudpickle.dumps(self._candidates[key])
            if len(packed) < LARGE:
                self._small.add(key)
            else:
                self._references[key] = self._put(packed)
        return key in self._references


def unpack_job(content: bytes, shared: Sequence[bytes]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and the arguments. Each job gets its own copy of shared values, which it may change."""
    function, arguments = _Unpickler(io.BytesIO(content), shared).load()
    return function, arguments


def _parts(arguments: Iterable[Any]) -> Iterator[Any]:
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
