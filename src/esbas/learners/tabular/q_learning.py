"""Q-learning with a table (Watkins, 1989), for discrete observations and actions."""

from esbas.learners.tabular.table import Tabular
from esbas.trajectory import Transition


def q_update(q: float, rate: float, reward: float, gamma: float, best_next: float) -> float:
    """Return Q + rate (r + γ max_a' Q' - Q)."""
    return q + rate * (reward + gamma * best_next - q)


class TabularQ(Tabular):
    """Learns from each transition. Its policy is a live view of the table.

    See `Tabular` for the arguments.
    """

    title = "tabular Q"

    def step(self, transition: Transition) -> None:
        """Update once. After a truncation, unlike a termination, the next value counts."""
        s = transition.observation
        a = transition.action
        terminated = transition.terminated
        best_next = 0.0 if terminated else self.table[transition.next_observation].max()
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        before = self.table[s, a]
        after = q_update(before, rate, transition.reward, self.gamma, best_next)
        self.table[s, a] = after
        self._recent.append((before, after, rate))
        self._seen += 1
        self._episode += terminated or transition.truncated
