"""Engines by name, and the resources of their jobs."""

import math
from collections.abc import Callable, Sequence

from esbas._internal.registry import Registry
from esbas._internal.schema import short
from esbas.engine.protocol import Engine, Resources
from esbas.errors import EsbasError, InvalidValueError, describe, unknown

ENGINES: Registry[Callable[[], Engine]] = Registry("engine")
"""The engines that `find_engine` knows; `ENGINES.register("name")` adds one."""
ENGINES.add("sequential", "esbas.engine.sequential:Sequential")
ENGINES.add("threads", "esbas.engine.threads:Threads")
ENGINES.add("processes", "esbas.engine.processes:Processes")
ENGINES.add("ray", "esbas.engine.ray_engine:RayEngine")
_CLUSTER = "ray:"  # followed by an address


def find_engine(engine: str | Engine) -> Engine:
    """Return the engine with this name, a new instance of `module:Class`, or the given engine.

    `ray:auto` (or just `auto`), `ray:HOST:PORT` and `ray://HOST:PORT` are Ray clusters that are
    running already.
    """
    if engine == "auto":
        engine = f"{_CLUSTER}auto"
    if isinstance(engine, str) and engine.startswith(_CLUSTER):
        from esbas.engine.ray_engine import RayEngine  # needs an extra

        is_url = engine.startswith(f"{_CLUSTER}//")
        return RayEngine(engine if is_url else engine.removeprefix(_CLUSTER))
    found = _created(engine) if isinstance(engine, str) else engine
    if not callable(getattr(found, "map", None)):
        raise InvalidValueError(
            f"An engine must have a method `map`, but {short(engine)} has none."
        )
    return found


def _created(name: str) -> Engine:
    make = ENGINES.find(name)
    try:
        return make()
    except EsbasError:
        raise
    except Exception as error:  # code of the user
        raise InvalidValueError(
            f"The engine {name!r} must be created without arguments, but {describe(error)}: fix it."
        ) from error


def is_remote(engine: Engine) -> bool:
    """Return whether the jobs of this engine may run on other machines."""
    return bool(getattr(engine, "remote", False))


def read_resources(words: Sequence[str], *, jobs: int, engine: Engine) -> Resources:
    """Return what jobs may use, from words such as "cpus=2", "gpus=0.5" and "memory=4"."""
    if words and not is_remote(engine):
        problem = f"`resources` are for jobs on a cluster, but got {' '.join(words)}"
        raise InvalidValueError(f"{problem}: remove them, or use --engine ray.")
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
            raise InvalidValueError(
                f"`resources` must be numbers such as {name}=2, but got {word!r}."
            )
    return Resources(jobs=jobs, **numbers)
