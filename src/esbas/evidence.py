"""What an episode says about every arm, for selectors that want more than its value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from esbas.columns import Array
from esbas.errors import require
from esbas.trajectory import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The trajectory of an episode, and how probable its actions are under the policies of all arms.

    The loop creates it for selectors whose `wants` is not empty. In a loop of your own, pass it to `tell` by keyword:
    `selector.tell(choice, value, evidence=Evidence.from_log_probs({...}, arm=choice.arm, value=value))`.
    """

    trajectory: Trajectory
    value: float  # as the selector sees it: larger is better
    arm: str  # the arm that acted
    log_probs_of: Mapping[str, Array] | Callable[[str], Array | None] | None = None
    """Log-probabilities of the trajectory's actions by arm, (T,) each, or a function that computes them. None: unknown."""
    log_probs_on: Callable[[Trajectory, str], Array | None] | None = None
    """The same for any trajectory, (trajectory, arm) -> (T,): so selectors can see whether a policy changed. None: unknown."""

    @classmethod
    def from_log_probs(cls, log_probs: Mapping[str, Sequence[float]], *, arm: str, value: float) -> Self:
        """The evidence of a system that keeps probabilities, but no observations and no actions.

        Args:
            log_probs: by arm, the log-probabilities of the episode's actions under its policy, one number per action.
            arm: the arm that acted.
            value: what is told.
        """
        columns = {name: np.asarray(numbers, np.float64) for name, numbers in log_probs.items()}
        shapes = {column.shape for column in columns.values()}
        require(len(shapes) == 1 and len(min(shapes)) == 1, "one log-probability per action, for at least one arm", shapes=shapes)
        rewards = np.zeros(min(shapes))
        rewards[-1:] = value
        acted = columns.get(arm, np.full_like(rewards, np.nan))
        trajectory = Trajectory(np.zeros(len(rewards) + 1), np.zeros_like(rewards), rewards, True, False, acted)
        return cls(trajectory=trajectory, value=value, arm=arm, log_probs_of=columns)

    @property
    def behaviour_log_probs(self) -> Array:
        """(T,): log-probabilities of the actions under the policy that took them, recorded at that time; NaN where unknown."""
        return self.trajectory.log_probs

    def log_probs(self, arm: str) -> Array | None:
        """(T,): log-probabilities of the actions under the frozen policy of an arm.

        None where policies are not frozen (online), or where the policy cannot compute them.
        """
        source = self.log_probs_of
        if source is None:
            return None
        return source.get(arm) if isinstance(source, Mapping) else source(arm)
