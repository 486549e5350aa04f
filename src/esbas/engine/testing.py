"""A check of the contract of engines."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from esbas.engine.protocol import Engine, Job, JobContext, Outcome, Resources
from esbas.testing.contract import check_rules, expect

PATIENCE = 300.0  # seconds after which a job that is not stopped gives up


def check_engine(make_engine: Callable[[], Engine]) -> None:
    """Raise a ContractError unless the engine keeps the contract of `Engine`.

    The rules: each job yields one outcome under its name; results do not depend on how many jobs
    run at the same time; an error in a job is an outcome, and the other jobs continue; messages
    arrive in order and in the caller's thread, before the outcome; `stop` reaches running jobs and
    starts no more; the iteration can be closed early; jobs see the caller's `sys.path`.

    Args:
        make_engine: returns a new engine.
    """
    check_rules(type(make_engine()).__name__, _RULES, make_engine)


def _one_outcome_each(make_engine: Callable[[], Engine]) -> None:
    """Each job yields one outcome under its name, also if several run at the same time."""
    jobs = [Job(f"job {k}", (k,)) for k in range(7)]
    for count in (1, 3, 20):
        outcomes = _run(make_engine(), _square, jobs, count)
        names = sorted(outcome.name for outcome in outcomes)
        expected_names = [job.name for job in jobs]
        expect(names == expected_names, f"with jobs={count} the outcomes were named {names}")
        values = {outcome.name: outcome.value for outcome in outcomes}
        squares = {f"job {k}": k * k for k in range(7)}
        expect(values == squares, f"with jobs={count} the values were {values}")
    expect(_run(make_engine(), _square, [], 1) == [], "there were outcomes without a job")


def _errors_are_outcomes(make_engine: Callable[[], Engine]) -> None:
    """An error in a job is an outcome, and the other jobs continue."""
    jobs = [Job("good", (2,)), Job("bad", ("text",)), Job("also good", (3,))]
    outcomes = {outcome.name: outcome for outcome in _run(make_engine(), _square, jobs, 1)}
    expect(set(outcomes) == {"good", "bad", "also good"}, f"the outcomes were {sorted(outcomes)}")
    error = outcomes["bad"].error
    is_same = isinstance(error, ArithmeticError) and "a number" in str(error)
    expect(is_same, f"the error arrived as {error!r}")
    after = outcomes["also good"].value
    expect(after == 9, f"the job after the error returned {after!r}")


def _messages_arrive(make_engine: Callable[[], Engine]) -> None:
    """Messages arrive in order, in the caller's thread, and before the outcome of their job."""
    arrived: list[Any] = []
    threads = set()

    def receive(name: str, message: Any) -> None:
        arrived.append((name, message))
        threads.add(threading.get_ident())

    jobs = [Job("counter", (5,))]
    with make_engine().map(_count, jobs, resources=Resources(), report=receive) as outcomes:
        arrived.extend(outcome.name for outcome in outcomes)
    messages = [("counter", k) for k in range(5)]
    expect(arrived == [*messages, "counter"], f"what arrived was {arrived}")
    expect(threads == {threading.get_ident()}, "`report` was called in another thread")


def _stops(make_engine: Callable[[], Engine]) -> None:
    """`stop` reaches running jobs, whose outcomes are yielded, and no more jobs are started."""
    messages: list[str] = []
    jobs = [Job("first", ()), Job("second", ())]
    running = make_engine().map(
        _until_stopped,
        jobs,
        resources=Resources(jobs=1),
        report=lambda name, _: messages.append(name),
        stop=lambda: bool(messages),
    )
    with running as outcomes:
        ends = [(outcome.name, outcome.value) for outcome in outcomes]
    expect(ends == [("first", "stopped")], f"the outcomes were {ends}")


def _closes_early(make_engine: Callable[[], Engine]) -> None:
    """The iteration can be closed early."""
    start = time.monotonic()
    jobs = [Job("quick", (0,)), *(Job(f"slow {k}", (PATIENCE,)) for k in range(3))]
    with make_engine().map(_sleep, jobs, resources=Resources(jobs=2)) as outcomes:
        first = next(iter(outcomes))
    expect(first.name == "quick", f"the first outcome was {first}")
    expect(time.monotonic() - start < PATIENCE, "closing waited for the jobs")


def _same_path(make_engine: Callable[[], Engine]) -> None:
    """Jobs see the caller's `sys.path`."""
    (outcome,) = _run(make_engine(), _path, [Job("path")], 1)
    missing = [folder for folder in sys.path if folder not in outcome.value]
    expect(not missing, f"{missing} were missing")


def _run(
    engine: Engine, function: Callable[..., Any], jobs: list[Job], count: int
) -> list[Outcome]:
    with engine.map(function, jobs, resources=Resources(jobs=count)) as outcomes:
        return list(outcomes)


def _square(context: JobContext, number: Any) -> Any:
    del context
    if not isinstance(number, int):
        raise ArithmeticError("the argument is not a number")
    return number * number


def _count(context: JobContext, upto: int) -> None:
    for k in range(upto):
        context.report(k)


def _until_stopped(context: JobContext) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        context.report("running")
        if context.stopping():
            return "stopped"
        time.sleep(0.01)
    return "not stopped"


def _sleep(context: JobContext, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not context.stopping():
        time.sleep(0.01)


def _path(context: JobContext) -> list[str]:
    del context
    return list(sys.path)


_RULES = (
    _one_outcome_each,
    _errors_are_outcomes,
    _messages_arrive,
    _stops,
    _closes_early,
    _same_path,
)
