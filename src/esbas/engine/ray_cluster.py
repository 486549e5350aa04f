"""The connection to a Ray cluster. ray is first imported here, because it reads settings from the environment then."""

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
_NO_STATISTICS = {"RAY_USAGE_STATS_ENABLED": "0"}
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: the addresses of all nodes are 127.0.0.1; read when ray is imported
_CLIENT = "ray://"
_connections: dict[str, str | None] = {}  # the address of each connection that `connect` made, by the id that Ray gives to it


def import_ray(address: str | None) -> Any:
    """The package ray. If no cluster is named, a cluster that it starts is not visible to other machines."""
    for name, value in (_NO_STATISTICS | ({_LOOPBACK: "0"} if address is None else {})).items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        message = f"--engine ray needs {error.name or 'ray'}, which is not installed"
        raise MissingExtraError(f"{message}: pip install 'esbas[ray]'") from error


def connect(address: str | None) -> Any:
    """Connect this process to the cluster, or start Ray on this machine if there is no address. Returns the package ray.

    A connection that exists already is used: `ray.init` has many options. It lasts until `ray.shutdown()` or the end of the
    process, since starting Ray takes seconds.
    """
    ray = import_ray(address)
    if ray.is_initialized():
        former = _connections.get(ray.get_runtime_context().get_worker_id(), address)  # one of `ray.init` may be any
        if former != address:
            message = f"a process uses one Ray cluster, but is connected to {former or 'that of this machine'}"
            raise EngineError(f"{message} instead of {address or 'that of this machine'}: call ray.shutdown() in between")
        return ray
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _init(ray, address)
    except Exception as error:  # of many kinds: no cluster, another version of Ray or of Python
        where = "start on this machine" if address is None else f"be reachable at {address!r}"
        *_, reason = str(error).strip().splitlines() or [type(error).__name__]
        remedy = "see its logs" if address is None else "start it with `ray start --head`, or check the address"
        raise EngineError(f"Ray must {where}, but {reason.rstrip('.:')}: {remedy}") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # ray.init replaces it
    _connections[ray.get_runtime_context().get_worker_id()] = address
    return ray


def _init(ray: Any, address: str | None) -> None:
    if address is not None:
        _check_that_somebody_answers(address)
    where: dict[str, Any] = {"address": "local", "include_dashboard": False} if address is None else {"address": address}
    for left in reversed(range(CLIENT_ATTEMPTS)):
        try:
            ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
            return
        except ConnectionAbortedError:  # of ray://HOST:PORT: its server sometimes fails to fork
            ray.shutdown()
            if not left:
                raise


def _check_that_somebody_answers(address: str) -> None:
    """Ray itself would try for minutes."""
    if address.startswith(_CLIENT):
        place = address.removeprefix(_CLIENT)
    else:
        services = importlib.import_module("ray._private.services")
        place = services.canonicalize_bootstrap_address(address)  # finds "auto", and the address that 127.0.0.1 stands for
    if place is None:
        raise ConnectionError("there is none")
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(f"nobody answers at {place}") from error


def thread_limits(cpus: float) -> dict[str, str]:
    """Environment variables that keep libraries from using more threads than the CPUs of a job."""
    count = str(max(1, int(cpus)))
    names = "OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM"
    return {f"{name}_{'THREADS' if name.startswith('VECLIB') else 'NUM_THREADS'}": count for name in names}


def task_options(resources: Resources) -> dict[str, Any]:
    """The options of a Ray task that runs a job. The engine itself decides about running a job again."""
    options: dict[str, Any] = {
        "num_cpus": resources.cpus,
        "num_gpus": resources.gpus,
        "max_retries": 0,
        "scheduling_strategy": "SPREAD",
        "runtime_env": {"env_vars": thread_limits(resources.cpus)},
    }
    return options | ({"memory": int(resources.memory * GIGABYTE)} if resources.memory else {})


def missing_resources(ray: Any, resources: Resources) -> str:
    """Why no machine of the cluster can run a job, in words; "" if one can."""
    wanted = {"CPU": resources.cpus, "GPU": resources.gpus, "memory": resources.memory * GIGABYTE}
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if any(all(machine.get(name, 0) >= amount for name, amount in wanted.items()) for machine in machines):
        return ""
    most = {name: max((machine.get(name, 0) for machine in machines), default=0) for name in wanted}
    has = f"{most['CPU']:g} CPUs, {most['GPU']:g} GPUs and {most['memory'] / GIGABYTE:.1f} GB"
    asked = f"cpus={resources.cpus:g} gpus={resources.gpus:g} memory={resources.memory:g}"
    return f"a job must fit on a machine, but it asks for {asked}, and the largest machines have {has}"
