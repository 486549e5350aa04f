"""Engines by name, and the resources of their jobs."""

import math
from collections.abc import Callable, Sequence

from esbas.engine.protocol import Engine, Resources
from esbas.errors import InvalidValueError, require, unknown
from esbas.registry import Registry

ENGINES: Registry[Callable[[], Engine]] = Registry("engine")
"""The engines that `find_engine` knows; `ENGINES.register("name")` adds one."""
ENGINES.add("sequential", "esbas.engine.sequential:Sequential")
ENGINES.add("threads", "esbas.engine.threads:Threads")
ENGINES.add("processes", "esbas.engine.processes:Processes")
ENGINES.add("ray", "esbas.engine.ray_engine:RayEngine")
_CLUSTER = "ray:"  # followed by an address


def find_engine(engine: str | Engine) -> Engine:
    """The engine with this name, a new instance of `module:Class`, or the given engine itself.

    `ray:auto` (or just `auto`), `ray:HOST:PORT` and `ray://HOST:PORT` are Ray clusters that are running already.
    """
    engine = f"{_CLUSTER}auto" if engine == "auto" else engine
    if isinstance(engine, str) and engine.startswith(_CLUSTER):
        from esbas.engine.ray_engine import RayEngine  # needs an extra

        return RayEngine(engine if engine.startswith(f"{_CLUSTER}//") else engine.removeprefix(_CLUSTER))
    found = ENGINES.find(engine)() if isinstance(engine, str) else engine
    require(callable(getattr(found, "map", None)), "an engine has a method `map`", engine=engine)
    return found


def is_remote(engine: Engine) -> bool:
    """Whether the jobs of this engine may run on other machines."""
    return bool(getattr(engine, "remote", False))


def read_resources(words: Sequence[str], *, jobs: int, engine: Engine) -> Resources:
    """What jobs may use, from words such as "cpus=2", "gpus=0.5" and "memory=4"."""
    rule, remedy = "resources are those of jobs on a cluster", "remove them, or use --engine ray"
    require(not words or is_remote(engine), rule, remedy, resources=words)
    numbers: dict[str, float] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in ("cpus", "gpus", "memory"):
            raise unknown("resource", name, ["cpus", "gpus", "memory"])
        try:
            numbers[name] = float(text)
        except ValueError:
            numbers[name] = math.nan
        if not math.isfinite(numbers[name]):
            raise InvalidValueError(f"a resource must be a number such as {name}=2, but got {word!r}")
    return Resources(jobs=jobs, **numbers)
