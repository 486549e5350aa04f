"""One cell: a task, a method and a seed.

It runs in this process, writes no files, and returns small arrays.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import esbas
from esbas import seeding, session
from esbas._internal.columns import Array
from esbas.experiments.control.protocol import Protocol, Task
from esbas.experiments.control.searches import Candidate, rungs_of, search
from esbas.experiments.control.setup import COMMIT, SEARCH, Method
from esbas.experiments.control.variants import separate
from esbas.learner import Learner, Policy, RandomPolicy
from esbas.learners import EpsilonGreedy
from esbas.specs.selectors import read_selector
from esbas.training.config import TrainingConfig
from esbas.training.policies.scoring import greedy
from esbas.training.runs.plan import Plan

LATE = 0.8
"""The learner with most control after this share of the budget is evaluated at the end."""
Arrays = dict[str, Array]


@dataclass
class EpisodeScores:
    """The episodes of a cell, in the order in which they were played.

    Attributes:
        starts: environment steps before each episode, of all learners together.
        values: the return of each episode.
        lengths: the steps of each episode.
        learners: the number of the learner in control of each episode.
        faults: faults of all learners.
    """

    starts: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    learners: list[int] = field(default_factory=list)
    faults: int = 0

    def add(self, learner: int, start: int, record: esbas.EpisodeRecord) -> None:
        self.starts.append(start)
        self.values.append(record.value)
        self.lengths.append(record.length)
        self.learners.append(learner)
        self.faults += len(record.faults)

    def curve(self, steps: int, bins: int) -> Array:
        """Return the mean returns of equal parts of the budget, (bins,)."""
        return binned_means(np.array(self.starts), np.array(self.values), steps=steps, bins=bins)

    def shares(self, learners: int, *, since: float = 0.0) -> Array:
        """Return the share of each learner in the environment steps, (K,).

        Only episodes that start from `since` on are counted.
        """
        counted = np.array(self.starts) >= since
        controlling = np.array(self.learners)[counted]
        lengths = np.array(self.lengths)[counted]
        steps = np.bincount(controlling, weights=lengths, minlength=learners)
        return np.asarray(steps / max(steps.sum(), 1.0))

    def leader(self, learners: int, *, steps: int) -> int:
        """Return the number of the learner with most control at the end of a budget of `steps`."""
        return int(self.shares(learners, since=LATE * steps).argmax())


def binned_means(starts: Array, values: Array, *, steps: int, bins: int) -> Array:
    """Return the mean of the episodes that start in each of the equal parts of the budget, (bins,).

    Bins without an episode are interpolated linearly between their neighbors; before the first and
    after the last bin with an episode, the curve is constant.
    """
    bin_of = np.minimum(starts * bins // steps, bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    sums = np.bincount(bin_of, weights=values, minlength=bins)
    full = np.flatnonzero(counts)
    means = sums[full] / counts[full]
    return np.asarray(np.interp(np.arange(bins), full, means))


def run_cell(task: Task, method: Method, protocol: Protocol, seed: int) -> Arrays:
    """Train, evaluate, and return the results.

    Returns:
        `curve`, (bins,): mean returns; `final`: the mean return of greedy episodes on fresh seeds;
        `shares`, (K,): of control; `greedy`, (K,): as `final` for each learner, NaN where it was
        not evaluated; `steps`, `episodes`, `faults`: counts; `cpu`: seconds of training. Chance has
        `vote` and `mean_q`, the greedy scores of all learners together.
    """
    begin = time.thread_time()
    episodes = EpisodeScores()
    if method.family == SEARCH:
        learners, leader = _search(task, method, protocol, seed, episodes)
    else:
        learners, leader = _run(task, method, seed, episodes)
    cpu = time.thread_time() - begin
    judge = _Judge(task, method, seed)
    scores = np.full(len(learners), np.nan)  # (K,)
    for k, learner in enumerate(learners):
        if k == leader or task.evaluate_all:
            scores[k] = judge.score(greedy(learner))
    found: dict[str, Any] = {
        "curve": episodes.curve(task.steps, protocol.bins),
        "final": scores[leader],
        "shares": episodes.shares(len(learners)),
        "greedy": scores,
        "cpu": cpu,
    }
    if method.name == protocol.chance:
        policies = [greedy(learner) for learner in learners]
        for name, policy in _together(policies).items():
            found[name] = judge.score(policy)
    found["steps"] = sum(episodes.lengths)
    found["episodes"] = len(episodes.values)
    found["faults"] = episodes.faults
    judge.close()
    return {name: np.asarray(value) for name, value in found.items()}


def _run(
    task: Task, method: Method, seed: int, episodes: EpisodeScores
) -> tuple[Sequence[Learner], int]:
    """Train the learners of one run. Return them and the number of the leader."""
    run = build_run(task, method, seed)
    for record in run:
        learner = run.selector.arms.index(record.learner)
        episodes.add(learner, run.steps - record.length, record)
    run.env.close()
    return run.learners, episodes.leader(len(run.learners), steps=task.steps)


def build_run(task: Task, method: Method, seed: int) -> esbas.Run:
    """Return the run of a method that is not a search."""
    plan = _plan(task, method, method.selector)
    if task.share_data:
        return plan.start(seed)
    env = plan.env()
    learners: list[Learner] = []
    for spec in method.recipe.learners:
        recipe = replace(method.recipe, learners=(spec,))  # with a replay memory of its own
        learners += recipe.build(env, steps=task.steps, seed=seed)
    learners = separate(learners)
    arms = [learner.name for learner in learners]
    selector = read_selector(
        method.selector, arms, stationary=(), scale="auto", xi=None, epochs=(), seed=seed
    )
    return esbas.run(
        env,
        learners,
        selector,
        steps=task.steps,
        objective=esbas.total_return(),
        seed=seed,
        keep_data=session.needs_data(learners, selector),
    )


def _plan(task: Task, method: Method, selector: str) -> Plan:
    config = TrainingConfig(task.env, selector=selector, steps=task.steps, wrappers=method.wrappers)
    return Plan(config, method.recipe)


def _search(
    task: Task, method: Method, protocol: Protocol, seed: int, episodes: EpisodeScores
) -> tuple[Sequence[Learner], int]:
    """Train learners separately. Return them and the number of the one that remains."""
    candidates = []
    for spec in method.recipe.learners:
        alone = replace(method, recipe=replace(method.recipe, learners=(spec,)))
        plan = _plan(task, alone, f"fixed:{spec.name}")
        candidates.append(Candidate(plan.start(seed)))
    share = protocol.commit_share if method.name == COMMIT else None
    rungs = rungs_of(len(candidates), task.steps, commit_share=share)
    best = search(candidates, rungs, report=episodes.add)
    for candidate in candidates:
        candidate.run.env.close()
    return [candidate.run.learners[0] for candidate in candidates], best


class _Judge:
    """Plays greedy episodes on a copy of the environment.

    All policies of a seed play the same episodes. No learner was trained on them.
    """

    def __init__(self, task: Task, method: Method, seed: int) -> None:
        self._env = _plan(task, method, method.selector).env()
        self._episodes = task.final_episodes
        self._seed = seed

    def score(self, policy: Policy) -> float:
        """Return the mean return."""
        return final_score(self._env, policy, episodes=self._episodes, seed=self._seed)

    def close(self) -> None:
        self._env.close()


def final_score(env: Any, policy: Policy, *, episodes: int, seed: int) -> float:
    """Return the mean return of episodes on fresh seeds.

    The episodes are the same for all policies of a run with this seed.
    """
    returns = []
    for number in range(episodes):
        rng = seeding.generator(seed, "control", "final", number)
        trajectory = esbas.play(env, policy, rng=rng, seed=int(rng.integers(2**31)))
        returns.append(float(trajectory.rewards.sum()))
    return float(np.mean(returns))


def _together(policies: Sequence[Policy]) -> dict[str, Policy]:
    """Return the majority vote of the policies and the maximum of their mean values.

    Both exist only if all policies have values of actions.
    """
    voters = [policy for policy in policies if isinstance(policy, EpsilonGreedy)]
    if len(voters) < len(policies):
        return {}

    def votes(observation: Any) -> Array:
        values = [voter.values(observation) for voter in voters]
        best = [int(each.argmax()) for each in values]
        return np.bincount(best, minlength=len(values[0]))

    def mean(observation: Any) -> Array:
        return np.asarray(np.mean([voter.values(observation) for voter in voters], axis=0))

    return {"vote": EpsilonGreedy(votes, 0.0), "mean_q": EpsilonGreedy(mean, 0.0)}


def random_returns(task: Task, protocol: Protocol, seed: int) -> Arrays:
    """Return the returns of episodes with uniformly random actions, (N,): the zero of the scale."""
    config = TrainingConfig(task.env, steps=task.steps, wrappers=task.wrappers)
    env = Plan(config, task.portfolio.recipe()).env()
    policy = RandomPolicy(env.action_space)
    returns: list[float] = []
    steps = 0
    while steps < protocol.random_steps or len(returns) < 2:
        rng = seeding.generator(seed, "control", "random", len(returns))
        trajectory = esbas.play(env, policy, rng=rng, seed=int(rng.integers(2**31)))
        returns.append(float(trajectory.rewards.sum()))
        steps += len(trajectory)
    env.close()
    return {"returns": np.array(returns)}
