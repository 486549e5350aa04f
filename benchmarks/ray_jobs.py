"""Jobs on Ray against jobs in local processes: throughput, cost of short jobs, time to start.

The cluster has two nodes with one CPU each, on this machine: Ray's own processes share the cores
with the jobs. The time of local processes includes their start; Ray's workers are running when the
time is taken.
"""

import os
import time
from typing import Any

from esbas.engine import Job, JobContext, Resources, find_engine

SECONDS = 5.0
LONG_JOBS = 6
ROUNDS = 2
SHORT_JOBS = 200


def busy(context: JobContext, loops: int) -> int:
    del context
    return _work(loops)


def _work(loops: int) -> int:
    total = 0
    for k in range(loops):
        total += k & 7
    return total


def main() -> None:
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # nodes talk over the loopback device
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    start = time.perf_counter()
    options: dict[str, Any] = {
        "num_cpus": 1,
        "object_store_memory": 200 * 2**20,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=options)
    try:
        cluster.add_node(**options)
        print(f"a cluster of two nodes starts in {time.perf_counter() - start:.1f} s", flush=True)
        on_ray = f"ray:{cluster.address}"
        print(f"connecting, and the first two jobs: {_seconds(on_ray, 2, 0):.1f} s", flush=True)
        for engine in ("processes", on_ray):
            name = engine.partition(":")[0]
            print(f"{name}: {_per_job(engine):.1f} ms per job that does nothing", flush=True)
        loops = _loops()
        local = 0.0
        remote = 0.0
        for _ in range(ROUNDS):  # in turn, because other programs may use the machine, too
            local += _seconds("processes", LONG_JOBS, loops)
            remote += _seconds(on_ray, LONG_JOBS, loops)
        print(
            f"{ROUNDS} times {LONG_JOBS} jobs of about {SECONDS:g} s, two at a time:"
            f" processes {local:.1f} s, ray {remote:.1f} s;"
            f" throughput ratio {local / remote:.3f}",
            flush=True,
        )
    finally:
        ray.shutdown()
        cluster.shutdown()


def _per_job(engine: str) -> float:
    """Return milliseconds per job after the first, one at a time."""
    times: list[float] = []
    jobs = _jobs(SHORT_JOBS + 1, 0)
    with find_engine(engine).map(busy, jobs, resources=Resources()) as outcomes:
        for outcome in outcomes:
            outcome.result()
            times.append(time.perf_counter())
    return 1000 * (times[-1] - times[0]) / SHORT_JOBS


def _loops() -> int:
    """Return how many loops take about SECONDS."""
    tried = 20_000_000
    start = time.perf_counter()
    _work(tried)
    return int(tried * SECONDS / (time.perf_counter() - start))


def _seconds(engine: str, count: int, loops: int) -> float:
    jobs = _jobs(count, loops)
    start = time.perf_counter()
    with find_engine(engine).map(busy, jobs, resources=Resources(jobs=2)) as outcomes:
        for outcome in outcomes:
            outcome.result()
    return time.perf_counter() - start


def _jobs(count: int, loops: int) -> list[Job]:
    return [Job(str(k), (loops,)) for k in range(count)]


if __name__ == "__main__":
    main()
