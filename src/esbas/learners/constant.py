"""Learners with a fixed policy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.learner import Policy


class Constant:
    """Wraps a policy, or a function from observations to actions, as a learner that never learns."""

    stationary = True

    def __init__(self, name: str, policy: Policy | Callable[[Any], Any]) -> None:
        self.name = name
        self._policy: Policy = policy if hasattr(policy, "act") else Deterministic(policy)

    def policy(self) -> Policy:
        return self._policy

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        del state

    policy_state, load_policy_state = state_dict, load_state_dict  # nothing changes

    def metrics(self) -> dict[str, float]:
        return {}


class Deterministic:
    """A policy that applies a function to the observation.

    A deterministic choice of a continuous action has no density. If the chosen action contains floats, its log-probability is
    NaN. The log-probability of all other actions is -inf.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        del rng
        return self._function(observation)

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        del rng
        action = self._function(observation)
        return action, float("nan") if _is_continuous(action) else 0.0

    def log_probs(self, observations: Array, actions: Array) -> Array:
        chosen = [self._function(observation) for observation in observations]
        return np.array([_log_prob(action, best) for action, best in zip(actions, chosen, strict=True)])


def _log_prob(action: Any, chosen: Any) -> float:
    if not np.array_equal(action, chosen):
        return -np.inf
    return float("nan") if _is_continuous(chosen) else 0.0


def _is_continuous(action: Any) -> bool:
    if isinstance(action, tuple | list):
        return any(map(_is_continuous, action))
    return isinstance(action, float) or getattr(getattr(action, "dtype", None), "kind", "") == "f"
