"""The learners that take part in a run.

A learner that fails is dismissed for a while, and the run continues with the others. A fault is an
`Exception` that a learner raises, or an action outside the action space. Anything else, such as
Ctrl-C or `sys.exit`, ends the run.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from esbas._internal import archive, limits, schema, spaces
from esbas._internal.columns import Array
from esbas._internal.schema import COUNT, Number
from esbas.errors import FileError, SaveFileError, describe
from esbas.learner import Learner, Policy
from esbas.trajectory import Trajectory, TrajectorySet, Transition

LONGEST_DISMISSAL = 1024  # episodes

Act = Callable[[Any, np.random.Generator], tuple[Any, float]]
"""Chooses an action: (observation, rng) -> action and its log-probability."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a learner did wrong, and for how many episodes it is dismissed."""

    learner: str
    where: str  # "learn", "step", "policy", "act", "log_probs" or "state_dict"
    message: str
    dismissed: int


_FAULT = {"learner": str, "where": str, "message": str, "dismissed": COUNT}
_SAVED_LEARNER = {
    "learner": object,
    "fault": schema.AnyOf(_FAULT, None),
    "learnt": COUNT,
    "strikes": Number(min=0, max=10**6, whole=True),  # a dismissal is computed as a power of 2
    "away_until": COUNT,
}


class RosterLearner:
    """A learner in a run: its calls with their time limits, its current policy and its faults.

    Attributes:
        original: the learner as it was passed to the run.
        name: its name, which is the name of its arm.
        learn: learns from all trajectories. None if the learner is stationary, or learns from each
            transition.
        step: learns from one transition, or None.
        new_policy: returns the current policy of the learner.
        policy: the last good policy, or None.
        learnt: the trajectories that it has learnt from, if it only has `step`.
        strikes: its faults that led to a dismissal.
        away_until: the number of the last episode for which it is dismissed.
    """

    def __init__(self, learner: Learner, *, online: bool, learn_timeout: float | None) -> None:
        self.original: Any = learner
        self.name = learner.name
        seconds = getattr(learner, "learn_timeout", None)
        if seconds is None:
            seconds = learn_timeout
        if hasattr(learner, "limit_calls"):  # it can enforce a limit better than a timer can
            learner.limit_calls(seconds)
            seconds = None
        self.step: Callable[[Transition], None] | None = None
        self.learn: Callable[[TrajectorySet], None] | None = None
        if not learner.stationary:
            if online and hasattr(learner, "step"):
                self.step = limits.limited(learner.step, seconds)
            elif hasattr(learner, "learn"):
                self.learn = limits.limited(learner.learn, seconds)
            else:
                self.learn = limits.limited(self._step_through, seconds)
        self.new_policy: Callable[[], Policy] = limits.limited(learner.policy, seconds)
        self.policy: Policy | None = None
        self.learnt = 0
        self.strikes = 0
        self.away_until = 0
        self.try_policy()

    def try_policy(self) -> None:
        """Get the policy. If that fails, it is requested again in the episode that needs it."""
        with contextlib.suppress(Exception):
            self.policy = self.new_policy()

    def require_savable(self) -> None:
        """Raise a SaveFileError if the learner has no methods to save and load its state."""
        if not (hasattr(self.original, "state_dict") and hasattr(self.original, "load_state_dict")):
            raise SaveFileError(
                f"A learner needs `state_dict` and `load_state_dict` to be saved, but "
                f"{self.name!r} does not have both: add them; states are arrays and plain data."
            )

    def _step_through(self, data: TrajectorySet) -> None:
        """Pass what is new, transition by transition, to a learner that only has `step`."""
        for trajectory in data.since(self.learnt):
            self.learnt += 1
            for transition in trajectory.transitions():
                self.original.step(transition)


class Roster:
    """The learners of a run, and which of them may act.

    The n-th fault of a learner dismisses it for 2^(n-1) episodes (at most 1,024). It is neither
    chosen nor trained then, unless all are dismissed: then all may be chosen.

    Attributes:
        learners: all learners, by name.
        present: those that are not dismissed in this episode.
        actions: the allowed actions, see `spaces.allowed_actions`.
        number: the number of the current episode.
        faults: what went wrong in the current episode.
    """

    def __init__(
        self,
        learners: Iterable[Learner],
        *,
        action_space: Any,
        online: bool,
        learn_timeout: float | None = None,
    ) -> None:
        self._online = online
        self._learn_timeout = learn_timeout
        self._action_space = action_space
        self.actions = spaces.allowed_actions(action_space)
        self.number = 1
        self.faults: list[Fault] = []
        # What went wrong when the run was saved; the record of the next episode contains it.
        self._faults_of_saving: list[Fault] = []
        self.learners: dict[str, RosterLearner] = {}
        self.present: list[RosterLearner] = []
        self._any_dismissed = False
        for learner in learners:
            self.add(learner)

    def add(self, learner: Learner) -> None:
        """Add a learner, which is present at once."""
        self.learners[learner.name] = RosterLearner(
            learner, online=self._online, learn_timeout=self._learn_timeout
        )
        self._update_present()

    def remove(self, name: str) -> None:
        """Remove the learner with this name."""
        del self.learners[name]
        self._update_present()

    def begin_episode(self, number: int) -> None:
        """Start the episode with this number: dismissals may end, and there are no faults yet."""
        self.number = number
        self.faults = self._faults_of_saving
        self._faults_of_saving = []
        if self._any_dismissed:
            self._update_present()

    def _update_present(self) -> None:
        self.present = []
        for learner in self.learners.values():
            if self.number > learner.away_until:
                self.present.append(learner)
        self._any_dismissed = len(self.present) < len(self.learners)

    def available(self) -> list[str] | None:
        """Return the names of the learners that may be chosen; None for all."""
        if not self._any_dismissed or not self.present:
            return None
        return [learner.name for learner in self.present]

    def dismiss(self, learner: RosterLearner, where: str, fault: Exception | str) -> None:
        """Record a fault and dismiss the learner.

        Only the first fault in an episode extends the dismissal.

        Args:
            learner: the one that failed.
            where: the method, see `Fault`.
            fault: the error, or a text about what the learner did.
        """
        if learner.away_until <= self.number:
            learner.strikes += 1
            episodes = min(2 ** (learner.strikes - 1), LONGEST_DISMISSAL)
            learner.away_until = self.number + episodes
        left = learner.away_until - self.number
        self.faults.append(Fault(learner.name, where, describe(fault), left))
        # A new list, because callers may iterate over the old one.
        self.present = [other for other in self.present if other is not learner]
        self._any_dismissed = True

    def log_probs(self, trajectory: Trajectory, arm: str) -> Array | None:
        """Return the log-probabilities of a trajectory's actions under the policy of an arm, (T,).

        None if the policy cannot compute them.
        """
        learner = self.learners[arm]
        try:
            compute = getattr(learner.policy, "log_probs", None)
            if compute is None:
                return None
            found = np.asarray(compute(trajectory.observations[:-1], trajectory.actions), float)
            steps = len(trajectory)
            if found.shape != (steps,):
                raise TypeError(
                    f"log_probs returned an array of shape {found.shape} for {steps} actions"
                )
        except Exception as error:
            self.dismiss(learner, "log_probs", error)
            return None
        return found

    def random_act(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """Act at random, when all learners have failed."""
        del observation
        action = spaces.random_action(self._action_space, rng)
        return action, spaces.uniform_log_prob(self._action_space)

    def require_savable(self) -> None:
        """Raise a SaveFileError if a learner has no methods to save and load its state."""
        for learner in self.learners.values():
            learner.require_savable()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the learners and their faults so far.

        A learner whose `state_dict` fails is dismissed. The state contains its fault instead, and a
        resumed run starts with the learner as it was built.
        """
        return {name: self._state_of(learner) for name, learner in self.learners.items()}

    def _state_of(self, learner: RosterLearner) -> dict[str, Any]:
        learner.require_savable()
        state = None
        fault = None
        try:
            found = learner.original.state_dict()
            archive.check(found)
            state = found
        except FileError:
            # The disk is full, for instance: no learner failed, and the last save file stays valid.
            raise
        except Exception as error:
            self.dismiss(learner, "state_dict", error)
            fault = self.faults.pop()
            self._faults_of_saving.append(fault)
            _warn(fault, "its state is not in the save file")
        return {
            "learner": state,
            "fault": None if fault is None else asdict(fault),
            "learnt": learner.learnt,
            "strikes": learner.strikes,
            "away_until": learner.away_until,
        }

    def load_state_dict(self, state: dict[str, Any], *, number: int) -> None:
        """Restore what `state_dict` returned; episode `number` is the next one.

        If a learner cannot load its part, all learners get their old states back.
        """
        schema.check(state, dict.fromkeys(self.learners, _SAVED_LEARNER), "the saved learners")
        with contextlib.ExitStack() as stack:
            for name, learner in self.learners.items():
                if state[name]["fault"] is None:
                    learner.require_savable()
                    stack.enter_context(schema.restored_on_error(learner.original))
                    learner.original.load_state_dict(state[name]["learner"])
        for name, learner in self.learners.items():
            saved = state[name]
            learner.learnt = saved["learnt"]
            learner.strikes = saved["strikes"]
            learner.away_until = saved["away_until"]
            if saved["fault"] is not None:
                learner.learnt = 0  # it was not saved: it learns from all data again
                fault = Fault(**saved["fault"])
                self._faults_of_saving.append(fault)
                _warn(fault, "it starts as it was built")
            learner.try_policy()
        self.number = number
        self._update_present()


def _warn(fault: Fault, consequence: str) -> None:
    """Warn, too, because there may be no further episode whose record could contain the fault."""
    warnings.warn(
        f"Learner {fault.learner!r} could not be saved ({fault.message}): {consequence}.",
        stacklevel=5,
    )
