"""Scores: what policies achieve in episodes from which nobody learns."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from esbas import spaces
from esbas.errors import NotEpisodicError, SpaceError, describe
from esbas.faults import Act, end_fork, raise_unless_fault
from esbas.learner import Learner, Policy
from esbas.objective import Objective
from esbas.runner import acting, roll_out
from esbas.training.runs.episode_log import one_line


@dataclass
class Score:
    """The episodes of one policy."""

    values: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    played: int = 0  # environment steps, including those of an episode that did not end
    problem: str = ""  # why it stopped early


class Scorer:
    """Plays episodes on a copy of the task. A policy that fails, or does not end an episode, plays no further ones.

    Args:
        make: creates the task.
        objective: the value of an episode.
        stream: the generator of the episode with this number, from 1. All policies play the same episodes.
        limit: the steps after which an episode is given up.
        tick: called before every step.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        objective: Objective,
        *,
        stream: Callable[[int], np.random.Generator],
        limit: int,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._make, self._objective, self._stream, self._limit, self._tick = make, objective, stream, limit, tick
        self._task: _CountedTask | None = None

    def score(
        self,
        policies: Mapping[str, Callable[[], Policy]],
        *,
        episodes: int,
        allowance: float,
        at_least: int = 1,
        finals: float = 0.0,
    ) -> dict[str, Score]:
        """Play the first episode of every policy, then the second one, and so on.

        Args:
            policies: functions that return the policies.
            episodes: of each policy.
            allowance: environment steps of the policies without a problem. Another round of episodes starts only if one like
                the last would stay within them.
            at_least: rounds that are played in any case.
            finals: environment steps in which the better half plays up to twice as many episodes, then the better half of
                those, down to two policies (successive halving; Karnin et al., 2013); 0: no finals.
        """
        scores: dict[str, Score] = {name: Score() for name in policies}
        ready: dict[str, Policy] = {}
        for name, create in policies.items():
            self._try(scores[name], partial(_create, create, ready, name))
        self._rounds(scores, ready, episodes, allowance, at_least)
        playing = {name: score for name, score in scores.items() if not score.problem}
        while finals and (count := max(2, (len(playing) + 1) // 2)) < len(playing):
            names = sorted(playing, key=lambda name: self._rank(playing[name]), reverse=True)[:count]  # ties: the first
            playing = {name: playing[name] for name in names}
            self._rounds(playing, ready, 2 * max(len(score.values) for score in playing.values()), finals, 0)
            playing = {name: score for name, score in playing.items() if not score.problem}
        return scores

    def _rank(self, score: Score) -> float:
        return self._objective.score(float(np.mean(score.values)))

    def _rounds(
        self, scores: Mapping[str, Score], ready: Mapping[str, Policy], episodes: int, allowance: float, at_least: int
    ) -> None:
        """Play rounds of episodes until all have played this many, or the allowance is used up."""
        first = max((len(score.values) for score in scores.values()), default=0)
        start = total = last = 0
        if first:  # a round like those before
            start = total = sum(score.played for score in scores.values())
            last = total // first
        for number in range(first + 1, episodes + 1):
            if number > at_least and total - start + last > allowance:
                break
            before = total
            for name, score in scores.items():
                if not score.problem:
                    self._try(score, partial(self._play, ready[name], number, score))
            total = sum(score.played for score in scores.values() if not score.problem)
            last = total - before

    def close(self) -> None:
        if self._task is not None:
            with suppress(Exception):
                self._task.close()
            self._task = None

    def _try(self, score: Score, call: Callable[[], None]) -> None:
        """Call a function of foreign code; its errors become the problem of the score."""
        process = os.getpid()
        try:
            call()
        except NotEpisodicError:
            score.problem = f"an episode did not end within {self._limit:,} steps"
        except BaseException as error:
            end_fork(process)
            raise_unless_fault(error)
            score.problem = one_line(describe(error))
            self.close()  # the error may be the task's
        end_fork(process)

    def _play(self, policy: Policy, number: int, score: Score) -> None:
        if self._task is None:
            self._task = _CountedTask(self._make(), self._tick)
        task, rng = self._task, self._stream(number)
        before = task.steps
        try:
            observation, _ = task.reset(seed=int(rng.integers(2**31)))
            guard = spaces.allowed_actions(task.action_space), _refuse
            trajectory = roll_out(task, acting(policy), observation, rng=rng, max_steps=self._limit, guard=guard)
        finally:
            score.played += task.steps - before
        score.values.append(self._objective(trajectory))
        score.lengths.append(len(trajectory))


def greedy(learner: Learner) -> Policy:
    """The learner's policy without exploration, if it has one, otherwise its policy."""
    policy: Policy = getattr(learner, "greedy_policy", learner.policy)()
    return policy


def _create(create: Callable[[], Policy], ready: dict[str, Policy], name: str) -> None:
    ready[name] = create()


class _CountedTask:
    """A task that counts its steps."""

    def __init__(self, task: Any, tick: Callable[[], None]) -> None:
        self._task, self._tick, self.action_space, self.steps = task, tick, task.action_space, 0

    def reset(self, *, seed: int) -> Any:
        return self._task.reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.steps += 1
        self._tick()
        return self._task.step(action)

    def close(self) -> None:
        self._task.close()


def _refuse(error: BaseException | str) -> Act:
    if isinstance(error, BaseException):
        raise error
    raise SpaceError(f"a policy must act within the action space, but {error}: fix the policy")
