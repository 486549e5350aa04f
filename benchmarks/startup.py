"""How long a command takes to say something, and what the first training compiles.

Commands run in new processes. After an installation, networks are not compiled yet, and Python's
bytecode may not be either.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPEATS = 3
FIRST_LINE = 2.0  # seconds, at most
COMPILING = 8.0  # seconds of CPU time, at most
STEPS = "2000"
TRAININGS = [
    ["CartPole-v1", "--steps", STEPS],
    ["CartPole-v1", "--steps", STEPS, "--seeds", "0", "1", "--jobs", "2"],
    ["FrozenLake-v1", "--steps", STEPS],  # tables: nothing is compiled
    ["FrozenLake-v1", "--steps", STEPS, "--learners", "dqn"],
]


class Cost(NamedTuple):
    """What a command took, in seconds."""

    first_line: float
    cpu: float  # of all its processes


def main() -> None:
    for words in TRAININGS:
        cold: list[Cost] = []  # networks are not compiled
        warm: list[Cost] = []  # networks are compiled
        fresh: list[Cost] = []  # networks are compiled, and bytecode is not
        for _ in range(REPEATS):
            with tempfile.TemporaryDirectory() as made:
                folder = Path(made)
                cache = folder / "cache"
                cold.append(_train(words, folder / "cold", cache))
                warm.append(_train(words, folder / "warm", cache))
                bytecode = folder / "bytecode"
                fresh.append(_train(words, folder / "fresh", cache, bytecode=bytecode))
        print(f"esbas train {' '.join(words)}")
        _print_first_line("networks not compiled", cold)
        _print_first_line("bytecode not compiled", fresh)
        _print_first_line("everything compiled", warm)
        compiling = max(0.0, _median_cpu(cold) - _median_cpu(warm))
        print(f"  compiling networks: {compiling:.1f} s of CPU time", end=" ")
        print(f"(at most {COMPILING:g}: {_verdict(compiling <= COMPILING)})", flush=True)


def _train(words: list[str], out: Path, cache: Path, *, bytecode: Path | None = None) -> Cost:
    """Run a training.

    Args:
        words: the options.
        out: the folder of the training.
        cache: where compiled networks are.
        bytecode: where Python's bytecode is; None: where it usually is.
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    if bytecode is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    command = [sys.executable, "-m", "esbas", "train", *words, "--out", str(out)]
    before = _cpu_of_children()
    start = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        first_line = time.perf_counter() - start
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"`{' '.join(command)}` failed with exit code {process.returncode}.")
    return Cost(first_line, _cpu_of_children() - before)


def _cpu_of_children() -> float:
    """Return the CPU time of all processes that have ended, and of those that they started."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def _median_cpu(costs: list[Cost]) -> float:
    return statistics.median(cost.cpu for cost in costs)


def _print_first_line(state: str, costs: list[Cost]) -> None:
    longest = max(cost.first_line for cost in costs)
    verdict = _verdict(longest <= FIRST_LINE)
    print(f"  first line, {state}: {longest:.2f} s (at most {FIRST_LINE:g}: {verdict})", flush=True)


def _verdict(met: bool) -> str:
    return "met" if met else "missed"
