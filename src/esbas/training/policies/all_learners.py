"""All members of a run, as they are in its last checkpoint, play the same episodes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas.learner import Learner, Policy
from esbas.objective import make_objective
from esbas.training.folder import TrainingFolder
from esbas.training.policies.finding import members_at_checkpoint
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import Score, Scorer, greedy
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.evaluation import episode_limit
from esbas.training.runs.one_run import run_folder


def score_members(
    training: TrainingFolder, seed: int, *, episodes: int, explore: bool, stream: Callable[[int], np.random.Generator]
) -> tuple[dict[str, StoredPolicy], dict[str, Score]]:
    """The members of the run with this seed, and their scores."""
    plan, members = training.plan, members_at_checkpoint(training, seed)
    task, built = plan.task(), list[Learner]()
    spaces = {name: getattr(task, name) for name in ("observation_space", "action_space")}
    longest = int(read_episodes(run_folder(training.folder, seed)).lengths.max())
    limit = episode_limit(plan, task, longest=longest)
    task.close()
    policies = {name: partial(_policy, member, plan, spaces, built, explore) for name, member in members.items()}
    scorer = Scorer(plan.task, make_objective(plan.objective), stream=stream, limit=limit)
    try:
        return members, scorer.score(policies, episodes=episodes, allowance=float("inf"))
    finally:
        scorer.close()
        for learner in built:
            getattr(learner, "close", lambda: None)()


def _policy(stored: StoredPolicy, plan: Any, spaces: dict[str, Any], built: list[Learner], explore: bool) -> Policy:
    learner = stored.build(plan, **spaces)
    built.append(learner)
    return learner.policy() if explore else greedy(learner)
