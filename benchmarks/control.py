"""The control benchmark: microseconds per environment step, and what the whole protocol takes."""

import math
import time

from esbas.experiments.control.cells import build_run
from esbas.experiments.control.protocol import (
    CONFIRMATORY,
    DEVELOPMENT,
    Protocol,
    Task,
    read_protocol,
)
from esbas.experiments.control.setup import (
    ALONE,
    FIXED,
    REPLAY_RATIO,
    SEARCH,
    SELECTOR,
    TUNED,
    Method,
    methods_of,
)

# The measured part of the budget: learning has started, and updates cost the same until the end.
BEGIN = 0.1
END = 0.16
HOURS = 5.0
"""On two cores, at most."""


def main() -> None:
    protocol = read_protocol()
    total = 0.0
    for name in protocol.of_kind(CONFIRMATORY, DEVELOPMENT):
        total += _task(protocol.tasks[name], protocol)
    verdict = "ok" if total <= 2 * HOURS else "TOO LONG"
    print(
        f"predicted: {total:.1f} core-hours, {total / 2:.1f} hours on two cores,"
        f" at most {HOURS} ({verdict})",
        flush=True,
    )


def _task(task: Task, protocol: Protocol) -> float:
    """Print the speed on a task, and return its predicted core-hours."""
    methods = methods_of(task, protocol)
    everyone = _seconds_per_step(task, methods[f"{FIXED}:{task.portfolio.default}"])
    single = _seconds_per_step(task, methods[f"{ALONE}:{task.portfolio.default}"])
    others = 0.0
    for name in (REPLAY_RATIO, TUNED):
        if name in methods:
            others += _seconds_per_step(task, methods[name])
    count = len(task.portfolio.names)
    selectors = sum(method.family == SELECTOR for method in methods.values())
    searches = sum(method.family == SEARCH for method in methods.values())
    seconds_per_step = selectors * everyone + (count + searches) * single + others
    hours = protocol.seeds * task.steps * seconds_per_step / 3600
    print(
        f"{task.name:20} {task.steps:>7,} steps, {count} learners: {1e6 * everyone:5.0f} us per"
        f" step, one alone {1e6 * single:5.0f}, others {1e6 * others:5.0f}: {hours:.2f} core-hours",
        flush=True,
    )
    return hours


def _seconds_per_step(task: Task, method: Method) -> float:
    run = build_run(task, method, 0)
    start = math.nan
    before = 0
    for _ in run:
        if math.isnan(start) and run.steps >= BEGIN * task.steps:
            start = time.thread_time()
            before = run.steps
        if run.steps >= END * task.steps and run.steps > before > 0:
            break
    run.env.close()
    return (time.thread_time() - start) / (run.steps - before)
