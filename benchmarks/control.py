"""The control benchmark: microseconds per environment step on each task, and what the whole protocol will take."""

import math
import time

from esbas.experiments.control.cells import build_run
from esbas.experiments.control.protocol import CONFIRMATORY, DEVELOPMENT, Protocol, Task, read_protocol
from esbas.experiments.control.setup import ALONE, FIXED, REPLAY_RATIO, SEARCH, SELECTOR, TUNED, Method, methods_of

BEGIN, END = 0.1, 0.16  # of the budget: learning has started, and updates cost the same until the end
HOURS = 5.0
"""On two cores, at most."""


def main() -> None:
    protocol, total = read_protocol(), 0.0
    for name in protocol.of_kind(CONFIRMATORY, DEVELOPMENT):
        total += _task(protocol.tasks[name], protocol)
    verdict = "ok" if total <= 2 * HOURS else "TOO LONG"
    print(f"predicted: {total:.1f} core-hours, {total / 2:.1f} hours on two cores, at most {HOURS} ({verdict})", flush=True)


def _task(task: Task, protocol: Protocol) -> float:
    """Print the speed on a task, and return its predicted core-hours."""
    methods = methods_of(task, protocol)
    everybody = _seconds_per_step(task, methods[f"{FIXED}:{task.portfolio.default}"])
    single = _seconds_per_step(task, methods[f"{ALONE}:{task.portfolio.default}"])
    count = len(task.portfolio.names)
    others = sum(_seconds_per_step(task, methods[name]) for name in (REPLAY_RATIO, TUNED) if name in methods)
    selectors = sum(method.family == SELECTOR for method in methods.values())
    searches = sum(method.family == SEARCH for method in methods.values())
    seconds = protocol.seeds * task.steps * (selectors * everybody + (count + searches) * single + others)
    speeds = f"{1e6 * everybody:5.0f} us per step, one alone {1e6 * single:5.0f}, others {1e6 * others:5.0f}"
    print(f"{task.name:20} {task.steps:>7,} steps, {count} members: {speeds}: {seconds / 3600:.2f} core-hours", flush=True)
    return seconds / 3600


def _seconds_per_step(task: Task, method: Method) -> float:
    run = build_run(task, method, 0)
    start, before = math.nan, 0
    for _ in run:
        if math.isnan(start) and run.steps >= BEGIN * task.steps:
            start, before = time.thread_time(), run.steps
        if run.steps >= END * task.steps and run.steps > before > 0:
            break
    run.env.close()
    return (time.thread_time() - start) / (run.steps - before)
