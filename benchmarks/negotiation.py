"""The negotiation dialogue: the cost of a system turn and of one training, in several ways.

A run is the canonical one of simple-2 over the first 9 epochs (5,120 dialogues), its training
included; training is fitted Q iteration by simple-2 from 10,240 random dialogues: compiled, by the
Python object, and by NumPy's `lstsq` for every action in every iteration. All are measured in turn,
several times, by the CPU time they use, in a process whose BLAS has one thread; the median round
counts.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import esbas
from esbas import TrajectorySet
from esbas.experiments.dialogue.setup import (
    EPOCHS,
    GAME,
    GAMMA,
    MAX_ITERATIONS,
    PROTOCOL,
    RIDGE,
    TOLERANCE,
)
from esbas.experiments.envs import DialogueFeatures, NegotiationDialogue, negotiation_return
from esbas.experiments.kernels.counter import run_key
from esbas.experiments.kernels.dialogue.one_dialogue import Traits
from esbas.experiments.kernels.dialogue.whole_runs import learner_arrays, whole_run
from esbas.learners import EpsilonGreedy, LinearFQI
from esbas.learners.linear_fqi import best_values
from esbas.loop import play

ROUNDS = 7
PAIRS = 9
SHORT = EPOCHS[:9]
BATCH = 10_240
PORTFOLIO = learner_arrays([Traits(3, square=1)], [None])
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def main() -> None:
    """Measure in a new process: the libraries read the number of threads when they are loaded."""
    command = [sys.executable, "-m", "benchmarks.negotiation"]
    folder = Path(__file__).parents[1]
    subprocess.run(command, env=os.environ | ONE_THREAD, cwd=folder, check=True)


def measure() -> None:
    """Print what each costs."""
    data = random_dialogues()
    show({"compiled": compiled_turn, "Python objects": python_turn}, "ns per system turn")

    def python_training(run: int) -> float:
        del run
        return 1e3 * seconds(lambda: learner().learn(data))

    def lstsq_training(run: int) -> float:
        del run
        return 1e3 * seconds(lambda: by_lstsq(data))

    training = {
        "compiled": compiled_training,
        "Python object (LinearFQI)": python_training,
        "lstsq in every iteration": lstsq_training,
    }
    show(training, "ms per training")


def compiled_turn(run: int) -> float:
    """Return nanoseconds."""
    protocol = PROTOCOL._replace(epochs=np.array(SHORT))
    acts = 0

    def work() -> None:
        nonlocal acts
        acts = whole_run(run_key(0, run), GAME, PORTFOLIO, protocol)[2].sum()

    return seconds(work) * 1e9 / acts


def python_turn(run: int) -> float:
    """Return nanoseconds."""
    one = learner()
    acts = 0

    def work() -> None:
        nonlocal acts
        selector = esbas.Fixed([one.name], epochs=SHORT)
        going = esbas.run(
            NegotiationDialogue(),
            [one],
            selector,
            episodes=sum(SHORT),
            objective=negotiation_return(GAMMA),
            seed=run,
        )
        acts = sum(record.length for record in going)

    return seconds(work) * 1e9 / acts


def compiled_training(run: int) -> float:
    """Return milliseconds.

    They are those of a run whose second epoch of one dialogue starts with learning, minus those of
    a run that ends before it.
    """

    def length_of(*epochs: int) -> float:
        protocol = PROTOCOL._replace(epochs=np.array(epochs))
        return seconds(lambda: whole_run(run_key(0, run), GAME, PORTFOLIO, protocol))

    differences = [length_of(BATCH, 1) - length_of(BATCH) for _ in range(PAIRS)]
    return statistics.median(differences) * 1e3


def random_dialogues() -> TrajectorySet:
    """Play a batch of dialogues."""
    env = NegotiationDialogue()
    data = TrajectorySet()
    rng = np.random.default_rng(0)
    chance = EpsilonGreedy(lambda _: np.zeros(5), lambda: 1.0)
    env.reset(seed=0)
    for _ in range(BATCH):
        data.append(play(env, chance, rng=rng))
    return data


def learner() -> LinearFQI:
    """Return the paper's simple-2."""
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
    """Train in the textbook way.

    Ridge is further rows, and every iteration has a least-squares problem for every action.
    """
    steps = data.transitions()
    features = DialogueFeatures("simple-2")
    seen = features.batch(steps.observations)
    following = features.batch(steps.next_observations)
    weights = np.zeros((5, features.size))
    ridge = RIDGE**0.5 * np.eye(features.size)
    for _ in range(MAX_ITERATIONS):
        best = best_values(weights, following)
        target = steps.rewards + GAMMA * np.where(steps.terminated, 0.0, best)
        before = weights.copy()
        for action in range(5):
            chosen = steps.actions == action
            rows = np.concatenate([seen[chosen], ridge])
            values = np.concatenate([target[chosen], np.zeros(features.size)])
            weights[action], *_ = np.linalg.lstsq(rows, values)
        if np.linalg.norm(weights - before) <= TOLERANCE:
            break


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def show(costs: Mapping[str, Callable[[int], float]], unit: str) -> None:
    """Print one line each: the median of rounds in turn, and the ratio to the first one."""
    measured: dict[str, list[float]] = {name: [] for name in costs}
    for run in range(ROUNDS + 1):
        for name, cost in costs.items():
            measured[name].append(cost(run))
    medians = {name: statistics.median(own[1:]) for name, own in measured.items()}  # 0 warms up
    compiled = medians["compiled"]
    for name, median in medians.items():
        ratio = median / compiled
        print(
            f"{name:<26} {median:12.2f} {unit:<20} {ratio:10.1f} times the compiled one",
            flush=True,
        )


if __name__ == "__main__":
    measure()
