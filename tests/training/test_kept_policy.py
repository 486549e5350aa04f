"""The kept policy is nearly the best of all learners, and the verdict is right.

The trainings are those of a new user: `esbas train ENV --steps N`.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esbas
from esbas import cli, seeding
from esbas.training import open_folder
from esbas.training.policies.all_learners import score_learners
from esbas.training.policies.policy_file import read_policy
from esbas.training.policies.scoring import Score
from esbas.training.runs import evaluation
from esbas.training.runs.one_run import run_folder

pytestmark = pytest.mark.slow

EVAL_SEED = 987654
RANDOM_STEPS = 200_000  # of random actions, at most: an episode of CliffWalking has thousands
TOLERANCE = 0.05  # of what the best learner gains over random actions

# Steps of the training, and fresh episodes of every learner. In Blackjack, nearly equal policies
# differ in few episodes: after 200, the standard error of a difference is up to 8 % of the gain,
# after 5,000 at most 1.5 %.
CASES = [
    ("CliffWalking-v1", 50_000, 200),
    ("Blackjack-v1", 50_000, 5000),
    ("FrozenLake-v1", 100_000, 200),
    ("Taxi-v4", 100_000, 200),
    ("LunarLander-v3", 100_000, 200),
]


def mean_of_random_actions(
    env: Any, objective: esbas.Objective, stream: Any, episodes: int
) -> float:
    """Return their mean value over the same fresh episodes, or the first ones of them."""
    values = []
    steps = 0
    for number in range(1, episodes + 1):
        rng = stream(number)
        seed = int(rng.integers(2**31))
        trajectory = esbas.play(env, Chance(env), rng=rng, seed=seed, max_episode_steps=10**7)
        values.append(objective(trajectory))
        steps += len(trajectory)
        if steps >= RANDOM_STEPS:
            break
    return float(np.mean(values))


class Chance:
    """Takes random actions."""

    def __init__(self, env: Any) -> None:
        self._actions = int(env.action_space.n)

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(self._actions))


def means_of(scores: dict[str, Score]) -> dict[str, float]:
    return {name: float(np.mean(each.values)) for name, each in scores.items() if not each.problem}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("env_id", "steps", "episodes"), CASES)
def test_the_kept_policy_is_nearly_the_best(
    tmp_path: Path, env_id: str, steps: int, episodes: int, seed: int
) -> None:
    out = tmp_path / "training"
    if env_id.startswith("LunarLander"):
        pytest.importorskip("Box2D")
    command = ["train", env_id, "--steps", str(steps), "--seeds", str(seed), "--out", str(out)]
    assert cli.main([*command, "--no-tensorboard"]) == 0
    training = open_folder(out)
    objective = training.plan.objective
    stream = partial(seeding.generator, EVAL_SEED, "fresh")
    _, scores = score_learners(training, seed, episodes=episodes, explore=False, stream=stream)
    means = means_of(scores)
    kept = read_policy(run_folder(out, seed) / "best.npz")
    best = max(means.values())
    env = training.plan.env()
    random = mean_of_random_actions(env, objective, stream, episodes)
    env.close()
    summary = json.loads((out / "summary.json").read_text())
    print(
        f"{env_id} {seed}: {means[kept.learner]:.4g}, {best:.4g}, {random:.4g}", summary["learnt"]
    )
    assert summary["learnt"] is True
    assert best - means[kept.learner] <= TOLERANCE * (best - random)
    assert summary["evaluation steps"] <= evaluation.END_SHARE * kept.steps
