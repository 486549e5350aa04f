"""What every bandit offers (the paper's Ξ). A bandit knows arms 0 .. K-1 and rewards; it knows nothing of learners."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.errors import require

Floats = NDArray[np.float64]
Rng = np.random.Generator | None
DEFAULT_HORIZON = 10_000
"""The number of rounds that bandits expect whose parameters depend on it, unless `horizon` is given."""


class Bandit(ABC):
    """The contract. `choose` only looks; `pull` starts a round and `update` ends it, at once or after other rounds have started.

    A simple loop is `arm = bandit.choose(); bandit.update(arm, reward)`. With several rounds in flight, take the ticket that
    `pull(arm)` returns and hand it back in `update(arm, reward, pull=ticket)`;
    until then the round counts as a pull, without a reward yet.
    """

    any_scale = False
    """Whether rewards may be of any size, their range having the width `spread`; otherwise they must lie in [0, 1]."""
    spread = 1.0

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        require(isinstance(n_arms, int) and n_arms >= 1, "n_arms >= 1", n_arms=n_arms)
        self.n_arms = n_arms
        self.rng = np.random.default_rng(0) if rng is None else rng

    def check(self, reward: float) -> None:
        """Raise an error unless this can be a reward."""
        if self.any_scale:
            require(math.isfinite(reward), "a reward is finite", reward=reward)
        else:
            require(0 <= reward <= 1, "0 <= reward <= 1", 'scale it, as selectors do with scale="auto"', reward=reward)

    @abstractmethod
    def choose(self, among: Collection[int] | None = None) -> int:
        """The arm to pull next, out of `among` (default: all)."""

    @abstractmethod
    def pull(self, arm: int) -> int:
        """Start a round with this arm; returns its ticket."""

    @abstractmethod
    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        """End the round `pull` (default: a round started and ended now) with a reward."""

    @abstractmethod
    def withdraw(self, pull: int) -> None:
        """End the round without a reward, as if it had not been played."""

    @abstractmethod
    def reset(self, keep: Collection[int] = ()) -> None:
        """Forget all arms but those to keep, and every round in flight: an update of such a round has no effect."""

    @abstractmethod
    def add_arm(self) -> None:
        """Add an unplayed arm behind the others."""

    @abstractmethod
    def remove_arm(self, arm: int) -> None:
        """Remove an arm; those behind it move up by one."""

    @abstractmethod
    def indices(self) -> Floats:
        """(K,): what `choose` compares; infinite for an arm that must be tried first."""

    @property
    @abstractmethod
    def counts(self) -> NDArray[Any]:
        """(K,): how often each arm was pulled, rounds in flight included, as far as the bandit remembers."""

    @property
    @abstractmethod
    def means(self) -> Floats:
        """(K,): the mean reward of each arm, NaN without a reward."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the bandit that `state_dict` told of."""


BanditFactory = Callable[..., Bandit]
"""Called as `factory(n_arms, rng=generator)`: a class of this package, or `functools.partial(Class, parameter=...)`."""
