"""Engines by name."""

from collections.abc import Callable

from esbas.engine.protocol import Engine
from esbas.errors import require
from esbas.registry import Registry

ENGINES: Registry[Callable[[], Engine]] = Registry("engine")
"""The engines that `find_engine` knows; `ENGINES.register("name")` adds one."""
ENGINES.add("sequential", "esbas.engine.sequential:Sequential")
ENGINES.add("threads", "esbas.engine.threads:Threads")
ENGINES.add("processes", "esbas.engine.processes:Processes")


def find_engine(engine: str | Engine) -> Engine:
    """The engine with this name, a new instance of `module:Class`, or the given engine itself."""
    found = ENGINES.find(engine)() if isinstance(engine, str) else engine
    require(callable(getattr(found, "map", None)), "an engine has a method `map`", engine=engine)
    return found
