"""The connection to a Ray cluster.

ray is first imported here, because it reads environment variables when it is imported.
"""

import importlib
import logging
import os
import signal
import socket
import threading
from typing import Any

from esbas.engine.protocol import Resources
from esbas.errors import EngineError, MissingExtraError

CLIENT_ATTEMPTS = 3
PATIENCE = 20.0  # seconds for a connection
GIGABYTE = 10**9
_STATISTICS = "RAY_USAGE_STATS_ENABLED"
# With "0", the addresses of all nodes are 127.0.0.1. It is read when ray is imported.
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_CLIENT = "ray://"
# The address of each connection that `connect` made, by the id that Ray gives to it.
_connections: dict[str, str | None] = {}


def import_ray(address: str | None) -> Any:
    """Import the package ray.

    If no address is given, a cluster that it starts is not visible to other machines.
    """
    os.environ.setdefault(_STATISTICS, "0")
    if address is None:
        os.environ.setdefault(_LOOPBACK, "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        problem = f"--engine ray needs {error.name or 'ray'}, which is not installed"
        raise MissingExtraError(f"{problem}: pip install 'esbas[ray]'.") from error


def connect(address: str | None) -> Any:
    """Connect this process to the cluster, and return the package ray.

    Without an address, Ray is started on this machine. A connection that exists already is used:
    `ray.init` has many options. It lasts until `ray.shutdown()` or the end of the process, since
    starting Ray takes seconds.
    """
    ray = import_ray(address)
    if ray.is_initialized():
        # A connection that the user made with `ray.init` may have any address.
        former = _connections.get(ray.get_runtime_context().get_worker_id(), address)
        if former != address:
            here = "that of this machine"
            problem = f"A process uses one Ray cluster, but is connected to {former or here}"
            remedy = "call ray.shutdown() in between"
            raise EngineError(f"{problem} instead of {address or here}: {remedy}.")
        return ray
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _init(ray, address)
    except Exception as error:  # of many kinds: no cluster, another version of Ray or of Python
        raise _no_connection(address, error) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # ray.init replaces it
    _connections[ray.get_runtime_context().get_worker_id()] = address
    return ray


def _no_connection(address: str | None, error: Exception) -> EngineError:
    """Return the error for a cluster that cannot be used."""
    lines = str(error).strip().splitlines()
    reason = lines[-1].rstrip(".:") if lines else type(error).__name__
    if address is None:
        return EngineError(f"Ray must start on this machine, but {reason}: see its logs.")
    remedy = "start it with `ray start --head`, or check the address"
    return EngineError(f"Ray must be reachable at {address!r}, but {reason}: {remedy}.")


def _init(ray: Any, address: str | None) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options |= {"address": "local", "include_dashboard": False}
    else:
        _check_that_it_answers(address)
        options["address"] = address
    for attempt in range(1, CLIENT_ATTEMPTS + 1):
        try:
            ray.init(**options)
            return
        except ConnectionAbortedError:  # of ray://HOST:PORT: its server sometimes fails to fork
            ray.shutdown()
            if attempt == CLIENT_ATTEMPTS:
                raise


def _check_that_it_answers(address: str) -> None:
    """Raise a ConnectionError if nothing listens at the address. Ray would try for minutes."""
    if address.startswith(_CLIENT):
        found = address.removeprefix(_CLIENT)
    else:
        services = importlib.import_module("ray._private.services")
        # Finds "auto", and the address that 127.0.0.1 stands for.
        found = services.canonicalize_bootstrap_address(address)
    if found is None:
        raise ConnectionError("there is none")
    host, _, port = found.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(f"nothing answers at {found}") from error


def thread_limits(cpus: float) -> dict[str, str]:
    """Return environment variables that limit the threads of libraries to the CPUs of a job."""
    count = str(max(1, int(cpus)))
    names = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    )
    return dict.fromkeys(names, count)


def task_options(resources: Resources) -> dict[str, Any]:
    """Return the options of a Ray task that runs a job.

    Ray does not run a job again, because the engine decides about this.
    """
    options: dict[str, Any] = {
        "num_cpus": resources.cpus,
        "num_gpus": resources.gpus,
        "max_retries": 0,
        "scheduling_strategy": "SPREAD",
        "runtime_env": {"env_vars": thread_limits(resources.cpus)},
    }
    if resources.memory:
        options["memory"] = int(resources.memory * GIGABYTE)
    return options


def missing_resources(ray: Any, resources: Resources) -> str:
    """Return why no machine of the cluster can run a job, in words; "" if one can."""
    wanted = {"CPU": resources.cpus, "GPU": resources.gpus, "memory": resources.memory * GIGABYTE}
    most = dict.fromkeys(wanted, 0.0)
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        machine = {name: node["Resources"].get(name, 0.0) for name in wanted}
        if all(machine[name] >= amount for name, amount in wanted.items()):
            return ""
        for name in wanted:
            most[name] = max(most[name], machine[name])
    asked = f"cpus={resources.cpus:g} gpus={resources.gpus:g} memory={resources.memory:g}"
    has = f"{most['CPU']:g} CPUs, {most['GPU']:g} GPUs and {most['memory'] / GIGABYTE:.1f} GB"
    problem = f"A job must fit on a machine, but it asks for {asked}"
    return f"{problem}, and the largest machines have {has}"
