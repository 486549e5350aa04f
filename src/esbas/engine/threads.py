"""An engine of threads, for jobs that release Python's global lock, such as compiled runs."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from esbas.engine.protocol import GeneratorEngine, Job, JobContext, Outcome, Resources, run_job
from esbas.errors import EngineError


class Threads(GeneratorEngine):
    """Runs each job in a thread of this process.

    Running jobs are abandoned when the iteration is closed: a thread cannot be killed. The threads
    are daemons, so they do not keep the program from ending.
    """

    def outcomes(
        self,
        function: Callable[..., Any],
        waiting: deque[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
        stop: Callable[[], bool],
    ) -> Generator[Outcome, None, None]:
        closed = threading.Event()
        # Outcomes, and messages with the names of their jobs.
        events: queue.SimpleQueue[Outcome | tuple[str, Any]] = queue.SimpleQueue()
        running = 0

        def stopping() -> bool:
            return closed.is_set() or stop()

        def work(job: Job) -> None:
            def send(message: Any) -> None:
                events.put((job.name, message))

            problem = f"Job {job.name!r} must return or raise an Exception, but did neither."
            outcome = Outcome(name=job.name, error=EngineError(problem))
            try:
                outcome = run_job(function, job, JobContext(report=send, stopping=stopping))
            finally:  # also after SystemExit and the like, which end the thread
                events.put(outcome)

        try:
            while True:
                while waiting and running < resources.jobs and not stop():
                    threading.Thread(target=work, args=(waiting.popleft(),), daemon=True).start()
                    running += 1
                if not running:
                    return
                event = events.get()
                if isinstance(event, Outcome):
                    running -= 1
                    yield event
                else:
                    report(*event)
        finally:
            closed.set()
