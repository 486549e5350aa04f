"""How much of a growing set of trajectories a batch learner has used."""

from dataclasses import dataclass
from typing import Any

from esbas.errors import require
from esbas.trajectory import TrajectorySet


@dataclass(frozen=True, slots=True)
class DataCursor:
    """Counts what a learner has learned from, in a set that only grows."""

    trajectories: int = 0
    transitions: int = 0

    def up_to(self, data: TrajectorySet) -> "DataCursor":
        """Return the progress after learning from all of `data`."""
        require(
            self.trajectories <= len(data),
            f"The data must only grow, but a learner that has learned from {self.trajectories} "
            f"trajectories got {len(data)}: pass the same set again.",
        )
        new = sum(len(trajectory) for trajectory in data.since(self.trajectories))
        return DataCursor(len(data), self.transitions + new)

    def state_dict(self) -> dict[str, int]:
        return {"learnt": self.trajectories, "seen": self.transitions}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "DataCursor":
        """Return the progress from what `state_dict` returned, possibly among other entries."""
        return cls(state["learnt"], state["seen"])
