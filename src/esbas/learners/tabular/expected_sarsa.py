"""Expected SARSA with a table (van Seijen et al., 2009), for discrete observations and actions."""

from esbas.columns import Array
from esbas.learners.tabular import Tabular
from esbas.learners.tabular_q import q_update
from esbas.trajectory import Transition


def expected_value(values: Array, epsilon: float) -> float:
    """Σ_a π(a) Q(a) = (1 - ε) max_a Q(a) + ε mean_a Q(a) under the ε-greedy policy π, however many actions are the best."""
    return float((1 - epsilon) * values.max() + epsilon * values.mean())


class ExpectedSARSA(Tabular):
    """Learns the values of its own ε-greedy policy, exploration included, so it avoids actions that exploration makes risky.

    The expectation is that of its own policy, whoever acted, so it is correct for the data of others. See `Tabular` for the
    arguments.
    """

    def step(self, transition: Transition) -> None:
        """Update once. The next value counts unless the episode terminated, so it does after a truncation."""
        s, a, terminated = transition.observation, transition.action, transition.terminated
        following = 0.0 if terminated else expected_value(self.table[transition.next_observation], self.epsilon())
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        before = self.table[s, a]
        self.table[s, a] = after = q_update(before, rate, transition.reward, self.gamma, following)
        self._recent.append((before, after, rate))
        self._seen += 1
        self._episode += terminated or transition.truncated
