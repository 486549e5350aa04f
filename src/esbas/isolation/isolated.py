"""A learner in a separate process."""

import pickle
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas._internal import limits
from esbas.errors import IsolationError, TimeLimitError, require
from esbas.isolation.child import STATE_TIMEOUT, Child
from esbas.isolation.server import PolicyInfo
from esbas.learner import Learner
from esbas.trajectory import TrajectorySet, Transition


class Isolated:
    """Builds a learner in a child process and forwards all calls to it.

    The results are bit-identical to those of the learner.

    A call that exceeds the time limit ends together with its process. If a process dies (a crash in
    compiled code, no memory left), the current call raises. The next call starts a new process from
    the last good state: that of the last `learn` or of a recent `step`, or the initial state if
    there is none or if the learner has no `state_dict`.

    It has exactly those optional methods and attributes that the learner has. In addition, it
    always has `learn_timeout`.

    Args:
        make: builds the learner. It is called without arguments in the child process, so it must be
            a function at the top of a module (or `functools.partial` of one), and the program must
            start under `if __name__ == "__main__":`.
        learn_timeout: the maximum duration of a call in seconds. Defaults to the learner's
            attribute, or else to the run's limit.
        snapshot_every: steps between two snapshots of the learner's state. `learn` is always
            followed by a snapshot.
    """

    name: str
    stationary: bool

    def __init__(
        self,
        make: Callable[[], Learner],
        *,
        learn_timeout: float | None = None,
        snapshot_every: int = 1000,
    ) -> None:
        limits.checked(learn_timeout)
        require(
            snapshot_every >= 1, f"`snapshot_every` must be at least 1, but got {snapshot_every!r}."
        )
        self._child = Child(make)
        info = self._child.info
        assert info is not None
        self.__dict__.update(info.attributes)
        self.learn_timeout: float | None = learn_timeout
        if learn_timeout is None:
            self.learn_timeout = info.attributes.get("learn_timeout")
        self._snapshot_every = snapshot_every
        self._steps = 0
        self._savable = "state_dict" in info.methods
        self._data: TrajectorySet | None = None  # the set whose trajectories were sent
        self.limit_calls(self.learn_timeout)
        for method in info.methods:
            # Methods that need more than forwarding are below: `_learn`, `_step`, ...
            forward = partial(self._child.call, "call_learner", method, label=method)
            setattr(self, method, getattr(self, f"_{method}", forward))

    def __getattr__(self, name: str) -> Any:
        # `self.name` would call this method again if the learner has no name yet.
        own_name = self.__dict__.get("name", "")
        raise AttributeError(f"The isolated learner {own_name!r} has no attribute {name!r}.")

    def __repr__(self) -> str:
        return f"<Isolated {self.__dict__.get('name', '')!r}>"

    def limit_calls(self, seconds: float | None) -> None:
        """Set the maximum duration of a call.

        A run passes its limit here, since only a process can be killed at any time.
        """
        self._child.seconds = limits.checked(seconds)

    def policy(self) -> "IsolatedPolicy":
        return self._policy("policy")

    def close(self) -> None:
        """End the process now. Otherwise it ends with this object or with the program."""
        self._child.kill()

    def _greedy_policy(self) -> "IsolatedPolicy":
        return self._policy("greedy_policy")

    def _policy(self, method: str) -> "IsolatedPolicy":
        create = partial(self._child.call, "policy", method, label=method)
        return IsolatedPolicy(self._child, create)

    def _learn(self, data: TrajectorySet) -> None:
        """Learn from all trajectories; only new ones are sent."""
        self._child.start()
        since = self._child.trajectories if data is self._data else 0
        self._data = data
        new = list(zip(data.since(since), data.arms[since:], strict=True))
        self._child.call("learn", since, new)
        self._take_snapshot()

    def _step(self, transition: Transition) -> None:
        self._child.call("call_learner", "step", transition, label="step")
        self._steps += 1
        if self._steps % self._snapshot_every == 0:
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        if self._savable:
            self._child.snapshot = self._child.call("state_dict", seconds=STATE_TIMEOUT)

    def _state_dict(self) -> dict[str, Any]:
        """Return the learner's state, or the last good one if its process is gone.

        The next process would continue from there.
        """
        if self._child.running:
            try:
                self._take_snapshot()
            except (IsolationError, TimeLimitError):
                if self._child.running:
                    raise
        if self._child.snapshot is None:
            self._take_snapshot()
        assert self._child.snapshot is not None
        # The bytes come from our child process.
        return dict(pickle.loads(self._child.snapshot))  # noqa: S301

    def _load_state_dict(self, state: dict[str, Any]) -> None:
        snapshot = pickle.dumps(state)
        self._child.call("load_state_dict", snapshot, seconds=STATE_TIMEOUT)
        self._child.snapshot = snapshot

    def _policy_state(self) -> dict[str, Any]:
        state = self._child.call(
            "call_learner", "policy_state", label="policy_state", seconds=STATE_TIMEOUT
        )
        return dict(state)

    def _load_policy_state(self, state: dict[str, Any]) -> None:
        """Load the state and take a snapshot, so that a new process continues from there."""
        self._child.call(
            "call_learner",
            "load_policy_state",
            state,
            label="load_policy_state",
            seconds=STATE_TIMEOUT,
        )
        self._take_snapshot()


class IsolatedPolicy:
    """A policy in another process.

    If that process is gone, the policy of the learner's last good state replaces it. It has exactly
    those optional methods that the policy has. The object that `start()` returns lives in the other
    process, too.
    """

    _methods: tuple[str, ...] = ()

    def __init__(
        self, child: Child, create: Callable[[], PolicyInfo], info: PolicyInfo | None = None
    ) -> None:
        self._child = child
        self._create = create
        self._hold(info or create())

    def _hold(self, info: PolicyInfo) -> None:
        self._number, self._methods = info
        self._generation = self._child.generation
        weakref.finalize(self, self._child.drop, self._generation, self._number).atexit = False

    def _find(self) -> int:
        """Return the number of the policy in the current process."""
        self._child.start()
        if self._generation != self._child.generation:
            self._hold(self._create())
        return self._number

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        return self._call("act", observation, rng)

    def __getattr__(self, name: str) -> Any:
        if name not in self._methods:
            raise AttributeError(f"The isolated policy has no attribute {name!r}.")
        return self._start if name == "start" else partial(self._call, name)

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._child.call("call_policy", self._find(), method, *arguments, label=method)

    def _start(self) -> "IsolatedPolicy | None":
        info = self._child.call("start", self._find())
        if info is None:
            return None
        return IsolatedPolicy(self._child, self._restart, info)

    def _restart(self) -> PolicyInfo:
        """Create the acting object in a new process, after the old one died within an episode."""
        info: PolicyInfo | None = self._child.call("start", self._find())
        if info is None:
            raise IsolationError(
                "`start()` must always return an object or never, but returned None: "
                "return the acting object."
            )
        return info
