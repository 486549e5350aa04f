"""Five learners on CartPole-v1: one hangs, one crashes, and the others learn nevertheless.

A timer interrupts the learner that hangs. The learner that crashes runs in a separate process.

Run it with `python examples/faults.py` (needs `pip install 'esbas[deep]'`).
"""

import argparse
import ctypes
import os
from collections import Counter
from functools import partial

import gymnasium as gym
import numpy as np

import esbas
from esbas.errors import counted
from esbas.isolation import Isolated
from esbas.learners import DQN, SharedReplay

TIME_LIMIT = 0.5  # seconds per learning call
LAST = 30  # the summary compares this many episodes at the beginning and at the end


class Hangs(DQN):
    """After a number of transitions, every call of `step` is an endless loop."""

    after = 0

    def step(self, transition: esbas.Transition) -> None:
        if self.replay.added >= self.after:
            while True:
                pass
        super().step(transition)


class Crashes(DQN):
    """Causes a segmentation fault at regular intervals, which ends the whole process."""

    every = 1

    def step(self, transition: esbas.Transition) -> None:
        if self.replay.added % self.every == self.every - 1:
            os.close(2)  # hide the system's message
            ctypes.string_at(0)
        super().step(transition)


def make_crashing(every: int) -> Crashes:
    """Build the learner in its process, with a separate replay memory."""
    learner = Crashes("crashes", replay=SharedReplay(gym.make("CartPole-v1"), buffer_size=30_000))
    learner.every = every
    return learner


def make_learners(env: gym.Env[np.ndarray, int], steps: int) -> list[esbas.Learner]:
    """Return three working learners with a shared replay memory, and two that fail."""
    replay = SharedReplay(env, buffer_size=30_000)
    learners: list[esbas.Learner] = [
        DQN(f"rate {rate:g}", replay=replay, learning_rate=rate) for rate in (3e-4, 1e-3, 2.5e-3)
    ]
    hanging = Hangs("hangs", replay=SharedReplay(env, buffer_size=30_000))
    hanging.after = steps // 12
    learners.append(hanging)
    learners.append(Isolated(partial(make_crashing, steps * 3 // 10)))
    return learners


def main() -> None:
    """Run the learners and print every fault, then a summary."""
    parser = argparse.ArgumentParser(
        description="Three working and two failing learners on CartPole-v1."
    )
    parser.add_argument("--steps", type=int, default=10_000, help="the budget in environment steps")
    steps = parser.parse_args().steps
    env = gym.make("CartPole-v1")
    learners = make_learners(env, steps)
    names = [learner.name for learner in learners]
    run = esbas.run(
        env,
        learners,
        esbas.SSBAS,
        steps=steps,
        objective="return",
        keep_data=False,
        learn_timeout=TIME_LIMIT,
    )
    records = []
    for record in run:
        records.append(record)
        for fault in record.faults:
            dismissed = counted(fault.dismissed, "episode")
            print(
                f"episode {record.number}: {fault.learner!r} failed in `{fault.where}` and is "
                f"dismissed for {dismissed}\n    {fault.message}",
                flush=True,
            )
    print_summary(records, names)


def print_summary(records: list[esbas.EpisodeRecord], names: list[str]) -> None:
    """Print how often each learner failed and acted, and how the returns changed."""
    faults = Counter(fault.learner for record in records for fault in record.faults)
    chosen = Counter(record.learner for record in records)
    lately = Counter(record.learner for record in records[-LAST:])
    print(f"\n{len(records)} episodes, {sum(record.length for record in records):,} steps\n")
    print(f"{'':12} faults   share of all episodes   of the last {LAST}")
    for name in names:
        share = chosen[name] / chosen.total()
        late_share = lately[name] / lately.total()
        print(f"{name:12} {faults[name]:6} {share:23.0%} {late_share:16.0%}")
    first = np.mean([record.value for record in records[:LAST]])
    last = np.mean([record.value for record in records[-LAST:]])
    print(
        f"\nmean return of the first {LAST} episodes: {first:.0f}, of the last {LAST}: {last:.0f}"
    )


if __name__ == "__main__":  # the separate process also imports this file
    main()
