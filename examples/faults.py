"""Five members on CartPole-v1, two of them broken: one hangs for ever, one crashes. The run goes on and learns.

The first is interrupted by a timer; the second lives in a process of its own, which may die. Needs `pip install 'esbas[deep]'`.
"""

import argparse
import ctypes
import os
from collections import Counter
from functools import partial

import gymnasium as gym
import numpy as np

import esbas
from esbas.learners import DQN, Isolated, SharedReplay

TIME_LIMIT = 0.5  # seconds per learning call
LAST = 30  # episodes that the end of the run consists of


class Hangs(DQN):
    """From some step on, each step is an endless loop."""

    after = 0

    def step(self, transition: esbas.Transition) -> None:
        """Learn, or hang."""
        if self.replay.added >= self.after:
            while True:
                pass
        super().step(transition)


class Crashes(DQN):
    """Now and then it reads where there is no memory: a segmentation fault, which ends any Python program at once."""

    every = 1

    def step(self, transition: esbas.Transition) -> None:
        """Learn, or crash."""
        if self.replay.added % self.every == self.every - 1:
            os.close(2)  # nobody needs the system's own words here
            ctypes.string_at(0)
        super().step(transition)


def make_crashing(every: int) -> Crashes:
    """Called in the other process: builds there whatever the member needs, a memory of its own, too."""
    learner = Crashes("crashes", replay=SharedReplay(gym.make("CartPole-v1"), capacity=30_000))
    learner.every = every
    return learner


def make_portfolio(env: gym.Env[np.ndarray, int], steps: int) -> list[esbas.Learner]:
    """Three healthy members on one memory, and two broken ones."""
    replay = SharedReplay(env, capacity=30_000)
    healthy = [DQN(f"rate {rate:g}", replay=replay, rate=rate) for rate in (3e-4, 1e-3, 2.5e-3)]
    hanging = Hangs("hangs", replay=SharedReplay(env, capacity=30_000))
    hanging.after = steps // 12
    return [*healthy, hanging, Isolated(partial(make_crashing, steps * 3 // 10))]


def main() -> None:
    """Run, then tell who was dismissed, who acted, and what came of it."""
    parser = argparse.ArgumentParser(description="Three healthy and two broken members on CartPole-v1.")
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


if __name__ == "__main__":  # the other process imports this file, too, and must not run it again
    main()
