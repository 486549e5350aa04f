"""The simplest engine: one job after the other, in the caller's thread."""

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from functools import partial
from typing import Any

from esbas.engine.protocol import Job, JobContext, Outcome, Resources, checked_jobs, ignore_report, never_stop, run_job


class Sequential:
    """Runs one job at a time, whatever `resources` allow. A Ctrl-C interrupts the job itself."""

    def map(
        self,
        function: Callable[..., Any],
        jobs: Iterable[Job],
        *,
        resources: Resources,
        report: Callable[[str, Any], None] = ignore_report,
        stop: Callable[[], bool] = never_stop,
    ) -> closing[Generator[Outcome, None, None]]:
        del resources
        return closing(_outcomes(function, checked_jobs(jobs), report, stop))


def _outcomes(
    function: Callable[..., Any], jobs: list[Job], report: Callable[[str, Any], None], stop: Callable[[], bool]
) -> Generator[Outcome, None, None]:
    for job in jobs:
        if stop():
            return
        yield run_job(function, job, JobContext(partial(report, job.name), stop))
