"""What an episode shows about every arm, for selectors that want more than its value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import require
from esbas.trajectory import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The trajectory of an episode, and the probabilities of its actions for all arms.

    The loop creates it for selectors whose `wants` is not empty. In another loop, pass it to `tell`
    by keyword: `selector.tell(choice, value, evidence=Evidence.from_log_probs({...},
    arm=choice.arm, value=value))`.

    Attributes:
        trajectory: the episode.
        value: its value as the selector sees it: larger is better.
        arm: the arm that acted.
        log_probs_of: by arm, the log-probabilities of the trajectory's actions, (T,), or a function
            that computes them. None: unknown.
        log_probs_on: the same for any trajectory, (trajectory, arm) -> (T,), so that selectors can
            see whether a policy changed. None: unknown.
    """

    trajectory: Trajectory
    value: float
    arm: str
    log_probs_of: Mapping[str, Array] | Callable[[str], Array | None] | None = None
    log_probs_on: Callable[[Trajectory, str], Array | None] | None = None

    @classmethod
    def from_log_probs(
        cls, log_probs: Mapping[str, Sequence[float]], *, arm: str, value: float
    ) -> Self:
        """Create the evidence of a system that keeps probabilities, but no observations or actions.

        Args:
            log_probs: by arm, the log-probabilities of the episode's actions under its policy, one
                number per action.
            arm: the arm that acted.
            value: what is told.
        """
        columns = {name: np.asarray(numbers, np.float64) for name, numbers in log_probs.items()}
        shapes = [column.shape for column in columns.values()]
        require(
            len(set(shapes)) == 1 and len(shapes[0]) == 1,
            "`log_probs` must have at least one arm, and one number per action for each arm, "
            f"but got arrays of the shapes {shapes}.",
        )
        steps = shapes[0][0]
        rewards = np.zeros(steps)
        rewards[-1:] = value  # of the whole episode
        trajectory = Trajectory(
            observations=np.zeros(steps + 1),
            actions=np.zeros(steps),
            rewards=rewards,
            terminated=True,
            truncated=False,
            log_probs=columns.get(arm, np.full(steps, np.nan)),
        )
        return cls(trajectory=trajectory, value=value, arm=arm, log_probs_of=columns)

    @property
    def behavior_log_probs(self) -> Array:
        """The log-probabilities of the actions under the policy that took them, (T,).

        They were recorded at that time; NaN where unknown.
        """
        return self.trajectory.log_probs

    def log_probs(self, arm: str) -> Array | None:
        """Return the log-probabilities of the actions under the frozen policy of an arm, (T,).

        None where policies are not frozen (online), or where the policy cannot compute them.
        """
        source = self.log_probs_of
        if source is None:
            return None
        if isinstance(source, Mapping):
            return source.get(arm)
        return source(arm)
