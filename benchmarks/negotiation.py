"""The negotiation dialogue: nanoseconds per system turn of a whole run, and milliseconds of one training, each against others.

A run is the canonical one of simple-2 over the first 9 epochs (5,120 dialogues), its training included; training is fitted Q
iteration by simple-2 from 10,240 random dialogues: compiled, by the Python object, and by NumPy's `lstsq` for every action in
every iteration. All are measured in turn, several times, by the CPU time they use, in a process whose BLAS has one thread; the
median round counts.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import esbas
from esbas import TrajectorySet
from esbas.envs import DialogueFeatures, NegotiationDialogue, negotiation_return
from esbas.experiments.dialogue.setup import EPOCHS, GAME, GAMMA, MAX_ITERATIONS, PROTOCOL, RIDGE, TOLERANCE
from esbas.kernels.counter import run_key
from esbas.kernels.dialogue.one_dialogue import Traits
from esbas.kernels.dialogue.whole_runs import members, whole_run
from esbas.learners import EpsilonGreedy, LinearFQI
from esbas.learners.linear_fqi import best_values
from esbas.runner import play

ROUNDS, PAIRS, SHORT, BATCH = 7, 9, EPOCHS[:9], 10_240
PORTFOLIO = members([Traits(3, square=1)], [None])
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def main() -> None:
    """In a process of its own: the libraries read the number of threads when they are loaded."""
    command, folder = [sys.executable, "-m", "benchmarks.negotiation"], Path(__file__).parents[1]
    subprocess.run(command, env=os.environ | ONE_THREAD, cwd=folder, check=True)


def measure() -> None:
    """Print what each costs."""
    data = random_dialogues()
    show({"compiled": compiled_turn, "Python objects": python_turn}, "ns per system turn")
    training: dict[str, Callable[[int], float]] = {
        "compiled": compiled_training,
        "Python object (LinearFQI)": lambda _: seconds(lambda: learner().learn(data)) * 1e3,
        "lstsq in every iteration": lambda _: seconds(lambda: by_lstsq(data)) * 1e3,
    }
    show(training, "ms per training")


def compiled_turn(run: int) -> float:
    """Nanoseconds."""
    protocol, acts = PROTOCOL._replace(epochs=np.array(SHORT)), [0]

    def work() -> None:
        acts[0] = whole_run(run_key(0, run), GAME, PORTFOLIO, protocol)[2].sum()

    return seconds(work) * 1e9 / acts[0]


def python_turn(run: int) -> float:
    """Nanoseconds."""
    one, acts = learner(), [0]

    def work() -> None:
        selector = esbas.Fixed([one.name], epochs=SHORT)
        going = esbas.run(
            NegotiationDialogue(), [one], selector, episodes=sum(SHORT), objective=negotiation_return(GAMMA), seed=run
        )
        acts[0] = sum(record.length for record in going)

    return seconds(work) * 1e9 / acts[0]


def compiled_training(run: int) -> float:
    """Milliseconds: a run whose second epoch of one dialogue starts with learning, minus one that ends before it."""

    def length_of(*epochs: int) -> float:
        protocol = PROTOCOL._replace(epochs=np.array(epochs))
        return seconds(lambda: whole_run(run_key(0, run), GAME, PORTFOLIO, protocol))

    return statistics.median(length_of(BATCH, 1) - length_of(BATCH) for _ in range(PAIRS)) * 1e3


def random_dialogues() -> TrajectorySet:
    """A batch."""
    env, data, rng = NegotiationDialogue(), TrajectorySet(), np.random.default_rng(0)
    chance = EpsilonGreedy(lambda _: np.zeros(5), lambda: 1.0)
    env.reset(seed=0)
    for _ in range(BATCH):
        data.append(play(env, chance, rng=rng))
    return data


def learner() -> LinearFQI:
    """The paper's simple-2."""
    return LinearFQI(
        "simple-2",
        DialogueFeatures("simple-2"),
        actions=5,
        gamma=GAMMA,
        ridge=RIDGE,
        tolerance=TOLERANCE,
        max_iterations=MAX_ITERATIONS,
    )


def by_lstsq(data: TrajectorySet) -> None:
    """The textbook way: ridge as further rows, a least-squares problem for every action in every iteration."""
    steps, features = data.transitions(), DialogueFeatures("simple-2")
    seen, following = features.batch(steps.observations), features.batch(steps.next_observations)
    weights, ridge = np.zeros((5, features.size)), RIDGE**0.5 * np.eye(features.size)
    for _ in range(MAX_ITERATIONS):
        target = steps.rewards + GAMMA * np.where(steps.terminated, 0.0, best_values(weights, following))
        before = weights.copy()
        for action in range(5):
            chosen = steps.actions == action
            rows = np.concatenate([seen[chosen], ridge])
            weights[action] = np.linalg.lstsq(rows, np.concatenate([target[chosen], np.zeros(features.size)]))[0]
        if np.linalg.norm(weights - before) <= TOLERANCE:
            break


def seconds(work: Callable[[], object]) -> float:
    """Of CPU time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def show(costs: dict[str, Callable[[int], float]], unit: str) -> None:
    """One line each: the median of rounds in turn, behind one that compiles and warms up; and the ratio to the compiled one."""
    rounds = [[cost(run) for cost in costs.values()] for run in range(ROUNDS + 1)][1:]
    medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
    for name, cost in zip(costs, medians, strict=True):
        print(f"{name:<26} {cost:12.2f} {unit:<20} {cost / medians[0]:10.1f} times the compiled one", flush=True)


if __name__ == "__main__":
    measure()
