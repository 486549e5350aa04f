"""All learners of a run, as they are in its last checkpoint, play the same episodes."""

from collections.abc import Callable
from functools import partial

import numpy as np

from esbas.learner import Learner, Policy
from esbas.training.folder import TrainingFolder
from esbas.training.policies.finding import learners_at_checkpoint
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import Score, Scorer, greedy
from esbas.training.runs.cuts import CutEpisodes
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.evaluation import episode_limit
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.plan import close_learner


def score_learners(
    training: TrainingFolder,
    seed: int,
    *,
    episodes: int,
    explore: bool,
    stream: Callable[[int], np.random.Generator],
) -> tuple[dict[str, StoredPolicy], dict[str, Score]]:
    """Return the learners of the run with this seed, and their scores."""
    plan = training.plan
    stored = learners_at_checkpoint(training, seed)
    env = plan.env()
    built: list[Learner] = []

    def build_policy(policy: StoredPolicy) -> Policy:
        learner = policy.build(
            plan, observation_space=env.observation_space, action_space=env.action_space
        )
        built.append(learner)
        return learner.policy() if explore else greedy(learner)

    policies = {name: partial(build_policy, policy) for name, policy in stored.items()}
    cuts = CutEpisodes(plan.config, env)
    cuts.add_all(read_episodes(run_folder(training.folder, seed)).lengths.tolist())
    limit = episode_limit(plan.config.max_episode_steps, env, longest=cuts.longest)
    try:
        scorer = Scorer(
            cuts.limited(env, limit), plan.objective, policies, stream=stream, limit=limit
        )
        scorer.play(episodes)
        return stored, scorer.scores
    finally:
        env.close()
        for learner in built:
            close_learner(learner)
