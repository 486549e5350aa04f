"""What a learner and its policy must offer, and the portfolio of them.

The classes here are protocols: a learner need not inherit from anything. Two more methods, `state_dict()` and
`load_state_dict(state)` (arrays and plain data), make it savable.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from esbas import spaces
from esbas.errors import InvalidValueError, SpaceError, require
from esbas.trajectory import TrajectorySet, Transition


class Policy(Protocol):
    """What acts (the paper's π).

    Two more methods are optional: `start()`, called before each episode, for policies that keep a memory within an episode; and
    `probability(observation, action)`, which the loop records with every step.
    """

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """The action to take."""
        ...


class RandomPolicy:
    """All actions with the same probability."""

    def __init__(self, action_space: Any) -> None:
        self._space = action_space

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """Any action."""
        del observation
        return spaces.random_action(self._space, rng)

    def probability(self, observation: Any, action: Any) -> float:
        """1 / n, undefined where actions cannot be counted."""
        del observation, action
        return 1 / int(self._space.n) if spaces.is_discrete(self._space) else float("nan")


@runtime_checkable
class Learner(Protocol):
    """An off-policy algorithm (the paper's α): data in, policy out. Its policy changes only inside `learn` or `step`.

    It has `learn` (see BatchLearner), `step` (see OnlineLearner), both, or, if it is `stationary`, neither. It may
    tell its spaces by attributes `observation_space` and `action_space`; they are compared with the environment's. It may have
    `greedy_policy()`, the current policy without exploration, by which it is evaluated.
    """

    name: str
    stationary: bool  # a constant algorithm: it never learns

    def policy(self) -> Policy:
        """The current policy."""
        ...


class BatchLearner(Learner, Protocol):
    """A learner for the growing-batch setting."""

    def learn(self, data: TrajectorySet) -> None:
        """Learn from all trajectories so far; called when an epoch starts."""
        ...


class OnlineLearner(Learner, Protocol):
    """A learner for the true online setting."""

    def step(self, transition: Transition) -> None:
        """Learn from one transition; called for every one, whoever acted."""
        ...


class Portfolio:
    """The learners among which a selector chooses, validated together."""

    def __init__(self, learners: Iterable[Learner]) -> None:
        self._learners = list(learners)
        require(len(self._learners) > 0, "a portfolio has a learner", "add one", learners=self._learners)
        for learner in self._learners:
            _check(learner)
        twice = {name for name in self.names if self.names.count(name) > 1}
        if twice:
            raise InvalidValueError(f"learners must have different names, but two are named {min(twice)!r}: rename one")

    @property
    def names(self) -> tuple[str, ...]:
        """The learners' names, in order: the arms of a selector."""
        return tuple(learner.name for learner in self._learners)

    def check_spaces(self, env: Any) -> None:
        """Raise a SpaceError unless every learner that tells its spaces has those of the environment."""
        for learner in self._learners:
            for kind in ("observation_space", "action_space"):
                own, given = getattr(learner, kind, None), getattr(env, kind, None)
                if own is not None and given is not None and not spaces.same(own, given):
                    message = f"the {kind} of learner {learner.name!r} must be the environment's, {given}, but is {own}"
                    raise SpaceError(f"{message}: build the learner for this environment, or leave it out")

    def __len__(self) -> int:
        return len(self._learners)

    def __getitem__(self, index: int) -> Learner:
        return self._learners[index]

    def __iter__(self) -> Iterator[Learner]:
        return iter(self._learners)


def _check(learner: Any) -> None:
    if not (isinstance(learner, Learner) and isinstance(learner.name, str) and callable(learner.policy)):
        raise InvalidValueError(
            f"a learner must have `name`, `stationary` and `policy()`, but got {learner!r}: see esbas.Learner"
        )
    if not (learner.stationary or hasattr(learner, "learn") or hasattr(learner, "step")):
        raise InvalidValueError(
            f"learner {learner.name!r} must have `learn` or `step`, but has neither: add one, or set `stationary`"
        )
