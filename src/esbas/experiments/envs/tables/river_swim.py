"""RiverSwim: a large reward upstream, a small one downstream."""

from esbas.errors import require
from esbas.experiments.envs.tables.table_env import TableEnv, TableOutcome

DOWN_RIVER = 0.005
UP_RIVER = 1.0
"""The rewards at the ends of the chain."""


class RiverSwim(TableEnv):
    """A chain of states (after Strehl & Littman, 2008).

    Action 0 swims left and always succeeds; action 1 swims right, against the current. In an inner
    state, action 1 leads right with probability 0.35, stays with 0.6, and leads left with 0.05. In
    the first state it leads right with 0.6; in the last one it stays with 0.6, for a reward of 1.
    Action 0 in the first state gives 0.005. An agent sees the large reward only if it keeps
    swimming right.

    Args:
        states: the length of the chain.
        max_episode_steps: the length of an episode, which starts in the second or third state.
    """

    def __init__(self, states: int = 6, *, max_episode_steps: int = 50) -> None:
        require(states >= 3, f"`states` must be at least 3, but got {states!r}.")
        last = states - 1
        outcomes = []
        for state in range(states):
            left = [TableOutcome(1.0, max(state - 1, 0), DOWN_RIVER if state == 0 else 0.0)]
            if state == 0:
                right = [TableOutcome(0.4, 0, 0.0), TableOutcome(0.6, 1, 0.0)]
            elif state == last:
                right = [TableOutcome(0.4, last - 1, 0.0), TableOutcome(0.6, last, UP_RIVER)]
            else:
                right = [
                    TableOutcome(0.05, state - 1, 0.0),
                    TableOutcome(0.6, state, 0.0),
                    TableOutcome(0.35, state + 1, 0.0),
                ]
            outcomes.append([left, right])
        super().__init__(outcomes, starts=(1, 2), max_episode_steps=max_episode_steps)
