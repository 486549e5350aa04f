"""An engine that behaves as if its jobs ran on another machine, and loses one of them."""

import pickle
from contextlib import closing

from esbas.engine import JobContext, Outcome
from esbas.engine.protocol import ignore_report, never_stop, run_job


class LostMachine(BaseException):
    """The end of a machine."""


class Elsewhere:
    """Jobs and messages are pickled, one job at a time.

    Args:
        lost: after how many messages the machine of the first job is lost; None: never.
    """

    remote = True

    def __init__(self, lost=None):
        self.lost = lost
        self.attempts = []

    def map(self, function, jobs, *, resources, report=ignore_report, stop=never_stop):
        self.resources = resources
        return closing(self._outcomes(function, list(jobs), report, stop))

    def _outcomes(self, function, jobs, report, stop):
        while jobs:
            # the arguments are read again for each attempt
            job = pickle.loads(pickle.dumps(jobs[0]))
            messages = []
            self.attempts.append(messages)

            def send(message, name=job.name, messages=messages):
                messages.append(message)
                report(name, pickle.loads(pickle.dumps(message)))
                if self.lost is not None and self.lost(messages):
                    self.lost = None
                    raise LostMachine

            try:
                outcome = run_job(function, job, JobContext(send, stop))
            except LostMachine:
                continue
            yield Outcome(name=outcome.name, value=outcome.value, error=outcome.error)
            del jobs[0]
