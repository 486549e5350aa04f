"""The contract of a bandit (the paper's Ξ).

A bandit knows arms 0 .. K-1 and rewards. It knows nothing about learners.
"""

import importlib
import math
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas._internal.registry import Registry
from esbas.errors import InvalidValueError, counted, require

Floats = NDArray[np.float64]
Rng = np.random.Generator | None
DEFAULT_HORIZON = 10_000
"""The number of rounds that bandits assume if their parameters depend on it and it is not given."""


class Bandit(ABC):
    """What every bandit implements.

    `choose` does not change the bandit. `pull` starts a round and `update` ends it, immediately or
    after other rounds have started. A simple loop repeats two calls:

        arm = bandit.choose()
        bandit.update(arm, reward)

    With several rounds in flight, keep the ticket that `pull(arm)` returns and pass it to
    `update(arm, reward, pull=ticket)`. Until then the round counts as a pull without a reward.
    """

    any_scale = False
    """Whether rewards may have any size. Otherwise they must lie in [0, 1]."""
    spread = 1.0
    """The width of the range of rewards, for bandits with `any_scale`."""
    deterministic = False
    """Whether `choose` does not draw random numbers: the propensity of what it returns is 1."""
    setting = "fixed arms"
    """What the bandit is made for, for the table in docs/bandits.md.

    One of "fixed arms", "changing arms", "adversarial rewards" and "learning arms".
    """
    use = ""
    """When to use this bandit, for the table in docs/bandits.md."""
    guarantee = "none proven"
    """The regret bound, for the table in docs/bandits.md."""

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        require(
            isinstance(n_arms, int) and n_arms >= 1,
            f"`n_arms` must be a whole number of at least 1, but got {n_arms!r}.",
        )
        self.n_arms = n_arms
        self.rng = np.random.default_rng(0) if rng is None else rng

    def check(self, reward: float) -> None:
        """Raise an error unless this is a valid reward."""
        if self.any_scale:
            if not math.isfinite(reward):
                raise InvalidValueError(f"A reward must be finite, but got {reward!r}.")
        elif not 0 <= reward <= 1:
            raise InvalidValueError(
                f"A reward must be between 0 and 1, but got {reward!r}: "
                'scale it, as selectors do with scale="auto".'
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {counted(self.n_arms, 'arm')}>"

    @abstractmethod
    def choose(self, among: Collection[int] | None = None) -> int:
        """Return the arm to pull next, out of `among` (default: all)."""

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float | None:
        """Return the probability with which `choose(among)` returned this arm.

        None: the bandit cannot compute it.
        """
        del arm, among
        return 1.0 if self.deterministic else None

    def choose_with_propensity(
        self, among: Collection[int] | None = None
    ) -> tuple[int, float | None]:
        """Return what `choose` returns, and its propensity."""
        arm = self.choose(among)
        return arm, self.propensity(arm, among)

    @abstractmethod
    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round with this arm and return its ticket.

        Args:
            arm: the number of the arm.
            probability: the probability with which the arm was chosen; by default its probability
                among all arms. Bandits that do not need it ignore it.
        """

    @abstractmethod
    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        """End a round with a reward.

        Args:
            arm: the number of the arm.
            reward: the reward.
            pull: the ticket of the round; by default a new round, which starts and ends now.
        """

    @abstractmethod
    def withdraw(self, pull: int) -> None:
        """End the round without a reward, as if it had not been played."""

    @abstractmethod
    def reset(self, keep: Collection[int] = ()) -> None:
        """Forget all arms except those to keep, and every round in flight.

        A later update of such a round has no effect.
        """

    @abstractmethod
    def add_arm(self) -> None:
        """Add an unplayed arm after the others."""

    @abstractmethod
    def remove_arm(self, arm: int) -> None:
        """Remove an arm; the numbers of the arms after it decrease by one."""

    @abstractmethod
    def indices(self) -> Floats:
        """Return what `choose` compares, (K,); infinite for an arm that must be tried first."""

    @property
    @abstractmethod
    def counts(self) -> NDArray[Any]:
        """(K,): remembered pulls of each arm, rounds in flight included."""

    @property
    @abstractmethod
    def means(self) -> Floats:
        """(K,): the mean reward of each arm, NaN without a reward."""

    def explain(self) -> dict[str, NDArray[Any]]:
        """Return more columns for `explain()` of selectors, by name, (K,) each."""
        return {}

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return everything that changes, as plain data."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""


def no_such_arm(arm: object, n_arms: int) -> InvalidValueError:
    """Return the error for the number of an arm that does not exist."""
    return InvalidValueError(f"`arm` must be between 0 and {n_arms - 1}, but got {arm!r}.")


BanditFactory = Callable[..., Bandit]
"""Called as `factory(n_arms, rng=generator)`.

A class of this package, or `functools.partial(Class, parameter=...)`.
"""


class BanditRegistry(Registry[BanditFactory]):
    """Imports all modules of this package before the first look-up.

    So a new bandit is one file with a registered class.
    """

    _complete = False

    def _discover(self) -> None:
        if not self._complete:
            package = importlib.import_module(__name__.rpartition(".")[0])
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")
            self._complete = True

    def find(self, name: str) -> BanditFactory:
        self._discover()
        return super().find(name)

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return super().__iter__()

    def __len__(self) -> int:
        self._discover()
        return super().__len__()

    def __contains__(self, name: object) -> bool:
        self._discover()
        return super().__contains__(name)


BANDITS = BanditRegistry("bandit")
"""All bandits by name. A new one registers itself: `@BANDITS.register("moss")` above its class."""


def make_bandit(name: str) -> BanditFactory:
    """Return the bandit with this name, or the class that "module:Class" names.

    Case, spaces, dots, dashes and underscores in names are ignored; "#" is read as "sharp".

    >>> make_bandit("KL-UCB")(3).n_arms
    3
    """
    return BANDITS.find(name)
