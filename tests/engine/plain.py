"""An engine outside the package: one job after the other."""

from contextlib import closing
from functools import partial

from esbas.engine import JobContext
from esbas.engine.protocol import ignore_report, never_stop, run_job

started: list[str] = []


class Plain:
    def map(self, function, jobs, *, resources, report=ignore_report, stop=never_stop):
        return closing(self._outcomes(function, list(jobs), report, stop))

    def _outcomes(self, function, jobs, report, stop):
        for job in jobs:
            if stop():
                return
            started.append(job.name)
            yield run_job(function, job, JobContext(partial(report, job.name), stop))
