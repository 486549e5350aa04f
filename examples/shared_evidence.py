"""Every episode judges every policy: ESBAS and shared evidence on a task of Gymnasium, with ε-greedy learners and epochs.

Three tabular Q-learners with different learning rates and a policy that acts at random cross a frozen lake. The learners learn
when an epoch starts, and are frozen within it. The episodes of both selectors start from the same seeds, so runs are paired.

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
    """The number of episodes that reach the goal, and what the selector says about its arms in the end."""
    env: Any = gymnasium.make("FrozenLake-v1")
    learners: list[Any] = [
        TabularQ(arm, states=16, actions=4, rate=rate, epsilon=0.1, initial=1.0) for arm, rate in RATES.items()
    ]
    learners.append(Constant("random", RandomPolicy(env.action_space)))
    selector = make_selector(name, ARMS, epochs=EPOCHS, seed=seed)
    run = esbas.run(env, learners, selector, episodes=sum(EPOCHS), objective=esbas.total_return(), seed=seed)
    return sum(record.value for record in run), selector.explain()


def main(runs: int = 3) -> None:
    """Print the numbers of successful episodes with 95 % intervals over runs, and effective sample sizes in the last epoch."""
    outcomes = {name: [one_run(name, seed=seed) for seed in range(runs)] for name in ("esbas", "shared-evidence")}
    totals = {name: np.array([total for total, _ in each]) for name, each in outcomes.items()}
    print(f"successful episodes of {sum(EPOCHS):,}, {runs} runs")
    for name, each in totals.items():
        print(f"  {name:<18}{estimate(each)}")
    print(f"  {'difference':<18}{estimate(totals['shared-evidence'] - totals['esbas'])}")
    print(f"episodes of each arm in the last epoch ({EPOCHS[-1]} episodes), and its effective sample size")
    for arm in ARMS:
        report = [explained[arm] for _, explained in outcomes["shared-evidence"]]
        pulls, effective = (float(np.mean([row[key] for row in report])) for key in ("pulls", "effective"))
        print(f"  {arm:<18}{pulls:.0f} {effective:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
