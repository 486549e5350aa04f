"""Every episode judges every policy: shared evidence and ESBAS on an environment of Gymnasium.

Three ε-greedy Q-learners with different learning rates and a policy that acts at random cross a
frozen lake. The learners learn when an epoch starts, and are frozen within it. The episodes of both
selectors start from the same seeds, so runs are paired.

Run it with `python examples/shared_evidence.py [RUNS]`.
"""

import sys
from typing import Any

import gymnasium
import numpy as np

import esbas
from esbas.learner import RandomPolicy
from esbas.learners import Constant, TabularQ
from esbas.reporting import estimate
from esbas.selectors import make_selector

RATES = {"slow": 0.02, "medium": 0.1, "fast": 0.5}
ARMS = [*RATES, "random"]
EPOCHS = [20, 20, 40, 80, 160, 320, 640]


def one_run(name: str, *, seed: int) -> tuple[float, dict[str, dict[str, float]]]:
    """Return the number of episodes that reach the goal, and the selector's final report."""
    env: Any = gymnasium.make("FrozenLake-v1")
    learners: list[Any] = [
        TabularQ(arm, states=16, actions=4, learning_rate=rate, epsilon=0.1, initial=1.0)
        for arm, rate in RATES.items()
    ]
    learners.append(Constant("random", RandomPolicy(env.action_space)))
    selector = make_selector(name, ARMS, epochs=EPOCHS, seed=seed)
    run = esbas.run(
        env, learners, selector, episodes=sum(EPOCHS), objective=esbas.total_return(), seed=seed
    )
    successes = sum(record.value for record in run)
    return successes, selector.explain()


def main(runs: int = 3) -> None:
    """Print successful episodes with 95 % intervals over runs, and effective sample sizes."""
    totals = {}
    reports = {}
    for name in ("esbas", "shared-evidence"):
        outcomes = [one_run(name, seed=seed) for seed in range(runs)]
        totals[name] = np.array([successes for successes, _ in outcomes])
        reports[name] = [report for _, report in outcomes]
    print(f"successful episodes of {sum(EPOCHS):,}, {runs} runs")
    for name, total in totals.items():
        print(f"  {name:<18}{estimate(total)}")
    print(f"  {'difference':<18}{estimate(totals['shared-evidence'] - totals['esbas'])}")
    print(
        f"episodes of each arm in the last epoch ({EPOCHS[-1]} episodes), "
        "and its effective sample size"
    )
    for arm in ARMS:
        rows = [report[arm] for report in reports["shared-evidence"]]
        pulls = np.mean([row["pulls"] for row in rows])
        effective = np.mean([row["effective"] for row in rows])
        print(f"  {arm:<18}{pulls:.0f} {effective:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
