"""One cell: a task, a method and a seed. It runs in this process, writes no files, and returns small arrays."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import esbas
from esbas import seeding, session
from esbas.columns import Array
from esbas.experiments.control.protocol import Protocol, Task
from esbas.experiments.control.searches import Candidate, rungs_of, search
from esbas.experiments.control.setup import COMMIT, SEARCH, Method
from esbas.experiments.control.variants import separate
from esbas.learner import Learner, Policy, RandomPolicy
from esbas.learners import EpsilonGreedy
from esbas.training.policies.scoring import greedy
from esbas.training.runs.plan import Plan
from esbas.training.selectors import read_selector

LATE = 0.8
"""Who is in control after this share of the budget is who is evaluated at the end."""
Arrays = dict[str, Array]


@dataclass
class Episodes:
    """The episodes of a cell, in the order in which they were played."""

    starts: list[int] = field(default_factory=list)  # environment steps before each episode, of all members together
    values: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)  # in control
    faults: int = 0

    def add(self, member: int, start: int, record: esbas.EpisodeRecord) -> None:
        self.starts.append(start)
        self.values.append(record.value)
        self.lengths.append(record.length)
        self.members.append(member)
        self.faults += len(record.faults)

    def curve(self, steps: int, bins: int) -> Array:
        return binned_means(np.array(self.starts), np.array(self.values), steps=steps, bins=bins)

    def shares(self, members: int, *, since: float = 0.0) -> Array:
        """(K,): the share of each member in the environment steps of the episodes that start from `since` on."""
        late = np.array(self.starts) >= since
        steps = np.bincount(np.array(self.members)[late], weights=np.array(self.lengths)[late], minlength=members)
        return np.asarray(steps / max(steps.sum(), 1.0))


def binned_means(starts: Array, values: Array, *, steps: int, bins: int) -> Array:
    """(bins,): the mean of the episodes that start in each of the equal parts of the budget.

    Bins without an episode are interpolated linearly between their neighbours; before the first and after the last bin with an
    episode, the curve is constant.
    """
    places = np.minimum(starts * bins // steps, bins - 1)
    counts = np.bincount(places, minlength=bins)
    full = np.flatnonzero(counts)
    means = np.bincount(places, weights=values, minlength=bins)[full] / counts[full]
    return np.asarray(np.interp(np.arange(bins), full, means))


def run_cell(task: Task, method: Method, protocol: Protocol, seed: int) -> Arrays:
    """Train, evaluate, and return the results.

    Returns:
        `curve`, (bins,): mean returns; `final`: the mean return of greedy episodes on fresh seeds; `shares`, (K,): of control;
        `greedy`, (K,): as `final` for each member, NaN where it was not evaluated; `steps`, `episodes`, `faults`: counts; `cpu`:
        seconds of training. Chance has `vote` and `mean_q`, the greedy scores of all members together.
    """
    begin, episodes = time.thread_time(), Episodes()
    if method.family == SEARCH:
        learners, leader = _search(task, method, protocol, seed, episodes)
    else:
        run = build_run(task, method, seed)
        for record in run:
            episodes.add(run.selector.arms.index(record.arm), run.steps - record.length, record)
        learners = run.learners
        leader = int(episodes.shares(len(learners), since=LATE * task.steps).argmax())
        run.env.close()
    cpu = time.thread_time() - begin
    judge = _Judge(task, method, seed)
    chance = method.name == protocol.chance
    scores = np.full(len(learners), np.nan)
    for k, learner in enumerate(learners):
        if k == leader or task.evaluate_all:
            scores[k] = judge.score(greedy(learner))
    together = _together([greedy(learner) for learner in learners]) if chance else {}
    counts = {"steps": sum(episodes.lengths), "episodes": len(episodes.values), "faults": episodes.faults}
    found = {
        "curve": episodes.curve(task.steps, protocol.bins),
        "final": scores[leader],
        "shares": episodes.shares(len(learners)),
        "greedy": scores,
        "cpu": cpu,
    }
    found |= {name: judge.score(policy) for name, policy in together.items()} | counts
    judge.close()
    return {name: np.asarray(value) for name, value in found.items()}


def build_run(task: Task, method: Method, seed: int) -> esbas.Run:
    """The run of a method that is not a search."""
    plan = _plan(task, method, method.selector)
    if task.share_data:
        return plan.start(seed)
    env = plan.task()
    alone = [replace(plan.recipe, members=(member,)) for member in plan.recipe.members]
    learners = separate([learner for recipe in alone for learner in recipe.build(env, steps=task.steps, seed=seed)])
    arms = [learner.name for learner in learners]
    selector = read_selector(method.selector, arms, stationary=(), scale="auto", xi=None, epochs=(), seed=seed)
    keep = session.needs_data(learners, selector)
    return esbas.run(env, learners, selector, steps=task.steps, objective=esbas.total_return(), seed=seed, keep_data=keep)


def _plan(task: Task, method: Method, selector: str) -> Plan:
    return Plan(env_id=task.env, recipe=method.recipe, selector=selector, steps=task.steps, wrappers=method.wrappers)


def _search(task: Task, method: Method, protocol: Protocol, seed: int, episodes: Episodes) -> tuple[Sequence[Learner], int]:
    candidates = []
    for member in method.recipe.members:
        recipe = replace(method.recipe, members=(member,))
        plan = Plan(env_id=task.env, recipe=recipe, selector=f"fixed:{member.name}", steps=task.steps, wrappers=method.wrappers)
        candidates.append(Candidate(plan.start(seed)))
    share = protocol.commit_share if method.name == COMMIT else None
    rungs = rungs_of(len(candidates), task.steps, commit_share=share)
    best = search(candidates, rungs, report=episodes.add)
    for candidate in candidates:
        candidate.run.env.close()
    return [candidate.run.learners[0] for candidate in candidates], best


class _Judge:
    """Plays greedy episodes on a copy of the task. All policies of a seed play the same episodes, which nobody has trained on."""

    def __init__(self, task: Task, method: Method, seed: int) -> None:
        self._env, self._episodes, self._seed = _plan(task, method, method.selector).task(), task.final_episodes, seed

    def score(self, policy: Policy) -> float:
        """The mean return."""
        return final_score(self._env, policy, episodes=self._episodes, seed=self._seed)

    def close(self) -> None:
        self._env.close()


def final_score(env: Any, policy: Policy, *, episodes: int, seed: int) -> float:
    """The mean return of episodes on fresh seeds, which are the same for all policies of a run with this seed."""
    returns = []
    for number in range(episodes):
        rng = seeding.generator(seed, "control", "final", number)
        trajectory = esbas.play(env, policy, rng=rng, seed=int(rng.integers(2**31)))
        returns.append(float(trajectory.rewards.sum()))
    return float(np.mean(returns))


def _together(policies: Sequence[Policy]) -> dict[str, Policy]:
    """The majority vote of the members and the maximum of their mean values, if all of them have values of actions."""
    members = [policy for policy in policies if isinstance(policy, EpsilonGreedy)]
    if len(members) < len(policies):
        return {}

    def votes(observation: Any) -> Array:
        values = [member.values(observation) for member in members]
        return np.bincount([int(each.argmax()) for each in values], minlength=len(values[0]))

    def mean(observation: Any) -> Array:
        return np.asarray(np.mean([member.values(observation) for member in members], axis=0))

    return {"vote": EpsilonGreedy(votes, 0.0), "mean_q": EpsilonGreedy(mean, 0.0)}


def random_returns(task: Task, protocol: Protocol, seed: int) -> Arrays:
    """The returns of episodes with uniformly random actions, (N,): the zero of the scale."""
    env = Plan(env_id=task.env, recipe=task.portfolio.recipe(), steps=task.steps, wrappers=task.wrappers).task()
    policy, returns, steps = RandomPolicy(env.action_space), list[float](), 0
    while steps < protocol.random_steps or len(returns) < 2:
        rng = seeding.generator(seed, "control", "random", len(returns))
        trajectory = esbas.play(env, policy, rng=rng, seed=int(rng.integers(2**31)))
        returns.append(float(trajectory.rewards.sum()))
        steps += len(trajectory)
    env.close()
    return {"returns": np.array(returns)}
