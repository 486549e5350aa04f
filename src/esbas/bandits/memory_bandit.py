"""A bandit is a formula plus a memory of rounds. This file has the memory of all rounds and the bandits that use a memory."""

import math
import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from esbas import schema
from esbas.bandits.bandit import Bandit, Floats, Rng
from esbas.errors import require
from esbas.schema import COUNT, NonNegative, Number

PULLS = Number(min=0, max=2**53)
ARMS = Number(min=1, max=100_000, whole=True)
_LARGEST = sys.float_info.max


@dataclass(slots=True)
class Arm:
    """The statistics of one arm. A bandit that needs more per arm subclasses it: see `MemoryBandit.arm_type`."""

    pulls: Annotated[float, PULLS] = 0  # n_k, rounds in flight included; may be a fraction (`Discounted`)
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
    """A round in flight: its arm, and plain data that the bandit wants to keep until the reward arrives."""

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
    """The variance of rewards of total weight `before` after one of this weight joins at this distance from their mean.

    All terms are positive (West 1979), so nothing cancels.
    """
    share = weight / (before + weight)
    return (1 - share) * (variance + share * distance * distance)


class AllRounds:
    """Remembers every round. `arm` creates the record of a new arm.

    Rounds in flight refer to their arm by its record, so they stay valid when the numbers of the arms change.
    """

    whole: ClassVar[bool] = True
    """Whether every round counts as one, so that an arm's pulls are its rewards plus its rounds in flight."""

    def __init__(self, n_arms: int, *, arm: Callable[[], Arm] = Arm) -> None:
        self._new_arm = arm
        self.arms: list[Any] = [arm() for _ in range(n_arms)]  # records that `arm` created
        self.total: float = 0  # pulls of all arms
        self.rounds = 0
        self.open: dict[int, Round] = {}

    def variance(self, k: int) -> float:
        """The variance of the arm's rewards, NaN without a reward."""
        arm: Arm = self.arms[k]
        return arm.variance if arm.rewards else math.nan

    def prior(self) -> float:
        """The mean reward of all arms, 0 without any; used for an arm that has only rounds in flight."""
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
        """The reward of a round arrives; returns the round, or None if it was forgotten: then the reward has no effect."""
        settled = self.open.pop(ticket, None)
        if settled is not None:
            arm = settled.arm
            if arm.rewards:  # squares of rewards beyond 1e154 are infinite, which could not be saved
                arm.variance = min(grown_variance(arm.variance, arm.rewards, 1, reward - arm.mean), _LARGEST)
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
        """Kept arms keep the rounds that have a reward."""
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
        number = {id(arm): k for k, arm in enumerate(self.arms)}
        opened = [[ticket, number[id(each.arm)], each.note] for ticket, each in self.open.items()]
        return {"arms": [arm.state_dict() for arm in self.arms], "rounds": self.rounds, "open": opened}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where, new = "the memory of a bandit", self._new_arm()
        known = schema.fields_of(type(new))
        record = {name: known.get(name, Any) for name in new.state_dict()}
        schema.check(state, {"arms": [record], "rounds": COUNT, "open": [(COUNT, COUNT, Any)]}, where)
        arms = [self._new_arm() for _ in state["arms"]]
        for arm, saved in zip(arms, state["arms"], strict=True):
            arm.load_state_dict(saved)
        tickets = [ticket for ticket, *_ in state["open"]]
        fits = len(set(tickets)) == len(tickets) and all(1 <= ticket <= state["rounds"] for ticket in tickets)
        schema.require(fits, "tickets are different and at most `rounds`", where, tickets=tickets, rounds=state["rounds"])
        flying = [k for _, k, _ in state["open"]]
        schema.require(max(flying, default=0) < max(len(arms), 1), "rounds name arms", where, arms=flying, number=len(arms))
        in_flight = Counter(flying)
        for k, arm in enumerate(arms) if self.whole else ():
            fits = isinstance(arm.pulls, int) and arm.pulls == arm.rewards + in_flight[k]
            schema.require(fits, "pulls are rewards plus rounds in flight", where, arm=k, pulls=arm.pulls, rewards=arm.rewards)
        self.arms, self.rounds = arms, state["rounds"]
        self.open = {ticket: Round(arms[k], note) for ticket, k, note in state["open"]}
        self.total = sum(arm.pulls for arm in arms)


class MemoryBandit(Bandit):
    """A bandit over a memory that pulls the arm with the largest index. Subclasses implement `_index`.

    A subclass that needs more per arm sets `arm_type`; the memory then resets, adds, removes and saves these records. It may also
    implement `_learn`, which is called when a reward has arrived.
    """

    deterministic = True
    arm_type: type[Arm] = Arm
    """The record that the default memory keeps of each arm."""
    extra_state: ClassVar[Collection[str]] = ()
    """Names of attributes that change and are saved along with the memory; a dictionary adds their shapes, see `esbas.schema`."""

    def __init__(self, n_arms: int, *, memory: Memory | None = None, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self.memory: Memory = AllRounds(n_arms, arm=self.arm_type) if memory is None else memory

    @abstractmethod
    def _index(self, k: int) -> float:
        """The index of arm k."""

    def _learn(self, settled: Round, reward: float) -> None:
        """A reward has arrived in the memory."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """The arm with the largest index, the first of equals."""
        arms = range(self.n_arms) if among is None else sorted(among)
        return max(arms, key=self._index)  # max returns the first of equals

    def _arms(self, among: Collection[int] | None) -> Sequence[int]:
        return range(self.n_arms) if among is None else sorted(among)

    def _mean(self, arm: Arm) -> float:
        """The arm's mean; the mean of all arms while all of its rounds are in flight."""
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
            require(False, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        return self.memory.pull(arm)

    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        if not (math.isfinite(reward) if self.any_scale else 0 <= reward <= 1):
            self.check(reward)
        ticket = self.pull(arm) if pull is None else pull
        settled = self.memory.settle(ticket, float(reward))
        if settled is not None:
            self._learn(settled, float(reward))

    def withdraw(self, pull: int) -> None:
        self.memory.withdraw(pull)

    def reset(self, keep: Collection[int] = ()) -> None:
        self.memory.reset(keep)

    def add_arm(self) -> None:
        self.n_arms += 1
        self.memory.add_arm()

    def remove_arm(self, arm: int) -> None:
        require(self.n_arms > 1, "at least one arm remains", n_arms=self.n_arms)
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        self.n_arms -= 1
        self.memory.remove_arm(arm)

    def state_dict(self) -> dict[str, Any]:
        """The memory and `extra_state`. The generator is not included: it belongs to the caller."""
        extra = {name: getattr(self, name) for name in self.extra_state}
        return {"n_arms": self.n_arms, "memory": self.memory.state_dict()} | extra

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. A state that does not fit raises an error and changes nothing."""
        where, extra = f"the state of a {type(self).__name__}", self.extra_state
        shapes = extra if isinstance(extra, dict) else {name: schema.like(getattr(self, name)) for name in extra}
        schema.check(state, {"n_arms": ARMS, "memory": object, str: object} | shapes, where)
        with schema.restored_on_error(self.memory, where):
            self.memory.load_state_dict(state["memory"])
            n_arms, found = state["n_arms"], len(self.memory.arms)
            schema.require(n_arms == found, "n_arms is the number of arms", where, n_arms=n_arms, arms=found)
            self._check_loaded(state, where)
        for name in ("n_arms", *extra):
            setattr(self, name, state[name])

    def _check_loaded(self, state: dict[str, Any], where: str) -> None:
        """Raise an error if the memory that was just loaded breaks a rule of this bandit; then the old memory comes back."""


class IndexBandit(MemoryBandit):
    """A formula over a memory; an arm without a pull goes first. Subclasses implement `index`."""

    @abstractmethod
    def index(self, mean: float, pulls: float) -> float:
        """The index of an arm with this mean and at least one pull."""

    def _index(self, k: int) -> float:
        arm = self.memory.arms[k]
        if not arm.pulls:
            return math.inf
        return self.index(arm.mean if arm.rewards else self.memory.prior(), arm.pulls)
