"""The paper's first promise: an algorithm that fails is dismissed for a while, and the run goes on with the others."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import limits, spaces
from esbas.errors import SaveFileError
from esbas.learner import Learner, Policy, Portfolio
from esbas.trajectory import TrajectorySet, Transition

LONGEST_DISMISSAL = 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """What a learner did wrong, and for how many episodes it is dismissed."""

    arm: str
    where: str  # "learn", "step", "policy" or "act"
    message: str
    dismissed: int


@dataclass
class _Member:
    """A learner and how it is doing."""

    learner: Learner
    steps: bool  # learns from each transition in this run
    policy: Policy | None = None  # the last good one
    learnt: int = 0  # how many trajectories it has learnt from, for learners that know `step` only
    strikes: int = 0
    away_until: int = 0  # number of the last episode for which it is dismissed

    def limit(self, seconds: float | None) -> None:
        """Prepare the calls that learn, each of which may take so long; without a limit they are the learner's own methods."""
        own = getattr(self.learner, "time_limit", None)
        seconds = seconds if own is None else own
        if hasattr(self.learner, "limit_calls"):  # it can keep a limit better than a timer can
            self.learner.limit_calls(seconds)
            seconds = None
        self.learn, self.ask = limits.limited(self._learn, seconds), limits.limited(self.learner.policy, seconds)
        if self.steps:
            self.step = limits.limited(self.learner.step, seconds)  # type: ignore[attr-defined]  # `steps` says that it has it

    def find_policy(self) -> None:
        """Outside of episodes nobody is blamed: who has no policy then is asked again when it is to act."""
        with contextlib.suppress(Exception):
            self.policy = self.ask()

    def _learn(self, data: TrajectorySet) -> None:
        """Learn from whole trajectories; a learner that knows `step` only is shown what is new, step by step."""
        if hasattr(self.learner, "learn"):
            self.learner.learn(data)
            return
        for trajectory in data.since(self.learnt):
            self.learnt += 1
            for transition in trajectory.transitions():
                self.learner.step(transition)  # type: ignore[attr-defined]  # a portfolio's learner has learn or step


class Roster:
    """The portfolio at work: every call to a learner goes through here, and none of them can end the run.

    The n-th fault of a learner dismisses it for 2^(n-1) episodes (at most 1,024): it is not chosen and learns nothing then,
    unless everyone is dismissed: then all may be chosen. A call that learns (`learn`, `step`, `policy`) and takes longer than
    `time_limit` seconds, or than the learner's own attribute of that name, is a fault like any other.
    """

    def __init__(self, portfolio: Portfolio, *, action_space: Any, online: bool, time_limit: float | None = None) -> None:
        self._online, self._time_limit = online, time_limit
        self.action_space, self.is_valid = action_space, spaces.membership(action_space)
        self.faults: list[Fault] = []  # of the current episode
        self._number = 0  # of the current episode
        self._members: list[_Member] = []
        self._steppers: list[_Member] = []  # those who learn from each transition now
        for learner in portfolio:
            self.add(learner)

    def add(self, learner: Learner) -> None:
        """One more member."""
        self._members.append(_Member(learner, steps=self._online and hasattr(learner, "step")))
        self._members[-1].limit(self._time_limit)
        self._members[-1].find_policy()

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names, in order."""
        return tuple(member.learner.name for member in self._members)

    @property
    def learners(self) -> list[Learner]:
        """The members themselves, in order."""
        return [member.learner for member in self._members]

    def remove(self, name: str) -> None:
        """One member less."""
        self._members = [member for member in self._members if member.learner.name != name]

    def start_episode(self, number: int) -> list[str] | None:
        """Begin an episode; returns the names of those who may act, None for all (also when everyone is dismissed)."""
        self._number, self.faults = number, []
        present = [member.learner.name for member in self._present()]
        return present if 0 < len(present) < len(self._members) else None

    def learn(self, data: TrajectorySet) -> None:
        """Everyone who learns from whole trajectories does, once there are any."""
        for member in self._present() if len(data) else []:
            if not member.steps and not member.learner.stationary:
                try:
                    member.learn(data)
                except Exception as error:  # whatever it is, the run goes on
                    self.blame(member, "learn", error)
                else:
                    self.refresh(member)

    def step(self, transition: Transition) -> None:
        """Everyone who learns from transitions does, whoever acted."""
        for member in self._steppers:
            try:
                member.step(transition)
            except Exception as error:
                self.blame(member, "step", error)

    def policy(self, index: int) -> "GuardedPolicy":
        """The policy of this member for one episode, guarded."""
        member, present = self._members[index], self._present()
        self._steppers = [each for each in present if each.steps and not each.learner.stationary]
        return GuardedPolicy(self, [member, *(other for other in present if other is not member)])

    def blame(self, member: _Member, where: str, error: Exception | str) -> None:
        """Note a fault and dismiss the member; a second fault in an episode, or one while dismissed, does not count again."""
        if member.away_until <= self._number:
            member.strikes += 1
            member.away_until = self._number + min(2 ** (member.strikes - 1), LONGEST_DISMISSAL)
        message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self.faults.append(Fault(member.learner.name, where, message, member.away_until - self._number))
        self._steppers = [other for other in self._steppers if other is not member]

    def refresh(self, member: _Member) -> None:
        """Take the member's new policy; if it has none to give, it keeps the last good one."""
        try:
            policy = member.ask()
            if not hasattr(policy, "act"):
                raise TypeError(f"policy() returned {policy!r}, which cannot act")
            member.policy = policy
        except Exception as error:
            self.blame(member, "policy", error)

    def _present(self) -> list[_Member]:
        return [member for member in self._members if self._number > member.away_until]

    def state_dict(self) -> dict[str, Any]:
        """The learners' own states and how they are doing."""
        state = {}
        for member in self._members:
            own = _savable(member.learner).state_dict()
            health = {key: getattr(member, key) for key in _HEALTH}
            state[member.learner.name] = {"learner": own} | health
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        for member in self._members:
            saved = state[member.learner.name]
            _savable(member.learner).load_state_dict(saved["learner"])
            member.find_policy()
            for key in _HEALTH:
                setattr(member, key, saved[key])


class GuardedPolicy:
    """A member's policy for one episode; if it fails, others stand in for the rest of the episode, and chance if all fail."""

    def __init__(self, roster: Roster, members: list[_Member]) -> None:
        self._roster, self._members, self._is_valid = roster, members, roster.is_valid
        self._act: Callable[[Any, np.random.Generator], Any] | None = None
        self._tell: Callable[[Any, Any], float] | None = None
        self.failed = False  # the first member did: the episode says nothing of it
        self._put_in_charge(0)

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """A valid action, whatever happens."""
        while self._act is not None:
            try:
                action = self._act(observation, rng)
                if self._is_valid(action):
                    return action
                self._fail(f"acted outside the action space: {action!r}")
            except Exception as error:
                self._fail(error)
        return spaces.random_action(self._roster.action_space, rng)

    def probability(self, observation: Any, action: Any) -> float:
        """Of the action, NaN if the policy cannot tell."""
        if self._tell is not None:
            try:
                return float(self._tell(observation, action))
            except Exception as error:
                self._fail(error)
        return math.nan

    def _put_in_charge(self, position: int) -> None:
        self._position = position
        if position == len(self._members):
            self._act = self._tell = None
            return
        member = self._members[position]
        if member.steps or member.policy is None:  # others have new policies after `learn` alone
            self._roster.refresh(member)
        if member.policy is None:
            self.failed = True
            self._put_in_charge(position + 1)
            return
        try:
            getattr(member.policy, "start", lambda: None)()
            self._act, self._tell = member.policy.act, getattr(member.policy, "probability", None)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception | str) -> None:
        self.failed = True
        self._roster.blame(self._members[self._position], "act", error)
        self._put_in_charge(self._position + 1)


_HEALTH = "learnt", "strikes", "away_until"


def _savable(learner: Any) -> Any:
    if not (hasattr(learner, "state_dict") and hasattr(learner, "load_state_dict")):
        remedy = "give it both, as arrays and plain data"
        raise SaveFileError(
            f"a learner must have state_dict and load_state_dict to be saved, but {learner.name!r} lacks them: {remedy}"
        )
    return learner
