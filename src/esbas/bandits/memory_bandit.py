"""A bandit is a formula plus a memory of rounds.

This file has the memory of all rounds, and the base classes of bandits that use a memory.
"""

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from esbas._internal import schema
from esbas._internal.schema import COUNT, NonNegative, Number
from esbas.bandits.bandit import Bandit, Floats, Rng, no_such_arm
from esbas.errors import require

PULLS = Number(min=0, max=2**53)
ARMS = Number(min=1, max=100_000, whole=True)
_LARGEST = sys.float_info.max


@dataclass(slots=True)
class Arm:
    """The statistics of one arm.

    A bandit that needs more per arm subclasses it: see `MemoryBandit.arm_type`.
    """

    # n_k, rounds in flight included. It may be a fraction (`Discounted`).
    pulls: Annotated[float, PULLS] = 0
    rewards: Annotated[float, PULLS] = 0  # how many of these have a reward
    total: float = 0.0  # sum of the rewards
    mean: float = 0.0  # of the rewards, 0 without any
    variance: NonNegative = 0.0  # mean squared distance of the rewards from their mean

    def state_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


@dataclass(slots=True)
class Round:
    """A round in flight: its arm, and plain data that the bandit keeps until the reward arrives."""

    arm: Any  # an Arm, or the subclass that the bandit uses
    note: Any = None


class Memory(Protocol):
    """What a bandit remembers of its rounds: see `AllRounds`, `Window` and `Discounted`."""

    arms: list[Arm]
    rounds: int  # ever started

    @property
    def total(self) -> float: ...
    def variance(self, k: int) -> float: ...
    def prior(self) -> float: ...
    def pull(self, k: int) -> int: ...
    def settle(self, ticket: int, reward: float) -> Round | None: ...
    def withdraw(self, ticket: int) -> None: ...
    def reset(self, keep: Collection[int]) -> None: ...
    def add_arm(self) -> None: ...
    def remove_arm(self, k: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def grown_variance(variance: float, before: float, weight: float, distance: float) -> float:
    """Return the variance of rewards after another one joins them (West 1979).

    All terms are positive, so nothing cancels.

    Args:
        variance: their variance before.
        before: their total weight before.
        weight: the weight of the new reward.
        distance: its distance from their mean before.
    """
    share = weight / (before + weight)
    return (1 - share) * (variance + share * distance * distance)


class AllRounds:
    """Remembers every round.

    Rounds in flight refer to their arm by its record, so they stay valid when the numbers of the
    arms change.

    Args:
        n_arms: K.
        arm: creates the record of a new arm.
    """

    def __init__(self, n_arms: int, *, arm: Callable[[], Arm] = Arm) -> None:
        self._new_arm = arm
        self.arms: list[Any] = [arm() for _ in range(n_arms)]  # records that `arm` created
        self.total: float = 0  # pulls of all arms
        self.rounds = 0
        self.open: dict[int, Round] = {}

    def variance(self, k: int) -> float:
        """Return the variance of the arm's rewards, NaN without a reward."""
        arm: Arm = self.arms[k]
        return arm.variance if arm.rewards else math.nan

    def prior(self) -> float:
        """Return the mean reward of all arms, 0 without any.

        It stands for the mean of an arm that has only rounds in flight.
        """
        rewards: float = sum(arm.rewards for arm in self.arms)
        return sum(arm.total for arm in self.arms) / rewards if rewards else 0.0

    def pull(self, k: int) -> int:
        """Start a round; it counts as a pull from now on."""
        arm = self.arms[k]
        arm.pulls += 1
        self.total += 1
        self.rounds += 1
        self.open[self.rounds] = Round(arm)
        return self.rounds

    def settle(self, ticket: int, reward: float) -> Round | None:
        """Add the reward of a round and return the round.

        None: the round was forgotten, and the reward has no effect.
        """
        settled = self.open.pop(ticket, None)
        if settled is not None:
            arm = settled.arm
            # Squares of rewards beyond 1e154 are infinite, which could not be saved.
            if arm.rewards:
                variance = grown_variance(arm.variance, arm.rewards, 1, reward - arm.mean)
                arm.variance = min(variance, _LARGEST)
            arm.rewards += 1
            arm.total = min(max(arm.total + reward, -_LARGEST), _LARGEST)
            arm.mean = arm.total / arm.rewards
        return settled

    def withdraw(self, ticket: int) -> None:
        withdrawn = self.open.pop(ticket, None)
        if withdrawn is not None:
            withdrawn.arm.pulls -= 1
            self.total -= 1

    def reset(self, keep: Collection[int]) -> None:
        """Forget arms and rounds in flight. Kept arms keep the rounds that have a reward."""
        self.open.clear()
        self.total = 0
        for k, arm in enumerate(self.arms):
            if k in keep:
                arm.pulls = arm.rewards
                self.total += arm.pulls
            else:
                self.arms[k] = self._new_arm()

    def add_arm(self) -> None:
        self.arms.append(self._new_arm())

    def remove_arm(self, k: int) -> None:
        removed = self.arms.pop(k)
        self.total -= removed.pulls
        self.open = {ticket: each for ticket, each in self.open.items() if each.arm is not removed}

    def state_dict(self) -> dict[str, Any]:
        numbers = {id(arm): k for k, arm in enumerate(self.arms)}
        opened = []
        for ticket, each in self.open.items():
            opened.append([ticket, numbers[id(each.arm)], each.note])
        return {
            "arms": [arm.state_dict() for arm in self.arms],
            "rounds": self.rounds,
            "open": opened,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        shape = {"arms": [self._arm_shape()], "rounds": COUNT, "open": [(COUNT, COUNT, Any)]}
        schema.check(state, shape, "the memory of a bandit")
        arms = []
        for saved in state["arms"]:
            arm = self._new_arm()
            arm.load_state_dict(saved)
            arms.append(arm)
        opened = {}
        for ticket, k, note in state["open"]:
            require(
                k < len(arms),
                "The memory of a bandit must have the arm of every round in flight, but has "
                f"{len(arms)} arms and a round of arm {k}: go back to an earlier copy.",
            )
            opened[ticket] = Round(arms[k], note)
        self.arms = arms
        self.rounds = state["rounds"]
        self.open = opened
        self.total = sum(arm.pulls for arm in arms)

    def _arm_shape(self) -> dict[str, Any]:
        arm = self._new_arm()
        known = schema.fields_of(type(arm))
        return {name: known.get(name, Any) for name in arm.state_dict()}


class MemoryBandit(Bandit):
    """A bandit over a memory that pulls the arm with the largest index.

    Subclasses implement `_index`. A subclass that needs more per arm sets `arm_type`; the memory
    then resets, adds, removes and saves these records. It may also implement `_learn`, which is
    called when a reward has arrived.
    """

    deterministic = True
    arm_type: type[Arm] = Arm
    """The record that the default memory keeps of each arm."""
    extra_state: ClassVar[Collection[str]] = ()
    """Names of attributes that change and are saved along with the memory.

    A dictionary adds their shapes (`schema`).
    """

    def __init__(self, n_arms: int, *, memory: Memory | None = None, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self.memory: Memory = AllRounds(n_arms, arm=self.arm_type) if memory is None else memory

    @abstractmethod
    def _index(self, k: int) -> float:
        """Return the index of arm k."""

    def _learn(self, settled: Round, reward: float) -> None:
        """Learn from a reward that has arrived in the memory."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """Return the arm with the largest index, the first of equals."""
        # `max` returns the first of equals.
        return max(self._arms(among), key=self._index)

    def _arms(self, among: Collection[int] | None) -> Sequence[int]:
        return range(self.n_arms) if among is None else sorted(among)

    def _draw(self, arms: Sequence[int]) -> int:
        """Return one of the arms, drawn uniformly."""
        return arms[int(self.rng.integers(len(arms)))]

    def _mean(self, arm: Arm) -> float:
        """Return the arm's mean, or that of all arms while all of its rounds are in flight."""
        return arm.mean if arm.rewards else self.memory.prior()

    def indices(self) -> Floats:
        return np.array([self._index(k) for k in range(self.n_arms)], dtype=np.float64)

    @property
    def counts(self) -> NDArray[Any]:
        return np.array([arm.pulls for arm in self.memory.arms])

    @property
    def means(self) -> Floats:
        return np.array([arm.mean if arm.rewards else math.nan for arm in self.memory.arms])

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        del probability
        if not 0 <= arm < self.n_arms:
            raise no_such_arm(arm, self.n_arms)
        return self.memory.pull(arm)

    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        self.check(reward)
        ticket = self.pull(arm) if pull is None else pull
        value = float(reward)
        settled = self.memory.settle(ticket, value)
        if settled is not None:
            self._learn(settled, value)

    def withdraw(self, pull: int) -> None:
        self.memory.withdraw(pull)

    def reset(self, keep: Collection[int] = ()) -> None:
        self.memory.reset(keep)

    def add_arm(self) -> None:
        self.n_arms += 1
        self.memory.add_arm()

    def remove_arm(self, arm: int) -> None:
        require(self.n_arms > 1, "The only arm of a bandit cannot be removed: add another first.")
        if not 0 <= arm < self.n_arms:
            raise no_such_arm(arm, self.n_arms)
        self.n_arms -= 1
        self.memory.remove_arm(arm)

    def state_dict(self) -> dict[str, Any]:
        """Return the memory and `extra_state`.

        The generator is not included: it belongs to the caller.
        """
        extra = {name: getattr(self, name) for name in self.extra_state}
        return {"n_arms": self.n_arms, "memory": self.memory.state_dict()} | extra

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        A state that does not fit raises an error and changes nothing.
        """
        kind = type(self).__name__
        where = f"the state of a {kind}"
        shape = {"n_arms": ARMS, "memory": object, str: object} | self._extra_shapes()
        schema.check(state, shape, where)
        with schema.restored_on_error(self.memory, where):
            self.memory.load_state_dict(state["memory"])
            n_arms = state["n_arms"]
            found = len(self.memory.arms)
            require(
                n_arms == found,
                f"The memory of a {kind} must have all of its {n_arms} arms, but has {found}: "
                "go back to an earlier copy.",
            )
            self._check_loaded(state, where)
        self.n_arms = n_arms
        for name in self.extra_state:
            setattr(self, name, state[name])

    def _extra_shapes(self) -> dict[Any, Any]:
        if isinstance(self.extra_state, dict):
            return self.extra_state
        return {name: schema.like(getattr(self, name)) for name in self.extra_state}

    def _check_loaded(self, state: dict[str, Any], where: str) -> None:
        """Raise an error if this bandit cannot use the memory that was just loaded.

        The old memory comes back then.
        """


class IndexBandit(MemoryBandit):
    """A formula over a memory; an arm without a pull goes first. Subclasses implement `index`."""

    @abstractmethod
    def index(self, mean: float, pulls: float) -> float:
        """Return the index of an arm with this mean and at least one pull."""

    def _index(self, k: int) -> float:
        arm = self.memory.arms[k]
        if not arm.pulls:
            return math.inf
        if not arm.rewards:  # all rounds of the arm are in flight
            return self.index(self.memory.prior(), arm.pulls)
        return self.index(arm.mean, arm.pulls)
