"""The loop: the paper's Pseudo-code 1, one episode after the other."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from esbas import seeding, spaces
from esbas.columns import read_only_copy
from esbas.errors import NotEpisodicError, SpaceError, require
from esbas.evidence import Evidence
from esbas.faults import Act, Fault, Member, Roster, end_fork
from esbas.learner import Policy
from esbas.objective import Objective
from esbas.selectors.selector import Selector
from esbas.trajectory import Trajectory, TrajectorySet, Transition


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """What happened in one episode."""

    number: int  # from 1
    arm: str  # the learner that was chosen to act
    value: float  # of the objective, in its own units
    length: int  # steps
    epoch: int
    terminated: bool
    truncated: bool
    faults: tuple[Fault, ...]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long a run may be. None: no limit."""

    episodes: int | None = None
    steps: int | None = None  # environment steps; the episode that reaches the limit is completed

    def __post_init__(self) -> None:
        for name, limit in (("episodes", self.episodes), ("steps", self.steps)):
            require(limit is None or limit >= 0, f"{name} >= 0, or None for no limit", **{name: limit})


class Loop(Iterator[EpisodeRecord]):
    """The parts of a run, and the episodes that they play until the budget is used up."""

    def __init__(
        self,
        env: Any,
        roster: Roster,
        selector: Selector,
        *,
        objective: Objective,
        budget: Budget,
        seed: int,
        max_steps: int,
        keep_data: bool,
    ) -> None:
        self.env, self.roster, self.selector, self.objective, self.budget = env, roster, selector, objective, budget
        self.seed, self.max_steps, self.keep_data = seed, max_steps, keep_data
        self.share(TrajectorySet())
        self.number = 0  # episodes so far
        self.steps = 0  # environment steps so far

    def share(self, data: TrajectorySet) -> None:
        """Use this set for the trajectories; members see it read-only."""
        self.data, self._shared = data, data.read_only()

    @property
    def done(self) -> bool:
        """Whether the budget of episodes or of steps is used up."""
        episodes, steps = self.budget.episodes, self.budget.steps
        return (episodes is not None and self.number >= episodes) or (steps is not None and self.steps >= steps)

    def __next__(self) -> EpisodeRecord:
        """One episode: learn if it is time, reset, ask, play, tell."""
        if self.done:
            raise StopIteration
        roster, selector, number = self.roster, self.selector, self.number + 1
        roster.number, roster.process = number, os.getpid()
        roster.faults, roster.faults_of_saving = roster.faults_of_saving, []
        if roster.dismissed:
            roster.begin_episode()
        self._learn()
        rng, seed = seeding.episode(self.seed, number)  # the same whatever the selector and the learners are
        observation, _ = self.env.reset(seed=seed)
        choice = selector.ask(among=roster.available() if roster.dismissed else None, context=observation)
        try:
            trajectory, as_chosen = self._play(roster.members[choice.arm], observation, rng)
            value = self.objective(trajectory)
            if self.keep_data:
                self.data.append(trajectory, arm=choice.arm)
            if os.getpid() != roster.process:  # a member forked
                end_fork(roster.process)
        except BaseException:  # the environment failed, or the user pressed Ctrl-C
            end_fork(roster.process)
            selector.withdraw(choice)
            raise
        if as_chosen:
            score = value if self.objective.maximize else -value
            evidence = self._evidence(trajectory, score, choice.arm) if selector.wants else None
            selector.tell(choice, score, evidence=evidence)
        else:  # the arm failed and others acted in its place: the value says nothing about it
            selector.withdraw(choice)
        length = len(trajectory.rewards)
        self.number, self.steps = number, self.steps + length
        ended, faults = (trajectory.terminated, trajectory.truncated), tuple(roster.faults)
        return EpisodeRecord(number, choice.arm, value, length, choice.epoch, *ended, faults)

    def _learn(self) -> None:
        """Let the learners learn if it is time: when an epoch starts, and online before each episode."""
        epoch = self.selector.claim_epoch()
        if epoch is None and not self.selector.online:
            return
        try:
            for member in self.roster.present if self.keep_data and self.number else ():
                if member.learn is not None:
                    try:
                        member.learn(self._shared)
                    except BaseException as error:  # whatever it is, the run continues; `blame` raises Ctrl-C again
                        self.roster.blame(member, "learn", error)
                    else:
                        self._renew(member)
        except BaseException:
            if epoch is not None:
                self.selector.release_epoch(epoch)
            raise
        if epoch is not None:
            self.selector.epoch_ready(epoch)

    def _renew(self, member: Member) -> None:
        """Take the member's new policy; if that fails, it keeps the last good one."""
        try:
            policy = member.new_policy()
            if not hasattr(policy, "act"):
                raise TypeError(f"policy() returned {policy!r}, which has no `act`")
            member.policy = policy
        except BaseException as error:
            self.roster.blame(member, "policy", error)

    def _play(self, chosen: Member, observation: Any, rng: np.random.Generator) -> tuple[Trajectory, bool]:
        """The rest of an episode after `reset`, and whether the chosen member acted in all of it."""
        actor: Member | None = chosen
        act = self._actions_of(chosen)

        def replace(error: BaseException | str) -> Act:
            nonlocal actor
            if actor is None:  # chance acted
                broken = SpaceError(f"an action space must contain its samples, but chance {error}: fix the space")
                raise error if isinstance(error, BaseException) else broken
            self.roster.blame(actor, "act", error)
            actor, substitute = self._substitute()
            return substitute

        if act is None:
            actor, act = self._substitute()
        see = self._show if self.selector.online else None
        guard = self.roster.actions, replace
        trajectory = roll_out(self.env, act, observation, rng=rng, max_steps=self.max_steps, see=see, guard=guard)
        return trajectory, actor is chosen

    def _actions_of(self, member: Member) -> Act | None:
        """What chooses the actions of this member in an episode; None if it fails."""
        if member.step is not None or member.policy is None:  # others get a new policy only after `learn`
            self._renew(member)
        try:
            return None if member.policy is None else acting(member.policy)
        except BaseException as error:
            self.roster.blame(member, "act", error)
            return None

    def _substitute(self) -> tuple[Member | None, Act]:
        """Another member that can act, or chance if there is none. Members that fail are no longer `present`."""
        while self.roster.present:
            member = self.roster.present[0]
            act = self._actions_of(member)
            if act is not None:
                return member, act
        return None, self.roster.random_act

    def _show(self, transition: Transition) -> None:
        """Every member that learns from transitions learns from this one, whoever acted."""
        for member in self.roster.present:
            if member.step is not None:
                try:
                    member.step(transition)
                except BaseException as error:
                    self.roster.blame(member, "step", error)

    def _evidence(self, trajectory: Trajectory, score: float, arm: str) -> Evidence:
        """Within an epoch policies are frozen, so each can say how probable it finds the actions."""
        if self.selector.online:
            return Evidence(trajectory=trajectory, value=score, arm=arm)
        on_any, of_this = self.roster.log_probs, partial(self.roster.log_probs, trajectory)
        return Evidence(trajectory=trajectory, value=score, arm=arm, log_probs_of=of_this, log_probs_on=on_any)


def play(
    env: Any,
    policy: Policy,
    *,
    rng: np.random.Generator,
    seed: int | None = None,
    max_steps: int = 100_000,
    see: Callable[[Transition], None] | None = None,
) -> Trajectory:
    """Play one episode; `see` is called with every transition as it happens."""
    observation, _ = env.reset(seed=seed)
    return roll_out(env, acting(policy), observation, rng=rng, max_steps=max_steps, see=see)


def acting(policy: Policy) -> Act:
    """What chooses the actions of one episode: calls `start`, and `act_with_log_prob` where the policy has it."""
    start = getattr(policy, "start", None)
    if start is not None:
        started = start()
        policy = policy if started is None else started
    both: Act | None = getattr(policy, "act_with_log_prob", None)
    if both is not None:
        return both
    act = policy.act
    return lambda observation, rng: (act(observation, rng), math.nan)


def roll_out(
    env: Any,
    act: Act,
    observation: Any,
    *,
    rng: np.random.Generator,
    max_steps: int,
    see: Callable[[Transition], None] | None = None,
    guard: tuple[Any, Callable[[BaseException | str], Act]] | None = None,
) -> Trajectory:
    """The steps of an episode after `reset`.

    What policies and `see` are given is read-only, and what is stored is a copy, so no member can change what others see.

    Args:
        env: the environment, just reset.
        act: chooses actions, see `acting`.
        observation: the first one.
        rng: the generator for `act`.
        max_steps: an episode that takes longer is an error.
        see: called with every transition.
        guard: the allowed actions, and a function that returns a substitute for an `act` that failed or left them.
    """
    allowed, replace = guard or (None, None)
    discrete, observation = isinstance(allowed, range), _own(observation)
    observations, actions, rewards, log_probs = [observation], [], [], []
    for _ in range(max_steps):
        while True:
            try:
                chosen, log_prob = act(observation, rng)
                log_prob = float(log_prob)
                as_usual = type(chosen) is int if discrete else isinstance(chosen, np.ndarray)
                action = chosen if as_usual else spaces.plain_action(chosen, allowed)
                if allowed is None or action in allowed:
                    break
                error: BaseException | str = f"acted outside the action space: {chosen!r}"
            except BaseException as caught:
                if replace is None:
                    raise
                error = caught
            assert replace is not None
            act = replace(error)
        stored, (following, reward, terminated, truncated, _) = _own(action), env.step(action)  # which may change the action
        following, reward = _own(following), float(reward)
        if not math.isfinite(reward):
            require(False, "a reward is finite", "fix the environment", reward=reward)
        if see is not None:
            see(Transition(observation, stored, reward, following, terminated, truncated, log_prob))
        observations.append(following)
        actions.append(stored)
        rewards.append(reward)
        log_probs.append(log_prob)
        observation = following
        if terminated or truncated:
            seen, taken, received, logged = map(np.array, (observations, actions, rewards, log_probs))
            for column in (seen, taken, received, logged):
                column.flags.writeable = False
            return Trajectory(seen, taken, received, bool(terminated), bool(truncated), logged)
    remedy = "raise max_steps, or wrap the environment in gymnasium.wrappers.TimeLimit"
    raise NotEpisodicError(f"an episode must end within max_steps={max_steps} steps, but did not: {remedy}")


def _own(value: Any) -> Any:
    """A read-only copy: an environment or a policy may write its next value into the same memory."""
    if type(value) is np.ndarray:  # by far the most frequent kinds first
        value = value.copy()
        value.flags.writeable = False
        return value
    return value if type(value) is int else read_only_copy(value)
