"""The paper's first promise: an algorithm that fails is dismissed for a while, and the run continues with the others.

This file stands beside the loop: as long as all learners work, the loop only reads the attributes of its members.
"""

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from types import CodeType
from typing import Any

import numpy as np

from esbas import archive, limits, schema, spaces
from esbas.columns import Array
from esbas.errors import FileError, SaveFileError, describe
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
    where: str  # "learn", "step", "policy", "act", "log_probs" or "state_dict"
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
        process = os.getpid()
        try:
            self.policy = self.new_policy()
        except BaseException as error:
            end_fork(process)
            raise_unless_fault(error)
        end_fork(process)

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
        self.process = os.getpid()  # that plays the current episode
        self.faults: list[Fault] = []  # of the current episode
        self.faults_of_saving: list[Fault] = []  # since then; the next record contains them
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

    def blame(self, member: Member, where: str, error: BaseException | str) -> None:
        """Record a fault and dismiss the member. Only the first fault in an episode extends the dismissal.

        Errors that are not the member's fault, such as Ctrl-C, are raised again.
        """
        end_fork(self.process)
        raise_unless_fault(error)
        if member.away_until <= self.number:
            member.strikes += 1
            member.away_until = self.number + min(2 ** (member.strikes - 1), LONGEST_DISMISSAL)
        self.faults.append(Fault(member.name, where, describe(error), member.away_until - self.number))
        self.present = [other for other in self.present if other is not member]
        self.dismissed = True

    def log_probs(self, trajectory: Trajectory, arm: str) -> Array | None:
        """Log-probabilities of a trajectory's actions under the arm's policy, (T,); None if it cannot compute them."""
        member = self.members[arm]
        try:
            compute = getattr(member.policy, "log_probs", None)
            if compute is None:
                return None
            found = np.asarray(compute(trajectory.observations[:-1], trajectory.actions), float)
            if found.shape != (len(trajectory),):
                raise TypeError(f"log_probs returned an array of shape {found.shape} for {len(trajectory)} actions")
        except BaseException as error:
            self.blame(member, "log_probs", error)
            return None
        return found

    def random_act(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """Acts if all members have failed."""
        del observation
        return spaces.random_action(self._action_space, rng), spaces.uniform_log_prob(self._action_space)

    def state_dict(self) -> dict[str, Any]:
        """The learners' own states and their faults so far.

        A learner whose `state_dict` fails is blamed. The state contains its fault instead, and a resumed run starts with the
        learner as it was built.
        """
        return {name: self._state_of(member) for name, member in self.members.items()}

    def _state_of(self, member: Member) -> dict[str, Any]:
        state: dict[str, Any] = {"learner": None, "fault": None}
        learner, self.process = _savable(member.learner), os.getpid()
        try:
            own = learner.state_dict()
            end_fork(self.process)
            archive.check(own)
            state["learner"] = own
        except FileError:  # the disk is full, for instance: no learner is to blame, and the last save file stays valid
            raise
        except BaseException as error:
            self.blame(member, "state_dict", error)
            fault = self.faults.pop()
            self.faults_of_saving.append(fault)
            state["fault"] = asdict(fault)
            _warn(fault, "its state is not in the save file")
        return state | {key: getattr(member, key) for key in _SAVED}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. If a learner cannot load its part, all learners get their old states back."""
        counts = {"learnt": COUNT, "strikes": Number(min=0, max=10**6, whole=True), "away_until": COUNT}
        fault = {"arm": str, "where": str, "message": str, "dismissed": COUNT}
        shape = {"learner": object, "fault": schema.AnyOf(fault, None)} | counts
        schema.check(state, dict.fromkeys(self.members, shape), "the saved learners")
        with contextlib.ExitStack() as stack:
            for name, member in self.members.items():
                if state[name]["fault"] is None:
                    learner = _savable(member.learner)
                    stack.enter_context(schema.restored_on_error(learner))
                    _load(learner, state[name]["learner"])
        for name, member in self.members.items():
            saved = state[name]
            for key in _SAVED:
                setattr(member, key, saved[key])
            if saved["fault"] is not None:  # it was not saved: it learns from all data again
                member.learnt = 0
                self.faults_of_saving.append(Fault(**saved["fault"]))
                _warn(self.faults_of_saving[-1], "it starts as it was built")
            member.try_policy()


_SAVED = "learnt", "strikes", "away_until"


def end_fork(process: int) -> None:
    """End this process if it is a fork of `process` that a learner has made: it must not continue as the program."""
    if os.getpid() != process:
        os._exit(1)


def raise_unless_fault(error: BaseException | str) -> None:
    """Raise the error again if no learner is to blame: Ctrl-C, a time limit around the run, an exit in a signal handler."""
    if isinstance(error, Exception | str):
        return
    if isinstance(error, KeyboardInterrupt | limits.Interruption) or _comes_from_signal(error):
        raise error


def _comes_from_signal(error: BaseException) -> bool:
    """Whether a signal handler of the program raised it, for instance `sys.exit` in a handler of SIGTERM."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    found: list[CodeType] = []
    trace = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    return not codes.isdisjoint(found)


def _warn(fault: Fault, consequence: str) -> None:
    """Also a warning, because there may be no further episode whose record could contain the fault."""
    warnings.warn(f"learner {fault.arm!r} could not be saved ({fault.message}): {consequence}", stacklevel=5)


def _load(learner: Any, state: dict[str, Any]) -> None:
    try:
        learner.load_state_dict(state)
    except Exception:
        raise
    except BaseException as error:
        raise_unless_fault(error)
        raise SaveFileError(
            f"learner {learner.name!r} must load its state, but {describe(error)}: fix its load_state_dict"
        ) from error


def _savable(learner: Any) -> Any:
    if not (hasattr(learner, "state_dict") and hasattr(learner, "load_state_dict")):
        remedy = "add both; states are arrays and plain data"
        raise SaveFileError(
            f"a learner must have state_dict and load_state_dict to be saved, but {learner.name!r} does not: {remedy}"
        )
    return learner
