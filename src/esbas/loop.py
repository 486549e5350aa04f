"""The loop: the paper's Pseudo-code 1, one episode after the other."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import seeding
from esbas._internal import spaces, values
from esbas._internal.columns import Array, frozen, read_only_copy
from esbas._internal.env_checks import EnvChecks, broken, wrong_reward, wrong_step
from esbas.errors import NotEpisodicError, SpaceError
from esbas.evidence import Evidence
from esbas.learner import Policy
from esbas.objective import Objective
from esbas.roster import Act, Fault, Roster, RosterLearner
from esbas.selectors.choice import Choice
from esbas.selectors.selector import Selector
from esbas.trajectory import NO_INFOS, InfoRecorder, Trajectory, TrajectorySet, Transition

LONG_EPISODE = 10_000
"""Steps of an episode after which a warning is due, if the environment has no time limit."""
SHORT_EPISODE = 1_000
"""Steps of an episode that is never called long."""
_MOST_LAYERS = 100  # of wrappers
_IN_TRAINING = "give --max-episode-steps 1000, for example (in Python max_episode_steps=1000)"
_IN_RUN = "wrap it in gymnasium.wrappers.TimeLimit"


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """What happened in one episode."""

    number: int  # from 1
    learner: str  # that was chosen to act
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
    # Environment steps. The episode that reaches the limit is completed, unless it is very long:
    # see `length_of_cut`.
    steps: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("episodes", self.episodes), ("steps", self.steps)):
            if limit is not None:
                number = values.whole(name, limit, at_least=0)
                object.__setattr__(self, name, number)  # the dataclass is frozen


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
        max_episode_steps: int,
        keep_data: bool,
    ) -> None:
        self.env = env
        self.roster = roster
        self.selector = selector
        self.objective = objective
        self.budget = budget
        self.seed = seed
        self.max_episode_steps = max_episode_steps
        self.keep_data = keep_data
        self.share(TrajectorySet())
        self.number = 0  # episodes so far
        self.steps = 0  # environment steps so far
        self.note: Callable[[str], None] = _warn  # receives what a user should know, once each
        # Whether episodes are truncated after `max_episode_steps`. Otherwise, longer ones raise an
        # error: nothing is lost while the caller has the run.
        self.truncates = False
        self._checks = EnvChecks(env)
        self._has_time_limit = time_limit(env) is not None
        self._may_be_long = may_be_long(env)
        self._is_warned = False

    def share(self, data: TrajectorySet) -> None:
        """Use this set for the trajectories. Learners see a read-only view of it."""
        self.data = data
        self._shared = data.read_only()

    @property
    def done(self) -> bool:
        """Whether the budget of episodes or of steps is used up."""
        episodes = self.budget.episodes
        if episodes is not None and self.number >= episodes:
            return True
        steps = self.budget.steps
        return steps is not None and self.steps >= steps

    def __next__(self) -> EpisodeRecord:
        """Play one episode: learn if it is time, reset, ask, play, tell."""
        if self.done:
            raise StopIteration
        number = self.number + 1
        self.roster.begin_episode(number)
        self._learn()

        # These random numbers are the same whatever the selector and the learners are.
        rng, seed = seeding.episode(self.seed, number)
        observation = self._checks.reset(self.env, seed=seed)
        choice = self.selector.ask(among=self.roster.available(), context=observation)
        try:
            chosen = self.roster.learners[choice.arm]
            trajectory, as_chosen = self._play(chosen, observation, rng)
            has_faults = bool(self.roster.faults)
            self._checks.check_episode(trajectory.observations, suspicious=has_faults)
            value = self.objective(trajectory)
            if self.keep_data:
                self.data.append(trajectory, arm=choice.arm)
        except BaseException:  # the environment failed, or the user pressed Ctrl-C
            self.selector.withdraw(choice)
            raise
        if as_chosen:
            self._tell(choice, value, trajectory)
        else:
            # The chosen learner failed and others acted: the value is not about this arm.
            self.selector.withdraw(choice)

        self.number = number
        length = len(trajectory)
        self.steps += length
        return EpisodeRecord(
            number=number,
            learner=choice.arm,
            value=value,
            length=length,
            epoch=choice.epoch,
            terminated=trajectory.terminated,
            truncated=trajectory.truncated,
            faults=tuple(self.roster.faults),
        )

    def _learn(self) -> None:
        """Let the learners learn if it is time: when an epoch starts; online, in each episode."""
        epoch = self.selector.claim_epoch()
        if epoch is None and not self.selector.online:
            return
        try:
            if self.keep_data and self.number > 0:
                self._learn_from_data()
        except BaseException:
            if epoch is not None:
                self.selector.release_epoch(epoch)
            raise
        if epoch is not None:
            self.selector.epoch_ready(epoch)

    def _learn_from_data(self) -> None:
        for learner in self.roster.present:
            if learner.learn is None:
                continue
            try:
                learner.learn(self._shared)
            except Exception as error:
                self.roster.dismiss(learner, "learn", error)
            else:
                self._renew_policy(learner)

    def _renew_policy(self, learner: RosterLearner) -> None:
        """Take the learner's new policy. If that fails, the learner keeps its last good one."""
        try:
            policy = learner.new_policy()
            if not hasattr(policy, "act"):
                raise TypeError(f"policy() returned {policy!r}, which has no `act`")
            learner.policy = policy
        except Exception as error:
            self.roster.dismiss(learner, "policy", error)

    def _play(
        self, chosen: RosterLearner, observation: Any, rng: np.random.Generator
    ) -> tuple[Trajectory, bool]:
        """Play an episode after `reset`, and return whether only the chosen learner acted, too."""
        actor: RosterLearner | None = chosen  # None: all learners failed, actions are random

        def replace(fault: Exception | str) -> Act:
            nonlocal actor
            if actor is None:
                raise _random_action_failed(fault)
            self.roster.dismiss(actor, "act", fault)
            actor, substitute = self._substitute()
            return substitute

        act = self._start(chosen)
        if act is None:
            actor, act = self._substitute()
        env = self._checks.checking(self.env) if self._checks.is_full else self.env
        trajectory = roll_out(
            env,
            guarded(act, self.roster.actions, replace),
            observation,
            rng=rng,
            max_episode_steps=self.max_episode_steps,
            see=self._show if self.selector.online else None,
            infos=self.objective.infos,
            length=self._length_rule(),
        )
        return trajectory, actor is chosen

    def _length_rule(self) -> "LengthRule | None":
        """Return when the next episode is called long, and when it is cut; None for neither."""
        budget = self.budget.steps
        cut_after = self.max_episode_steps if self.truncates else None
        on_cut: Callable[[int], None] = _say_nothing
        warn_after = None
        if self._may_be_long:
            if not self._is_warned and not self._has_time_limit:
                warn_after = LONG_EPISODE
                if budget is not None:
                    warn_after = min(warn_after, max(SHORT_EPISODE, budget // 2))
            if budget is not None:
                length = length_of_cut(budget, self.steps)
                if cut_after is None or length < cut_after:
                    cut_after = length
                    on_cut = self._note_cut
        if warn_after is None and cut_after is None:
            return None
        return LengthRule(
            warn_after=warn_after,
            cut_after=cut_after,
            on_warning=self._warn_of_long_episode,
            on_cut=on_cut,
        )

    def _warn_of_long_episode(self, length: int) -> None:
        self._is_warned = True
        self.note(
            f"Episode {self.number + 1:,} has not ended after {length:,} steps: if the environment "
            f"never ends an episode, {self._remedy}."
        )

    def _note_cut(self, length: int) -> None:
        self.note(
            f"Episode {self.number + 1:,} was cut after {length:,} steps, because the budget of "
            f"{self.budget.steps:,} steps is used up: if the environment never ends an episode, "
            f"{self._remedy}."
        )

    @property
    def _remedy(self) -> str:
        return _IN_TRAINING if self.truncates else _IN_RUN

    def _start(self, learner: RosterLearner) -> Act | None:
        """Return what chooses the learner's actions in this episode, or None if that fails."""
        # Learners without `step` got their new policy after `learn`.
        if learner.step is not None or learner.policy is None:
            self._renew_policy(learner)
        if learner.policy is None:
            return None
        try:
            return acting(learner.policy)
        except Exception as error:
            self.roster.dismiss(learner, "act", error)
            return None

    def _substitute(self) -> tuple[RosterLearner | None, Act]:
        """Return another learner and what chooses its actions; if all fail, None and chance."""
        while self.roster.present:
            learner = self.roster.present[0]
            act = self._start(learner)
            if act is not None:
                return learner, act
            # A learner that failed is no longer present.
        return None, self.roster.random_act

    def _show(self, transition: Transition) -> None:
        """Let every learner with `step` learn from this transition, whoever acted."""
        for learner in self.roster.present:
            if learner.step is None:
                continue
            try:
                learner.step(transition)
            except Exception as error:
                self.roster.dismiss(learner, "step", error)

    def _tell(self, choice: Choice, value: float, trajectory: Trajectory) -> None:
        score = self.objective.score(value)
        evidence = None
        if self.selector.wants:
            evidence = self._evidence(trajectory, score, choice.arm)
        self.selector.tell(choice, score, evidence=evidence)

    def _evidence(self, trajectory: Trajectory, score: float, arm: str) -> Evidence:
        if self.selector.online:
            return Evidence(trajectory=trajectory, value=score, arm=arm)

        # Within an epoch policies are frozen, so each of them can compute the probabilities
        # of actions that were taken before.
        def log_probs_of(arm: str) -> Any:
            return self.roster.log_probs(trajectory, arm)

        return Evidence(
            trajectory=trajectory,
            value=score,
            arm=arm,
            log_probs_of=log_probs_of,
            log_probs_on=self.roster.log_probs,
        )


class LengthRule:
    """When an episode is called long, and when it is cut.

    Args:
        warn_after: the steps after which `on_warning` is called; None: never.
        cut_after: the steps after which the episode is truncated; None: never.
        on_warning: called with the steps of the episode.
        on_cut: likewise.
    """

    def __init__(
        self,
        *,
        warn_after: int | None,
        cut_after: int | None,
        on_warning: Callable[[int], None],
        on_cut: Callable[[int], None],
    ) -> None:
        self._warn_after = warn_after
        self._cut_after = cut_after
        self._on_warning = on_warning
        self._on_cut = on_cut

    def next_mark(self, length: int) -> int:
        """Return the next number of steps at which `reach` is due; 0: never."""
        marks = [self._warn_after or 0, self._cut_after or 0]
        return min((mark for mark in marks if mark > length), default=0)

    def reach(self, length: int) -> bool:
        """Do what is due after this many steps, and return whether the episode is cut."""
        if length == self._cut_after:
            self._on_cut(length)
            return True
        self._on_warning(length)
        return False


def length_of_cut(budget: int, played: int) -> int:
    """Return the length at which an episode is cut, if its environment may never end one.

    An episode that starts in the first half of the budget is cut when the budget is used up. A
    later one is completed, as far as it is not much longer than the others can be: it is cut when
    it has taken half of the budget, but at least 1,000 and at most `LONG_EPISODE` steps.

    Args:
        budget: in steps.
        played: the steps before the episode.

    >>> length_of_cut(2_000, 0), length_of_cut(2_000, 1_900), length_of_cut(60_000, 59_000)
    (2000, 1000, 10000)
    """
    left = budget - played
    if 2 * left >= budget:
        return left
    return max(left, min(max(budget // 2, SHORT_EPISODE), LONG_EPISODE))


def may_be_long(env: Any) -> bool:
    """Return whether an episode may take more than `LONG_EPISODE` steps."""
    limit = time_limit(env)
    return limit is None or limit > LONG_EPISODE


def time_limit(env: Any) -> int | None:
    """Return the largest number of steps of an episode, if the environment or a wrapper says so."""
    limits = [getattr(env, "max_episode_steps", None)]
    layer = env
    for _ in range(_MOST_LAYERS):
        limits.append(getattr(layer, "_max_episode_steps", None))  # of a wrapper
        inner = getattr(layer, "env", None)
        if inner is None:
            break
        layer = inner
    limits.append(getattr(getattr(layer, "spec", None), "max_episode_steps", None))
    return min((limit for limit in limits if isinstance(limit, int)), default=None)


def play(
    env: Any,
    policy: Policy,
    *,
    rng: np.random.Generator,
    seed: int | None = None,
    max_episode_steps: int = 100_000,
    see: Callable[[Transition], None] | None = None,
    infos: Sequence[str] = (),
) -> Trajectory:
    """Play one episode.

    Args:
        env: any Gymnasium-style environment.
        policy: chooses the actions.
        rng: the generator of the policy.
        seed: for `env.reset`.
        max_episode_steps: an episode that takes longer is an error.
        see: called with every transition as it happens.
        infos: the keys of the info of each step that the trajectory keeps.
    """
    observation, _ = env.reset(seed=seed)
    return roll_out(
        env,
        acting(policy),
        observation,
        rng=rng,
        max_episode_steps=max_episode_steps,
        see=see,
        infos=infos,
    )


def acting(policy: Policy) -> Act:
    """Start an episode of the policy, and return what chooses its actions.

    Calls `start` and uses `act_with_log_prob` where the policy has them.
    """
    start = getattr(policy, "start", None)
    if start is not None:
        started = start()
        if started is not None:
            policy = started
    act_with_log_prob: Act | None = getattr(policy, "act_with_log_prob", None)
    if act_with_log_prob is not None:
        return act_with_log_prob
    act = policy.act
    return lambda observation, rng: (act(observation, rng), math.nan)


def guarded(act: Act, actions: Any, replace: Callable[[Exception | str], Act]) -> Act:
    """Return `act` with a check of its actions and a replacement when it fails.

    Args:
        act: chooses actions, see `acting`.
        actions: the allowed ones, see `spaces.allowed_actions`; None: any.
        replace: called with the error, or with a text about an action that is not allowed.
            Returns what chooses the actions from then on.
    """
    usual = int if isinstance(actions, range) else np.ndarray

    def guarded_act(observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        nonlocal act
        while True:
            try:
                chosen, log_prob = act(observation, rng)
                log_prob = float(log_prob)  # an error here is a fault, too
                action = chosen
                if type(chosen) is not usual:
                    action = spaces.plain_action(chosen, actions)
                if actions is None or action in actions:
                    return action, log_prob
                fault: Exception | str = f"acted outside the action space: {chosen!r}"
            except Exception as error:
                fault = error
            act = replace(fault)

    return guarded_act


def roll_out(
    env: Any,
    act: Act,
    observation: Any,
    *,
    rng: np.random.Generator,
    max_episode_steps: int,
    see: Callable[[Transition], None] | None = None,
    infos: Sequence[str] = (),
    length: LengthRule | None = None,
) -> Trajectory:
    """Play an episode after `reset`.

    What `act` and `see` are given is read-only, and what is stored is a copy, so no learner can
    change what others see.

    Args:
        env: the environment, just reset.
        act: chooses actions, see `acting`.
        observation: the first one.
        rng: the generator for `act`.
        max_episode_steps: an episode that takes longer is an error.
        see: called with every transition.
        infos: the keys of the info of each step that the trajectory keeps.
        length: when the episode is called long, and when it is cut. Default: never.
    """
    observation = _own(observation)
    observations = [observation]
    actions = []
    rewards = []
    log_probs = []
    recorder = InfoRecorder(infos) if infos else None
    mark = 0 if length is None else length.next_mark(0)
    for number in range(1, max_episode_steps + 1):
        action, log_prob = act(observation, rng)
        log_prob = float(log_prob)
        stored = _own(action)  # a copy, because `env.step` may change the action
        result = env.step(action)
        try:
            following, reward, terminated, truncated, info = result
        except (TypeError, ValueError) as error:
            raise wrong_step(env, result) from error
        following = _own(following)
        try:
            reward = float(reward)
        except (TypeError, ValueError) as error:
            raise wrong_reward(env, reward) from error
        if not math.isfinite(reward):
            raise broken(env, f"must return finite rewards, but returned {reward}: fix `step`")
        if recorder is not None:
            recorder.add(info)
        if number == mark and length is not None:
            is_over = terminated or truncated
            truncated = truncated or (not is_over and length.reach(number))
            mark = length.next_mark(number)
        if see is not None:
            see(Transition(observation, stored, reward, following, terminated, truncated, log_prob))
        observations.append(following)
        actions.append(stored)
        rewards.append(reward)
        log_probs.append(log_prob)
        observation = following
        if terminated or truncated:
            return Trajectory(
                observations=_stacked(observations, env),
                actions=frozen(actions),
                rewards=frozen(rewards),
                terminated=bool(terminated),
                truncated=bool(truncated),
                log_probs=frozen(log_probs),
                infos=NO_INFOS if recorder is None else recorder.columns(),
            )
    raise NotEpisodicError(
        f"An episode did not end within {max_episode_steps} steps: raise `max_episode_steps`, "
        "or wrap the environment in gymnasium.wrappers.TimeLimit."
    )


def _stacked(observations: list[Any], env: Any) -> Array:
    try:
        return frozen(observations)
    except ValueError as error:  # they have different shapes
        first = np.shape(observations[0])
        for observation in observations:
            shape = np.shape(observation)
            if shape != first:
                raise broken(
                    env,
                    "must return observations of one shape, but returned one of the shape "
                    f"{shape} after one of the shape {first}: fix `step`",
                ) from error
        raise


def _say_nothing(_: int) -> None:
    pass


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def _own(value: Any) -> Any:
    """Return a read-only copy: the owner may write the next value into the same memory."""
    # The most frequent kinds come first, without a further call.
    if type(value) is np.ndarray:
        value = value.copy()
        value.setflags(write=False)
        return value
    if type(value) is int:
        return value
    return read_only_copy(value)


def _random_action_failed(fault: Exception | str) -> Exception:
    if isinstance(fault, Exception):
        return fault
    return SpaceError(
        f"An action space must contain its samples, but a random policy {fault}: fix the space."
    )
