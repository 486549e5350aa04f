"""Learners (the paper's α), their policies (π), and the portfolio of them.

The contracts list every optional method and attribute.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, SpaceError, require
from esbas.trajectory import TrajectorySet, Transition


class Policy(Protocol):
    """Chooses actions (the paper's π).

    Only `act` is required; see `OptionalPolicyMethods` for the rest.
    """

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """Return the action to take. `observation` is read-only."""
        ...


class OptionalPolicyMethods(Protocol):
    """What a policy may also have. Leave out what it cannot provide."""

    def start(self) -> Policy | None:
        """Start an episode, and return the object that acts in it; None: the policy itself.

        A policy with a memory within an episode returns a new object with a separate memory, so
        that several episodes can run at the same time.
        """
        ...

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        """Return the action that `act` would take, and its log-probability.

        For continuous actions, that is the log-density.
        """
        ...

    def log_probs(self, observations: Array, actions: Array) -> Array:
        """Return the log-probabilities of all actions of a trajectory, (T,).

        -inf for actions that the policy would never take.
        """
        ...


@runtime_checkable
class Learner(Protocol):
    """An off-policy algorithm (the paper's α): data in, policy out.

    Its policy changes only inside `learn` or `step`. It has `learn`, `step`, both, or, if it is
    `stationary`, neither: see `OptionalLearnerMethods`. It may also have the attributes
    `observation_space` and `action_space`, which must equal those of the environment, and
    `learn_timeout`, the seconds that one of its learning calls may take.
    """

    name: str
    stationary: bool  # a constant algorithm: it never learns

    def policy(self) -> Policy:
        """Return the current policy."""
        ...


class OptionalLearnerMethods(Protocol):
    """What a learner may also have. Leave out what it cannot provide."""

    def learn(self, data: TrajectorySet) -> None:
        """Learn from all trajectories so far, which are read-only.

        Called when an epoch starts; online, before each episode.
        """
        ...

    def step(self, transition: Transition) -> None:
        """Learn from one transition. Called online for every transition, whoever acted."""
        ...

    def greedy_policy(self) -> Policy:
        """Return the current policy without exploration, used for evaluation."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return everything that changes, as arrays and plain data."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...

    def policy_state(self) -> dict[str, Any]:
        """Return what acting needs, as arrays and plain data, without replay memory and optimizer.

        Without this method, `state_dict` is used.
        """
        ...

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Act as the learner that returned this `policy_state`, and learn from there.

        Schedules start anew.
        """
        ...

    def metrics(self) -> dict[str, float]:
        """Return numbers that describe the learning, such as "loss", "epsilon" and "TD error".

        Must be fast.
        """
        ...


def _methods(protocol: type) -> tuple[str, ...]:
    names = []
    for name, value in vars(protocol).items():
        if callable(value) and not name.startswith("_"):
            names.append(name)
    return tuple(names)


POLICY_METHODS = _methods(OptionalPolicyMethods)
"""The names of a policy's optional methods."""
LEARNER_METHODS = _methods(OptionalLearnerMethods)
"""The names of a learner's optional methods."""
LEARNER_ATTRIBUTES = ("observation_space", "action_space", "learn_timeout")
"""The names of a learner's optional attributes."""


class RandomPolicy:
    """Takes every action with the same probability."""

    def __init__(self, action_space: Any) -> None:
        self._space = action_space
        self._log_prob = spaces.uniform_log_prob(action_space)

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        del observation
        return spaces.random_action(self._space, rng)

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        return self.act(observation, rng), self._log_prob

    def log_probs(self, observations: Array, actions: Array) -> Array:
        del observations
        inside = np.array([bool(self._space.contains(action)) for action in actions], bool)
        return np.where(inside, self._log_prob, -math.inf)


class Portfolio:
    """The learners among which a selector chooses, validated together."""

    def __init__(self, learners: Iterable[Learner]) -> None:
        self._learners = list(learners)
        require(len(self._learners) > 0, "`learners` must not be empty.")
        for learner in self._learners:
            _check(learner)
        for name in self.names:
            require(
                self.names.count(name) == 1,
                f"Learners must have different names, but two are named {name!r}: rename one.",
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The learners' names, in order: the arms of a selector."""
        return tuple(learner.name for learner in self._learners)

    def check_spaces(self, env: Any) -> None:
        """Raise a SpaceError if a learner declares other spaces than those of the environment."""
        for learner in self._learners:
            for kind in ("observation_space", "action_space"):
                own = getattr(learner, kind, None)
                given = getattr(env, kind, None)
                if own is None or given is None:
                    continue
                if not spaces.same(own, given):
                    raise SpaceError(
                        f"The {kind} of learner {learner.name!r} must be the environment's, "
                        f"{given}, but is {own}: build the learner for this environment, "
                        "or leave it out."
                    )

    def __repr__(self) -> str:
        return f"<Portfolio of {', '.join(map(repr, self.names))}>"

    def __len__(self) -> int:
        return len(self._learners)

    def __getitem__(self, index: int) -> Learner:
        return self._learners[index]

    def __iter__(self) -> Iterator[Learner]:
        return iter(self._learners)


def _check(learner: Any) -> None:
    has_parts = isinstance(learner, Learner)
    if not has_parts or not isinstance(learner.name, str) or not callable(learner.policy):
        raise InvalidValueError(
            f"A learner must have `name`, `stationary` and `policy()`, but got {learner!r}: "
            "see esbas.Learner."
        )
    if not (learner.stationary or hasattr(learner, "learn") or hasattr(learner, "step")):
        raise InvalidValueError(
            f"Learner {learner.name!r} must have `learn` or `step`, but has neither: "
            "add one, or set `stationary`."
        )
