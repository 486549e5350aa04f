"""The simplest engine: one job after the other, in the caller's thread."""

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from esbas.engine.protocol import GeneratorEngine, Job, JobContext, Outcome, Resources, run_job


class Sequential(GeneratorEngine):
    """Runs one job at a time, whatever `resources` allow. Ctrl-C interrupts the job itself."""

    def outcomes(
        self,
        function: Callable[..., Any],
        waiting: deque[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
        stop: Callable[[], bool],
    ) -> Generator[Outcome, None, None]:
        del resources
        for job in waiting:
            if stop():
                return
            context = JobContext(report=partial(report, job.name), stopping=stop)
            yield run_job(function, job, context)
