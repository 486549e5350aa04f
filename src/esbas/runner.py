"""The loop: the paper's Pseudo-code 1, one episode after the other."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esbas import seeding
from esbas.errors import NotEpisodicError, require
from esbas.faults import Fault, Roster
from esbas.learner import Policy
from esbas.objective import Objective
from esbas.selectors import Selector
from esbas.trajectory import Trajectory, TrajectorySet, Transition


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """What happened in one episode."""

    number: int  # from 1
    arm: str  # who was chosen to act
    value: float  # of the objective, in its own units
    length: int  # steps
    epoch: int
    terminated: bool
    truncated: bool
    faults: tuple[Fault, ...]


@dataclass(kw_only=True)
class Loop:
    """The parts of a run, and the episodes that they play."""

    env: Any
    roster: Roster
    selector: Selector
    objective: Objective
    seed: int
    max_steps: int
    keep_data: bool
    data: TrajectorySet = field(default_factory=TrajectorySet)
    number: int = 0  # episodes so far
    steps: int = 0  # transitions so far
    learn_due: bool = False  # also after an interruption while learning

    def episodes(self) -> Iterator[EpisodeRecord]:
        """One episode after the other: ask; let learners learn if the choice says so; play; value; tell."""
        while True:
            choice = self.selector.ask(among=self.roster.start_episode(self.number + 1))
            self.learn_due |= choice.learn
            try:
                if self.learn_due:
                    self.roster.learn(self.data)
                    self.learn_due = False
                policy = self.roster.policy(choice.index)
                trajectory = self._play(policy)
                value = self.objective(trajectory)
                if self.keep_data:
                    self.data.append(trajectory, arm=choice.arm)
            except BaseException:  # the environment failed, or somebody pressed Ctrl-C
                self.selector.withdraw(choice)
                raise
            if policy.failed:  # others stood in for it: the value says nothing of the arm
                self.selector.withdraw(choice)
            else:
                self.selector.tell(choice, self.objective.score(value))
            self.number += 1
            self.steps += len(trajectory)
            ended, faults = (trajectory.terminated, trajectory.truncated), tuple(self.roster.faults)
            yield EpisodeRecord(self.number, choice.arm, value, len(trajectory), choice.epoch, *ended, faults)

    def _play(self, policy: Policy) -> Trajectory:
        """An episode's randomness depends on the run's seed and the episode's number alone, whoever acts."""
        rng, seed = seeding.episode(self.seed, self.number + 1)
        see = self.roster.step if self.selector.online else None
        return play(self.env, policy, rng=rng, seed=seed, max_steps=self.max_steps, see=see)


def play(
    env: Any,
    policy: Policy,
    *,
    rng: np.random.Generator,
    seed: int | None = None,
    max_steps: int = 100_000,
    see: Callable[[Transition], None] | None = None,
) -> Trajectory:
    """One episode; `see` is shown every transition as it happens."""
    tell = getattr(policy, "probability", None)
    observation, _ = env.reset(seed=seed)
    observation = _own(observation)
    observations, actions, rewards, probabilities = [observation], [], [], []
    for _ in range(max_steps):
        action = policy.act(observation, rng)
        probability = tell(observation, action) if tell else math.nan
        following, reward, terminated, truncated, _ = env.step(action)
        following, reward = _own(following), float(reward)
        require(math.isfinite(reward), "a reward is finite", "mend the environment", reward=reward)
        if see:
            see(Transition(observation, action, reward, following, terminated, truncated, probability))
        observations.append(following)
        actions.append(action)
        rewards.append(reward)
        probabilities.append(probability)
        observation = following
        if terminated or truncated:
            seen, done, received, told = map(np.array, (observations, actions, rewards, probabilities))
            return Trajectory(seen, done, received, bool(terminated), bool(truncated), told)
    remedy = "raise max_steps, or wrap the environment in gymnasium.wrappers.TimeLimit"
    raise NotEpisodicError(f"an episode must end within max_steps={max_steps} steps, but went on: {remedy}")


def _own(observation: Any) -> Any:
    """A copy of an array: an environment may write its next observation into the same one."""
    return observation.copy() if isinstance(observation, np.ndarray) else observation
