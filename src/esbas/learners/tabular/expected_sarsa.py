"""Expected SARSA with a table (van Seijen et al., 2009), for discrete observations and actions."""

from esbas._internal.columns import Array
from esbas.learners.tabular.q_learning import q_update
from esbas.learners.tabular.table import Tabular
from esbas.trajectory import Transition


def expected_value(values: Array, epsilon: float) -> float:
    """Return Σ_a π(a) Q(a) = (1 - ε) max_a Q(a) + ε mean_a Q(a) under the ε-greedy policy π.

    This also holds if several actions are the best.
    """
    return float((1 - epsilon) * values.max() + epsilon * values.mean())


class ExpectedSARSA(Tabular):
    """Learns the values of its own ε-greedy policy, exploration included.

    So it avoids actions that exploration makes risky. The expectation is that of its own policy,
    whichever learner acted, so it is correct for the data of others. Repetitions of random actions
    (`zeta`) are not part of this expectation. See `Tabular` for the arguments.
    """

    title = "expected SARSA"

    def step(self, transition: Transition) -> None:
        """Update once. After a truncation, unlike a termination, the next value counts."""
        s = transition.observation
        a = transition.action
        terminated = transition.terminated
        following = 0.0
        if not terminated:
            following = expected_value(self.table[transition.next_observation], self.epsilon())
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        before = self.table[s, a]
        after = q_update(before, rate, transition.reward, self.gamma, following)
        self.table[s, a] = after
        self._recent.append((before, after, rate))
        self._seen += 1
        self._episode += terminated or transition.truncated
