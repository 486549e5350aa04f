"""Nanoseconds per step of the fruit grid, SSBAS over four learners, in three loops.

They are the compiled run, a C loop and the Python loop. The C loop (fruit_grid.c) does the same
work from the same random numbers. It is built twice: as fast as the compiler can make it, for the
clock, and with every rounding where the source has it, to check that both give the same run. All
are timed in turn, several times, by the CPU time they use; the fastest round counts.
"""

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.experiments.envs import FruitMap
from esbas.experiments.gridworld.setup import HORIZON, RATES, XI, Setup
from esbas.experiments.gridworld.sweep import compiled_run, ordinary_run
from esbas.experiments.kernels.fruit_grid import random, whole_runs
from esbas.experiments.kernels.fruit_grid.whole_runs import Counters

FLAGS = ("-O3", "-march=native")
ROUNDS = 8
Run = Callable[[int], Counters]


def main() -> None:
    setup = Setup(grid=FruitMap(), gamma=0.9, epsilon=0.01, episodes=100_000)
    short = Setup(grid=FruitMap(), gamma=0.9, epsilon=0.01, episodes=100)

    def compiled(run: int) -> Counters:
        return compiled_run(setup, "ssbas", seed=0, run=run)

    def python(run: int) -> Counters:
        return ordinary_run(short, "ssbas", seed=0, run=run)

    loops: dict[str, Run] = {"compiled run": compiled, "Python loop": python}
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("gcc"):
            loops["C loop"] = c_loop(setup, Path(folder) / "fast.so")
            exact = c_loop(setup, Path(folder) / "exact.so", "-ffp-contract=off")
            pairs = zip(compiled(0), exact(0), strict=True)
            same = all(np.array_equal(one, other) for one, other in pairs)
            print(
                f"compiled run and C loop give {'identical' if same else 'DIFFERENT'} counters"
                " from the same random numbers"
            )
        else:
            print("no gcc here: the C loop is left out")
        for loop in loops.values():
            loop(0)  # compile and warm up
        cost = dict.fromkeys(loops, np.inf)
        for run in range(ROUNDS):
            for name, loop in loops.items():
                cost[name] = min(cost[name], nanoseconds_per_step(loop, run))
    own = cost["compiled run"]
    for name, best in cost.items():
        print(f"{name:<13} {best:10.1f} ns per step {best / own:10.2f} times the compiled run")
    if "C loop" in cost:
        print(f"compiled run / C loop = {own / cost['C loop']:.2f} (at most 1.2 wanted)")
    print(f"Python loop / compiled run = {cost['Python loop'] / own:.0f} (at least 300 wanted)")


def nanoseconds_per_step(loop: Run, run: int) -> float:
    """Return the CPU time of a run over its steps."""
    start = time.thread_time_ns()
    transitions = loop(run).transitions.sum()
    return float((time.thread_time_ns() - start) / transitions)


def c_loop(setup: Setup, library: Path, *flags: str) -> Run:
    """Build the C loop. Return it as a function of the number of the run."""
    source = Path(__file__).with_suffix(".c")
    subprocess.run(
        ["gcc", *FLAGS, *flags, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True
    )
    function = ctypes.CDLL(str(library)).whole_run
    task = whole_runs.grid_tables(setup.grid)
    edges = setup.edges()
    rates = np.array(RATES)
    bins = len(edges)

    def run(number: int) -> Counters:
        seed = np.array(random.stream(0, "gridworld", number), np.uint64)
        counters = Counters(
            transitions=np.zeros(bins, np.int64),
            objective=np.zeros(bins, np.int64),
            selections=np.zeros((bins, len(RATES)), np.int64),
        )
        function(
            _pointer(seed),
            _pointer(task.following),
            _pointer(task.fruits),
            ctypes.c_int64(len(task.following) // 4),
            _pointer(task.starts),
            ctypes.c_int64(len(task.starts)),
            _pointer(rates),
            ctypes.c_double(setup.gamma),
            ctypes.c_double(setup.epsilon),
            ctypes.c_double(HORIZON),
            ctypes.c_double(XI),
            _pointer(edges),
            ctypes.c_int64(bins),
            _pointer(random.WIDTH),
            _pointer(random.INSIDE),
            _pointer(random.DENSITY),
            _pointer(counters.transitions),
            _pointer(counters.objective),
            _pointer(counters.selections),
        )
        return counters

    return run


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


if __name__ == "__main__":
    main()
