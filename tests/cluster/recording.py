"""An engine that records where jobs ran, and that lets tests interfere while they do."""

import time
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from esbas.engine import Job, Outcome, find_engine
from esbas.engine.protocol import ignore_report, never_stop


def recorded(context, function, name, gate, *arguments):
    """Run a job, once the gate exists; returns the node as well."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    if gate is not None:
        Path(f"{gate}.{name}").write_text(node)
        while not gate.exists():
            time.sleep(0.02)
    return node, function(context, *arguments)


class Recording:
    """The engine `ray`, as `cluster.recording:Recording`."""

    remote = True
    engine = ""  # set by the fixture
    nodes: ClassVar[dict[str, str]] = {}  # by job
    gate: Path | None = None  # jobs wait for this file
    on_message = None  # called with the name of a job and a message

    @classmethod
    def clear(cls, engine):
        cls.engine = engine
        cls.nodes = {}
        cls.gate = None
        cls.on_message = None

    @classmethod
    def waiting(cls):
        """The node of each job that has started to wait for the gate."""
        return {
            path.name.partition(".")[2]: path.read_text()
            for path in cls.gate.parent.glob(f"{cls.gate.name}.*")
        }

    def map(self, function, jobs, *, resources, report=ignore_report, stop=never_stop):
        return closing(self._outcomes(function, jobs, resources, report, stop))

    def _outcomes(self, function, jobs, resources, report, stop):
        def receive(name, message):
            report(name, message)
            if Recording.on_message is not None:
                Recording.on_message(name, message)

        wrapped = [
            Job(job.name, (function, job.name, Recording.gate, *job.arguments)) for job in jobs
        ]
        with find_engine(self.engine).map(
            recorded, wrapped, resources=resources, report=receive, stop=stop
        ) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    yield outcome
                    continue
                Recording.nodes[outcome.name], value = outcome.value
                yield Outcome(name=outcome.name, value=value)
