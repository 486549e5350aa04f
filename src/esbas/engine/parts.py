"""Many independent parts of an experiment, some at a time. Finished parts are stored at once."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from esbas.engine.progress import Progress
from esbas.engine.protocol import Engine, Job, JobContext
from esbas.engine.registry import find_engine, read_resources
from esbas.errors import WorkerLostError

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
    engine: str | Engine | None = None,
    resources: Sequence[str] = (),
    note: Callable[[Finished], str] | None = None,
) -> Finished:
    """Run the parts that are not finished yet, and store each as soon as it is.

    Results do not depend on `jobs` or `engine`: a part takes its seed from its own name. On Ctrl-C
    no more parts are started, those that are running are abandoned, and KeyboardInterrupt is
    raised. If a part raises, no more parts are started, those that are running are finished and
    stored, and the exception is raised. In both cases the same call continues with what was stored.
    A part whose worker dies repeatedly does not stop the others: its error is printed, and raised
    at the end.

    Args:
        parts: by name, functions that return named arrays.
        load: returns a part that was stored earlier, or None (`Results.part`).
        store: stores a finished part (`Results.store_part`).
        jobs: how many parts run at the same time.
        description: of the progress line.
        processes: by default, run the parts in processes instead of threads: for parts in plain
            Python, which must be picklable.
        engine: where the parts run: a name of `ENGINES`, `module:Class` or an object; None:
            threads, or processes if `processes` is set and more than one part runs at the same
            time.
        resources: of each part on a cluster, such as "cpus=2"; see `read_resources`.
        note: returns what to show beside the progress, given what is finished so far.

    Returns:
        The arrays of all parts, in the order of `parts`.
    """
    finished: Finished = {}
    missing: list[Job] = []
    for name, part in parts.items():
        stored = load(name)
        if stored is None:
            missing.append(Job(name, (part,)))
        else:
            finished[name] = stored
    if engine is None:
        several = min(jobs, len(missing)) > 1
        engine = "processes" if processes and several else "threads"
    chosen = find_engine(engine)
    failures: list[Exception] = []
    lost: list[Exception] = []
    shares = read_resources(resources, jobs=jobs, engine=chosen)
    running = chosen.map(_run_part, missing, resources=shares, stop=lambda: bool(failures))
    with (
        Progress(description, total=len(parts), done=len(finished)) as progress,
        running as outcomes,
    ):
        for outcome in outcomes:
            if isinstance(outcome.error, WorkerLostError):
                lost.append(outcome.error)
                print(f"esbas: note: {outcome.error}", file=sys.stderr)
                continue
            if outcome.error is not None:
                failures.append(outcome.error)
                continue
            store(outcome.name, outcome.value)
            finished[outcome.name] = dict(outcome.value)
            progress.advance(note(finished) if note else "")
    for failure in (*failures, *lost):
        raise failure
    return {name: finished[name] for name in parts}


def _run_part(context: JobContext, part: Part) -> Arrays:
    del context
    return part()
