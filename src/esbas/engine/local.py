"""Many independent parts of an experiment on this machine, some at a time; whatever is finished is never lost."""

import multiprocessing
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import Any

from numpy.typing import NDArray

from esbas.engine.progress import Progress
from esbas.errors import require

Arrays = Mapping[str, NDArray[Any]]
Part = Callable[[], Arrays]
Finished = dict[str, dict[str, NDArray[Any]]]


def run_parts(
    parts: Mapping[str, Part],
    *,
    load: Callable[[str], dict[str, NDArray[Any]] | None],
    store: Callable[[str, Arrays], None],
    jobs: int,
    description: str,
    processes: bool = False,
    note: Callable[[Finished], str] | None = None,
) -> Finished:
    """Run the parts that are not finished yet, and store each as soon as it is.

    What comes out does not depend on `jobs`: a part takes its seed from its own name. On Ctrl-C no more parts are begun, those
    that are running are given up, and KeyboardInterrupt is raised. When a part raises, no more parts are begun, those that are
    running are finished and stored, and its exception is raised. Either way the same call continues with what was stored.

    Args:
        parts: by name, functions that return named arrays.
        load: gives a part that was stored earlier, or None (`Results.part`).
        store: keeps a finished part (`Results.store_part`).
        jobs: how many parts go at once.
        description: of the progress line.
        processes: run the parts in processes, not in threads: for parts in plain Python, which must be picklable.
        note: what to show beside the progress, from what is finished so far.

    Returns:
        The arrays of all parts, in the order of `parts`.
    """
    require(jobs >= 1, "jobs >= 1", jobs=jobs)
    finished: Finished = {name: stored for name in parts if (stored := load(name)) is not None}
    missing = [name for name in parts if name not in finished]
    jobs = min(jobs, len(missing))
    with _pool(jobs if processes else 0) as pool, Progress(description, total=len(parts), done=len(finished)) as progress:
        work = {name: partial(_elsewhere, pool, parts[name]) if pool else parts[name] for name in missing}
        with closing(_in_threads(work, jobs)) as outcomes:
            for name, arrays in outcomes:
                store(name, arrays)
                finished[name] = dict(arrays)
                progress.advance(note(finished) if note else "")
    return {name: finished[name] for name in parts}


def _in_threads(work: Mapping[str, Part], jobs: int) -> Generator[tuple[str, Arrays], None, None]:
    """Do the work in threads, and hand it to this one as it gets done. The threads do not keep the program from ending."""
    waiting, stopped = deque(work), threading.Event()
    outcomes: queue.SimpleQueue[tuple[str, Arrays] | Exception | None] = queue.SimpleQueue()

    def labour() -> None:
        while not stopped.is_set():
            try:
                name = waiting.popleft()
            except IndexError:
                break
            try:
                outcomes.put((name, work[name]()))
            except Exception as error:  # raised below, in the caller's thread
                stopped.set()
                outcomes.put(error)
        outcomes.put(None)

    for _ in range(jobs):
        threading.Thread(target=labour, daemon=True).start()
    running, failure = jobs, None
    try:
        while running:
            outcome = outcomes.get()
            if outcome is None:
                running -= 1
            elif isinstance(outcome, Exception):
                failure = failure or outcome
            else:
                yield outcome
    finally:
        stopped.set()
    if failure is not None:
        raise failure


def _pool(jobs: int) -> AbstractContextManager[ProcessPoolExecutor | None]:
    """Fresh processes, for a fork would copy the threads' locks; none for a single job."""
    if jobs <= 1:
        return nullcontext()
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; this one is told by its parent when to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _elsewhere(pool: ProcessPoolExecutor, part: Part) -> Arrays:
    return pool.submit(part).result()
