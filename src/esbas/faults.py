"""The paper's first promise: an algorithm that fails is dismissed for a while, and the run continues with the others.

This file stands beside the loop: as long as all learners work, the loop only reads the attributes of its members.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import limits, schema, spaces
from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.learner import Learner, Policy
from esbas.schema import COUNT, Number
from esbas.trajectory import Trajectory, TrajectorySet, Transition

LONGEST_DISMISSAL = 1024

Act = Callable[[Any, np.random.Generator], tuple[Any, float]]
"""Chooses an action: (observation, rng) -> action and its log-probability."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a learner did wrong, and for how many episodes it is dismissed."""

    arm: str
    where: str  # "learn", "step", "policy", "act" or "log_probs"
    message: str
    dismissed: int


class Member:
    """A learner in a run, its calls with their time limits, its current policy and its faults.

    Attributes:
        learn: learns from all trajectories, or None: it is stationary, or it learns from each transition.
        step: learns from one transition, or None.
        new_policy: returns the current policy of the learner.
        policy: the last good policy, None if there is none.
    """

    def __init__(self, learner: Learner, *, online: bool, time_limit: float | None) -> None:
        self.learner, self.name = learner, learner.name
        own = getattr(learner, "time_limit", None)
        seconds = time_limit if own is None else own
        if hasattr(learner, "limit_calls"):  # it can enforce a limit better than a timer can
            learner.limit_calls(seconds)
            seconds = None
        steps = online and hasattr(learner, "step") and not learner.stationary
        learns = not steps and not learner.stationary
        self.step: Callable[[Transition], None] | None = limits.limited(learner.step, seconds) if steps else None  # type: ignore[attr-defined]
        lesson = learner.learn if hasattr(learner, "learn") else self._step_through
        self.learn: Callable[[TrajectorySet], None] | None = limits.limited(lesson, seconds) if learns else None
        self.new_policy: Callable[[], Policy] = limits.limited(learner.policy, seconds)
        self.policy: Policy | None = None
        self.learnt = 0  # trajectories that it has learnt from, if it only has `step`
        self.strikes = 0
        self.away_until = 0  # number of the last episode for which it is dismissed
        self.try_policy()

    def try_policy(self) -> None:
        """Get the policy; errors outside an episode are ignored, and the policy is requested again when it is needed."""
        with contextlib.suppress(Exception):
            self.policy = self.new_policy()

    def _step_through(self, data: TrajectorySet) -> None:
        """For learners that only have `step`: pass them what is new, transition by transition."""
        for trajectory in data.since(self.learnt):
            self.learnt += 1
            for transition in trajectory.transitions():
                self.learner.step(transition)  # type: ignore[attr-defined]  # a portfolio's learner has learn or step


class Roster:
    """The members of a run, and which of them may act.

    The n-th fault of a learner dismisses it for 2^(n-1) episodes (at most 1,024). It is neither chosen nor trained then, unless
    all are dismissed: then all may be chosen.
    """

    def __init__(self, learners: Iterable[Learner], *, action_space: Any, online: bool, time_limit: float | None = None) -> None:
        self._online, self._time_limit = online, time_limit
        self._action_space = action_space
        self.actions = spaces.allowed_actions(action_space)
        self.number = 1  # of the current episode
        self.faults: list[Fault] = []  # of the current episode
        self.members: dict[str, Member] = {}
        self.present: list[Member] = []  # not dismissed in this episode
        self.dismissed = False  # whether any member is
        for learner in learners:
            self.add(learner)

    def add(self, learner: Learner) -> None:
        self.members[learner.name] = Member(learner, online=self._online, time_limit=self._time_limit)
        self.begin_episode()

    def remove(self, name: str) -> None:
        del self.members[name]
        self.begin_episode()

    def begin_episode(self) -> None:
        """Find out which members are dismissed in episode `number`."""
        self.present = [member for member in self.members.values() if self.number > member.away_until]
        self.dismissed = len(self.present) < len(self.members)

    def available(self) -> list[str] | None:
        """The names of the members that may be chosen; None for all, also if all are dismissed."""
        return [member.name for member in self.present] or None

    def blame(self, member: Member, where: str, error: Exception | str) -> None:
        """Record a fault and dismiss the member. Only the first fault in an episode extends the dismissal."""
        if member.away_until <= self.number:
            member.strikes += 1
            member.away_until = self.number + min(2 ** (member.strikes - 1), LONGEST_DISMISSAL)
        message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        self.faults.append(Fault(member.name, where, message, member.away_until - self.number))
        self.present = [other for other in self.present if other is not member]
        self.dismissed = True

    def log_probs(self, trajectory: Trajectory, arm: str) -> Array | None:
        """Log-probabilities of a trajectory's actions under the arm's policy, (T,); None if it cannot compute them."""
        member = self.members[arm]
        compute = getattr(member.policy, "log_probs", None)
        if compute is None:
            return None
        try:
            found = np.asarray(compute(trajectory.observations[:-1], trajectory.actions), float)
            if found.shape != (len(trajectory),):
                raise TypeError(f"log_probs returned an array of shape {found.shape} for {len(trajectory)} actions")
        except Exception as error:
            self.blame(member, "log_probs", error)
            return None
        return found

    def random_act(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """Acts if all members have failed."""
        del observation
        return spaces.random_action(self._action_space, rng), spaces.uniform_log_prob(self._action_space)

    def state_dict(self) -> dict[str, Any]:
        """The learners' own states and their faults so far."""
        state = {}
        for name, member in self.members.items():
            own = _savable(member.learner).state_dict()
            state[name] = {"learner": own} | {key: getattr(member, key) for key in _SAVED}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. If a learner cannot load its part, all learners get their old states back."""
        shape = {"learner": object, "learnt": COUNT, "strikes": Number(min=0, max=10**6, whole=True), "away_until": COUNT}
        schema.check(state, dict.fromkeys(self.members, shape), "the saved learners")
        with contextlib.ExitStack() as stack:
            for name, member in self.members.items():
                learner = _savable(member.learner)
                stack.enter_context(schema.restored_on_error(learner))
                learner.load_state_dict(state[name]["learner"])
        for name, member in self.members.items():
            member.try_policy()
            for key in _SAVED:
                setattr(member, key, state[name][key])


_SAVED = "learnt", "strikes", "away_until"


def _savable(learner: Any) -> Any:
    if not (hasattr(learner, "state_dict") and hasattr(learner, "load_state_dict")):
        remedy = "add both; states are arrays and plain data"
        raise SaveFileError(
            f"a learner must have state_dict and load_state_dict to be saved, but {learner.name!r} does not: {remedy}"
        )
    return learner
