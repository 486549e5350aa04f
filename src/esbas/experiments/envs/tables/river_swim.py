"""RiverSwim: a large reward upstream, a small one downstream."""

from esbas.envs.tables.table_task import Outcome, TableTask
from esbas.errors import require

DOWN_RIVER, UP_RIVER = 0.005, 1.0
"""The rewards at the ends of the chain."""


class RiverSwim(TableTask):
    """A chain of states (after Strehl & Littman, 2008). Swimming left always succeeds; swimming right is against the current.

    Action 1 in an inner state leads right with probability 0.35, stays with 0.6, and leads left with 0.05. In the first state it
    leads right with 0.6; in the last one it stays with 0.6, for a reward of 1. Action 0 in the first state gives 0.005. Only who
    keeps swimming right sees the large reward.

    Args:
        states: the length of the chain.
        max_steps: the length of an episode, which starts in the second or third state.
    """

    def __init__(self, states: int = 6, *, max_steps: int = 50) -> None:
        require(states >= 3, "states >= 3", states=states)
        last = states - 1
        outcomes = []
        for state in range(states):
            left = [Outcome(1.0, max(state - 1, 0), DOWN_RIVER if state == 0 else 0.0)]
            if state == 0:
                right = [Outcome(0.4, 0, 0.0), Outcome(0.6, 1, 0.0)]
            elif state == last:
                right = [Outcome(0.4, last - 1, 0.0), Outcome(0.6, last, UP_RIVER)]
            else:
                right = [Outcome(0.05, state - 1, 0.0), Outcome(0.6, state, 0.0), Outcome(0.35, state + 1, 0.0)]
            outcomes.append([left, right])
        super().__init__(outcomes, starts=(1, 2), max_steps=max_steps)
