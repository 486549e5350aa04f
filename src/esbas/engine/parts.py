"""Many independent parts of an experiment, some at a time. Finished parts are stored at once."""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from esbas.engine.progress import Progress
from esbas.engine.protocol import Engine, Job, JobContext, Resources
from esbas.engine.registry import find_engine

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
    note: Callable[[Finished], str] | None = None,
) -> Finished:
    """Run the parts that are not finished yet, and store each as soon as it is.

    Results do not depend on `jobs` or `engine`: a part takes its seed from its own name. On Ctrl-C no more parts are started,
    those that are running are abandoned, and KeyboardInterrupt is raised. If a part raises, no more parts are started, those that
    are running are finished and stored, and the exception is raised. In both cases the same call continues with what was stored.

    Args:
        parts: by name, functions that return named arrays.
        load: returns a part that was stored earlier, or None (`Results.part`).
        store: stores a finished part (`Results.store_part`).
        jobs: how many parts run at the same time.
        description: of the progress line.
        processes: by default, run the parts in processes instead of threads: for parts in plain Python, which must be picklable.
        engine: where the parts run: a name of `ENGINES`, `module:Class` or an object; None: threads, or processes if
            `processes` is set and more than one part runs at the same time.
        note: returns what to show beside the progress, given what is finished so far.

    Returns:
        The arrays of all parts, in the order of `parts`.
    """
    resources = Resources(jobs=jobs)
    finished: Finished = {name: stored for name in parts if (stored := load(name)) is not None}
    missing = [Job(name, (part,)) for name, part in parts.items() if name not in finished]
    chosen = engine or ("processes" if processes and min(jobs, len(missing)) > 1 else "threads")
    failures: list[Exception] = []
    running = find_engine(chosen).map(_run_part, missing, resources=resources, stop=lambda: bool(failures))
    with Progress(description, total=len(parts), done=len(finished)) as progress, running as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                failures.append(outcome.error)
                continue
            store(outcome.name, outcome.value)
            finished[outcome.name] = dict(outcome.value)
            progress.advance(note(finished) if note else "")
    if failures:
        raise failures[0]
    return {name: finished[name] for name in parts}


def _run_part(context: JobContext, part: Part) -> Arrays:
    del context
    return part()
