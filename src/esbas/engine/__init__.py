"""Where jobs run: in turn, in threads, in processes, on a Ray cluster, or on another engine."""

from esbas.engine.parts import Finished, run_parts
from esbas.engine.protocol import Engine, Job, JobContext, Outcome, Resources
from esbas.engine.registry import ENGINES, find_engine, is_remote, read_resources
from esbas.engine.testing import check_engine

__all__ = [
    "ENGINES",
    "Engine",
    "Finished",
    "Job",
    "JobContext",
    "Outcome",
    "Resources",
    "check_engine",
    "find_engine",
    "is_remote",
    "read_resources",
    "run_parts",
]
