"""Learners with a fixed policy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.learner import Policy
from esbas.learners.naming import Named


class Constant(Named):
    """Wraps a policy, or a function from observations to actions, as a learner that never learns.

    Args:
        name: the name of the learner.
        policy: a policy, or a function from an observation to an action.
    """

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

    def policy_state(self) -> dict[str, Any]:
        return {}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        del state

    def metrics(self) -> dict[str, float]:
        return {}


class Deterministic:
    """A policy that applies a function to the observation.

    A deterministic choice of a continuous action has no density. If the chosen action contains
    floats, its log-probability is NaN. The log-probability of all other actions is -inf.
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
        found = []
        for observation, action in zip(observations, actions, strict=True):
            found.append(_log_prob(action, self._function(observation)))
        return np.array(found)


def _log_prob(action: Any, chosen: Any) -> float:
    if not np.array_equal(action, chosen):
        return -np.inf
    return float("nan") if _is_continuous(chosen) else 0.0


def _is_continuous(action: Any) -> bool:
    if isinstance(action, tuple | list):
        return any(map(_is_continuous, action))
    return isinstance(action, float) or getattr(getattr(action, "dtype", None), "kind", "") == "f"
