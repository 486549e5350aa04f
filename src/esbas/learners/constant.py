"""A learner that never learns: a given policy, for ever."""

from collections.abc import Callable
from typing import Any

import numpy as np

from esbas.learner import Policy


class Constant:
    """Wraps a policy, or a function from observations to actions, as a stationary learner."""

    stationary = True

    def __init__(self, name: str, policy: Policy | Callable[[Any], Any]) -> None:
        self.name = name
        self._policy: Policy = policy if hasattr(policy, "act") else Deterministic(policy)

    def policy(self) -> Policy:
        """The policy."""
        return self._policy

    def state_dict(self) -> dict[str, Any]:
        """Nothing changes."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""


class Deterministic:
    """A function from observations to actions as a policy."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """The function's action."""
        del rng
        return self._function(observation)

    def probability(self, observation: Any, action: Any) -> float:
        """One for the function's action, nought for others."""
        chosen = self._function(observation)
        return float(action == chosen if isinstance(chosen, int) else np.array_equal(action, chosen))  # the first is much faster
