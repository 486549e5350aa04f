"""A learner in a process of its own: it may hang, crash or eat all memory, and the run goes on."""

import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from esbas import limits
from esbas.errors import IsolationError, TimeLimitError, require
from esbas.learner import Learner
from esbas.learners._child import PATIENCE, Child
from esbas.trajectory import TrajectorySet, Transition


class Isolated:
    """Builds a learner in a child process and is that learner to everybody here: what comes out is the same, bit by bit.

    A call that takes too long is ended with its process, and a process that dies (a crash in compiled code, no memory left) is
    noticed at once; both raise. The next call starts a new process from the last good state: the one after the last `learn` or
    some `step`, or as built, if there is none or if the learner cannot be saved.

    Args:
        make: builds the learner; called without arguments in the other process, so it must be a function at the top of a module
            (or `functools.partial` of one), and a program that uses it starts under `if __name__ == "__main__":`.
        time_limit: seconds that a call may take; None: the learner's own attribute, or else that of the run.
        snapshot_every: steps between two snapshots of the learner's state; `learn` is always followed by one.
    """

    # Which of these there are depends on the learner: `hasattr` tells how it learns and whether it can be saved.
    learn: Callable[[TrajectorySet], None]
    step: Callable[[Transition], None]
    greedy_policy: Callable[[], "IsolatedPolicy"]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]

    def __init__(self, make: Callable[[], Learner], *, time_limit: float | None = None, snapshot_every: int = 1000) -> None:
        limits.checked(time_limit)
        require(snapshot_every >= 1, "snapshot_every >= 1", snapshot_every=snapshot_every)
        self._child = Child(make)
        about = self._child.about
        assert about is not None
        self.name, self.stationary = about.name, about.stationary
        self.observation_space, self.action_space = about.observation_space, about.action_space
        self.time_limit = about.time_limit if time_limit is None else time_limit
        self._snapshot_every, self._steps = snapshot_every, 0
        self._savable = "state_dict" in about.methods
        self._data: TrajectorySet | None = None  # the set whose trajectories were sent
        self.limit_calls(self.time_limit)
        for method in about.methods:
            setattr(self, method, getattr(self, f"_{method}"))

    def limit_calls(self, seconds: float | None) -> None:
        """Let each call take so long: a run tells its limit here, for a process can be killed wherever it hangs."""
        self._child.seconds = limits.checked(seconds)

    def policy(self) -> "IsolatedPolicy":
        """The current policy, which acts in the other process."""
        return _policy(self._child, "policy")

    def close(self) -> None:
        """End the process now; otherwise it ends with this object or with the program."""
        self._child.kill()

    def _greedy_policy(self) -> "IsolatedPolicy":
        return _policy(self._child, "greedy_policy")

    def _learn(self, data: TrajectorySet) -> None:
        """Learn from all trajectories so far; only those that are new travel."""
        self._child.start()
        since = self._child.trajectories if data is self._data else 0
        self._data = data
        self._child.call("learn", since, [(data[k], data.arms[k]) for k in range(since, len(data))])
        self._keep()

    def _step(self, transition: Transition) -> None:
        """Learn from one transition."""
        self._child.call("step", transition)
        self._steps += 1
        if self._steps % self._snapshot_every == 0:
            self._keep()

    def _keep(self) -> None:
        """Take a snapshot."""
        if self._savable:
            self._child.snapshot = self._child.call("state_dict", seconds=PATIENCE)

    def _state_dict(self) -> dict[str, Any]:
        """The learner's state, or the last good one if its process is gone: that is what it will go on with."""
        if self._child.running:
            try:
                self._keep()
            except (IsolationError, TimeLimitError):
                if self._child.running:
                    raise
        if self._child.snapshot is None:
            self._keep()
        assert self._child.snapshot is not None
        return dict(pickle.loads(self._child.snapshot))  # noqa: S301  # from a process of ours

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the learner that `state_dict` told of."""
        snapshot = pickle.dumps(state)
        self._child.call("load_state_dict", snapshot, seconds=PATIENCE)
        self._child.snapshot = snapshot


class IsolatedPolicy:
    """A policy in another process. If that one is gone, it goes on as the policy of the learner's last good state."""

    def __init__(self, child: Child, kind: str, number: int, starts: bool) -> None:
        self._child, self._kind, self._starts = child, kind, starts
        self._hold(number)

    def _hold(self, number: int) -> None:
        self._number, self._generation = number, self._child.generation
        weakref.finalize(self, self._child.drop, self._generation, number).atexit = False

    def _found(self) -> int:
        """Its number over there."""
        self._child.start()
        if self._generation != self._child.generation:
            self._hold(self._child.call("policy", self._kind)[0])
        return self._number

    def start(self) -> None:
        """An episode begins."""
        if self._starts:
            self._child.call("start", self._found())

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """The action to take."""
        return self._child.call("act", self._found(), observation, rng=rng)


class TellingPolicy(IsolatedPolicy):
    """One that can tell probabilities."""

    def probability(self, observation: Any, action: Any) -> float:
        """Of an action."""
        return float(self._child.call("probability", self._found(), observation, action))


def _policy(child: Child, kind: str) -> IsolatedPolicy:
    number, starts, tells = child.call("policy", kind)
    return (TellingPolicy if tells else IsolatedPolicy)(child, kind, number, starts)
