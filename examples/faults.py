"""Five learners on CartPole-v1: one hangs and one crashes, but the run continues and the others learn.

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
    learner = Crashes("crashes", replay=SharedReplay(gym.make("CartPole-v1"), capacity=30_000))
    learner.every = every
    return learner


def make_portfolio(env: gym.Env[np.ndarray, int], steps: int) -> list[esbas.Learner]:
    """Three working learners with a shared replay memory, and two that fail."""
    replay = SharedReplay(env, capacity=30_000)
    working = [DQN(f"rate {rate:g}", replay=replay, rate=rate) for rate in (3e-4, 1e-3, 2.5e-3)]
    hanging = Hangs("hangs", replay=SharedReplay(env, capacity=30_000))
    hanging.after = steps // 12
    return [*working, hanging, Isolated(partial(make_crashing, steps * 3 // 10))]


def main() -> None:
    """Print every fault, then how often each learner failed and acted, and how the returns changed."""
    parser = argparse.ArgumentParser(description="Three working and two failing learners on CartPole-v1.")
    parser.add_argument("--steps", type=int, default=10_000, help="the budget in environment steps")
    steps = parser.parse_args().steps
    env = gym.make("CartPole-v1")
    portfolio = make_portfolio(env, steps)
    names = [learner.name for learner in portfolio]
    run = esbas.run(
        env, portfolio, esbas.SSBAS(names), steps=steps, objective=esbas.total_return(), keep_data=False, time_limit=TIME_LIMIT
    )
    records = []
    for record in run:
        records.append(record)
        for fault in record.faults:
            dismissed = "1 episode" if fault.dismissed == 1 else f"{fault.dismissed} episodes"
            print(
                f"episode {record.number}: {fault.arm!r} failed in `{fault.where}` and is dismissed for {dismissed}", flush=True
            )
            print(f"    {fault.message}", flush=True)
    print(f"\n{len(records)} episodes, {sum(record.length for record in records):,} steps\n")
    print(f"{'':12} faults   share of all episodes   of the last {LAST}")
    faults = Counter(fault.arm for record in records for fault in record.faults)
    chosen, lately = (Counter(record.arm for record in some) for some in (records, records[-LAST:]))
    for name in names:
        print(f"{name:12} {faults[name]:6} {chosen[name] / chosen.total():23.0%} {lately[name] / lately.total():16.0%}")
    first, last = (np.mean([record.value for record in some]) for some in (records[:LAST], records[-LAST:]))
    print(f"\nmean return of the first {LAST} episodes: {first:.0f}, of the last {LAST}: {last:.0f}")


if __name__ == "__main__":  # the separate process also imports this file
    main()
