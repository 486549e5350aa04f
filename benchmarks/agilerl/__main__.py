"""Measure the population on tasks of the control benchmark.

Call it as `.venv-agilerl/bin/python -m benchmarks.agilerl --help`.
"""

import argparse
import os
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.agilerl.population import CountedEnv, Evolution, GreedyPolicy
from esbas.errors import EsbasError, InvalidValueError, unknown
from esbas.experiments.control.cells import binned_means, final_score
from esbas.experiments.control.external import facts, read_runs, write_runs
from esbas.experiments.control.protocol import Protocol, Task, read_protocol
from esbas.experiments.control.sweep import seed_of
from esbas.training import make_env

METHOD = "agilerl"
TASKS = ("LunarLander", "Breakout", "CartPole")
# AgileRL draws mutations from sets, whose order depends on the hash seed.
SETTINGS = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}


def run_one(task: Task, protocol: Protocol, seed: int) -> dict[str, Any]:
    """Return one run, as `esbas.experiments.control.external` stores it."""
    begin = time.thread_time()
    (learner,) = task.portfolio.recipe([task.portfolio.default]).learners
    env = CountedEnv(make_env(task.env, wrappers=task.wrappers), seed)
    buffer_size = int(task.portfolio.replay["buffer_size"])
    evolution = Evolution(
        env, learner.options, buffer_size=buffer_size, steps=task.steps, seed=seed
    )
    elite = evolution.run()
    cpu = time.thread_time() - begin
    final = final_score(env.env, GreedyPolicy(elite), episodes=task.final_episodes, seed=seed)
    env.close()
    curve = binned_means(
        np.array(env.starts), np.array(env.returns), steps=task.steps, bins=protocol.bins
    )
    return {
        "curve": curve.tolist(),
        "final": final,
        "steps": env.steps,
        "episodes": len(env.returns),
        "cpu": cpu,
    }


def measure(task: Task, protocol: Protocol, path: Path, *, seed: int, seeds: int) -> None:
    """Add the runs that the file does not have yet, one after another."""
    known = facts(task, protocol, seed)
    runs = read_runs(path, known, missing_ok=True)
    for number in range(len(runs), seeds):
        run = run_one(task, protocol, seed_of(seed, task.name, number))
        runs.append(run)
        write_runs(path, METHOD, known, runs)
        seconds = run["cpu"]
        print(
            f"{task.name}: run {number + 1} of {seeds}, {seconds:.0f} s,"
            f" {1e6 * seconds / run['steps']:.0f} us per step",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure AgileRL's evolutionary DQNs on tasks of `esbas reproduce control`."
    )
    parser.add_argument(
        "--tasks", nargs="+", default=TASKS, help="by name; their learners must be DQNs"
    )
    parser.add_argument(
        "--seeds", type=int, default=0, help="runs of each task; 0: those of the protocol"
    )
    parser.add_argument("--seed", type=int, default=0, help="as in `esbas reproduce control`")
    parser.add_argument(
        "--steps", type=int, default=0, help="a shorter budget, to try it; 0: that of the protocol"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("esbas-agilerl"), help="folder of the files TASK.json"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of packages that AgileRL imports
    torch.set_num_threads(1)
    protocol = read_protocol()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.tasks:
        if name not in protocol.tasks:
            raise unknown("task", name, protocol.tasks)
        task = protocol.tasks[name]
        if any(learner["algorithm"] != "dqn" for learner in task.portfolio.learners):
            raise InvalidValueError(
                f"The learners of a task must be DQNs, but those of {name} are not:"
                " choose another task."
            )
        task = replace(task, steps=given.steps or task.steps)
        seeds = given.seeds or task.seeds or protocol.seeds
        measure(task, protocol, given.out / f"{name}.json", seed=given.seed, seeds=seeds)


if __name__ == "__main__":
    # They count only if they are set before Python starts.
    if not SETTINGS.items() <= os.environ.items():
        command = [sys.executable, "-m", "benchmarks.agilerl", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | SETTINGS)
    try:
        main()
    except EsbasError as error:
        raise SystemExit(str(error)) from None
