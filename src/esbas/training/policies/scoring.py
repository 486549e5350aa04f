"""Scores of policies: they play episodes without learning."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from esbas._internal import spaces
from esbas.errors import NotEpisodicError, SpaceError, describe
from esbas.learner import Learner, Policy
from esbas.loop import acting, guarded, roll_out
from esbas.objective import Objective
from esbas.roster import Act
from esbas.training.runs.episode_log import one_line


@dataclass
class Score:
    """The episodes of one policy."""

    values: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    played: int = 0  # environment steps, including those of an episode that did not end
    problem: str = ""  # why it stopped early


class Scorer:
    """Lets policies play episodes without learning.

    A policy that fails, or does not end an episode, plays no further ones.

    Args:
        env: the environment, which stays open.
        objective: the value of an episode.
        policies: functions that return the policies, by name.
        stream: the generator of the episode with this number, from 1. All policies play the same
            episodes.
        limit: the steps after which a policy counts as stuck.
        budget: the environment steps of all episodes together, including those that did not end.
        tick: called before every step.
    """

    def __init__(
        self,
        env: Any,
        objective: Objective,
        policies: Mapping[str, Callable[[], Policy]],
        *,
        stream: Callable[[int], np.random.Generator],
        limit: int,
        budget: float = math.inf,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._env = _CountedEnv(env, tick)
        self._objective = objective
        self._stream = stream
        self._limit = limit
        self._budget = budget
        self._ready: dict[str, Policy] = {}
        self.scores = {name: Score() for name in policies}
        for name, create in policies.items():
            self._try(name, partial(self._create, name, create))

    @property
    def remaining(self) -> float:
        """The environment steps that are left of the budget."""
        return self._budget - self._env.steps

    @property
    def valid(self) -> dict[str, Score]:
        """The scores of the policies without a problem."""
        return {name: score for name, score in self.scores.items() if not score.problem}

    def rank(self, value: float) -> float:
        """Return a value such that larger is better."""
        return self._objective.score(value)

    def play(self, episodes: int) -> None:
        """Let every policy play this many episodes, or fewer if the budget is used up before."""
        self.play_first(self.scores)
        for _ in range(1, episodes):
            if not self.play_round(self.valid):
                return

    def play_first(self, order: Iterable[str]) -> None:
        """Let every policy play its first episode.

        Each may use an equal part of what is left of the budget, so a policy that is stuck does
        not use up the steps of the others. What short episodes leave over is for later ones.

        Args:
            order: the names of the policies. The last ones may get more steps.
        """
        waiting = [name for name in order if not self.scores[name].problem]
        while waiting:
            allowed = self.remaining // len(waiting)
            name = waiting.pop(0)
            self._try(name, partial(self._play, name, 1, min(self._limit, allowed)))

    def play_round(self, names: Iterable[str]) -> bool:
        """Let policies play one more episode each, all of them the same one.

        Returns False if the budget is not large enough for it. Then no value is added.
        """
        playing = [self.scores[name] for name in names]
        expected = sum(score.played / len(score.values) for score in playing)
        if not playing or expected > self.remaining:
            return False
        number = 1 + len(playing[0].values)
        for name in names:
            is_cut = self._play_within_budget(name, number)
            if is_cut:
                for score in playing:
                    del score.values[number - 1 :]
                    del score.lengths[number - 1 :]
                return False
        return True

    def _play_within_budget(self, name: str, number: int) -> bool:
        """Let a policy play an episode, and return whether it was cut at the end of the budget.

        That is no problem of the policy, because episodes of it have ended before.
        """
        allowed = min(self._limit, self.remaining)
        if allowed < 1:
            return True
        self._try(name, partial(self._play, name, number, allowed))
        score = self.scores[name]
        if score.problem == _cut(allowed):
            score.problem = ""
            return True
        return False

    def _try(self, name: str, call: Callable[[], None]) -> None:
        """Call a function of a plug-in; its errors become the problem of the score."""
        try:
            call()
        except Exception as error:
            self.scores[name].problem = one_line(describe(error))

    def _create(self, name: str, create: Callable[[], Policy]) -> None:
        self._ready[name] = create()

    def _play(self, name: str, number: int, allowed: float) -> None:
        env = self._env
        score = self.scores[name]
        if allowed < 1:
            score.problem = _cut(0)
            return
        rng = self._stream(number)
        before = env.steps
        try:
            observation, _ = env.reset(seed=int(rng.integers(2**31)))
            actions = spaces.allowed_actions(env.action_space)
            act = guarded(acting(self._ready[name]), actions, _refuse)
            trajectory = roll_out(
                env,
                act,
                observation,
                rng=rng,
                max_episode_steps=int(allowed),
                infos=self._objective.infos,
            )
        except NotEpisodicError:
            is_stuck = allowed >= self._limit
            score.problem = _not_ended(allowed) if is_stuck else _cut(allowed)
            return
        finally:
            score.played += env.steps - before
        score.values.append(self._objective(trajectory))
        score.lengths.append(len(trajectory))


def greedy(learner: Learner) -> Policy:
    """Return the learner's policy without exploration, if it has one, otherwise its policy."""
    policy: Policy = getattr(learner, "greedy_policy", learner.policy)()
    return policy


def _not_ended(allowed: float) -> str:
    return f"an episode did not end within {int(allowed):,} steps"


def _cut(allowed: float) -> str:
    return f"an episode did not end within the {int(allowed):,} steps that the evaluation had left"


class _CountedEnv:
    """An environment that counts its steps."""

    def __init__(self, env: Any, tick: Callable[[], None]) -> None:
        self._env = env
        self._tick = tick
        self.action_space = env.action_space
        self.steps = 0

    def reset(self, *, seed: int) -> Any:
        return self._env.reset(seed=seed)

    def step(self, action: Any) -> Any:
        self.steps += 1
        self._tick()
        return self._env.step(action)


def _refuse(error: Exception | str) -> Act:
    if isinstance(error, Exception):
        raise error
    raise SpaceError(f"A policy must act within the action space, but {error}: fix the policy.")
