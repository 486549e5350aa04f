"""Thompson sampling from Kalman filters: for arms that learn from the same data."""

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from esbas import seeding
from esbas.bandits.bandit import BANDITS, Floats, Rng
from esbas.bandits.kalman_filters import PACES, KalmanFilters
from esbas.bandits.memory_bandit import MemoryBandit, Round
from esbas.errors import require

DRAWS = 1000  # samples from which `explain` estimates probabilities


@BANDITS.register("kalman-thompson")
class KalmanThompson(MemoryBandit):
    """Draw one of nine Kalman filters by its weight, then all values from its posterior N(m, r P).

    Pull the arm with the largest value. Values change in each round, all together by N(0, r q_c)
    and each by N(0, r q_d), and rewards have noise N(0, r). With q = 1 / (1 + f t)², changes become
    smaller with the number of rounds t; the filters combine f = 1/2, 1/8, 1/32 for q_d with
    f = 1/8, 1/32, 1/128 for q_c. The weight of a filter is the product of its predictive densities
    (Student's t), earlier rounds discounted; r is the discounted mean of its squared errors. The
    first arm is drawn uniformly. An arm without a reward in the later half of the rounds becomes
    doubtful: its variance v becomes 4 v + 4.

    Rewards y and a + b y (b > 0) give the same choices, up to rounding. Work per round is O(K²),
    and O(K³) for a choice.

    Kalman (1960), "A New Approach to Linear Filtering and Prediction Problems"; Thompson (1933),
    "On the Likelihood that One Unknown Probability Exceeds Another"; Raftery, Kárný & Ettler
    (2010), "Online Prediction Under Model Uncertainty via Dynamic Model Averaging".
    """

    deterministic = False
    any_scale = True
    setting = "learning arms"
    use = "learners that share their data, values of any size; see `esbas.default_selector`"
    extra_state: ClassVar[dict[str, Any]] = {"filters": dict}

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)  # no `memory`: filters cannot forget single rounds
        self._filters = KalmanFilters(n_arms)

    @property
    def filters(self) -> dict[str, Any]:
        """The state of the filters."""
        return self._filters.state_dict()

    @filters.setter
    def filters(self, state: dict[str, Any]) -> None:
        self._filters.load_state_dict(state)

    def choose(self, among: Collection[int] | None = None) -> int:
        """Return the arm with the largest sample, a random one of equals."""
        arms = self._arms(among)
        if not self._filters.t:
            return self._draw(arms)
        f = self._filters.draw(self.rng.random())
        samples = self._filters.sample(f, self.rng.standard_normal(self.n_arms))
        largest = max(samples) if among is None else max(samples[k] for k in arms)
        best = [k for k in arms if samples[k] == largest]
        if len(best) == 1:
            return best[0]
        return self._draw(best)

    def _learn(self, settled: Round, reward: float) -> None:
        self._filters.observe(self._arm_of(settled), reward)

    def _arm_of(self, settled: Round) -> int:
        """Return the number that the arm of a round has now."""
        return next(k for k, arm in enumerate(self.memory.arms) if arm is settled.arm)

    def _index(self, k: int) -> float:
        return float(self.indices()[k])

    def indices(self) -> Floats:
        """Return the posterior means, (K,); 0 before the first reward."""
        filters = self._filters
        means: list[float] = filters.average().tolist()
        return np.array([filters.origin + filters.unit * mean for mean in means])

    def explain(self) -> dict[str, Floats]:
        """Return spreads, probabilities and the weights of the filters, (K,) each.

        The spreads are posterior standard deviations. The probabilities of being chosen next are
        estimated from 1,000 samples of each filter, always with the same random numbers; those of
        the bandit's own generator are not used. The weights are the same for all arms.
        """
        filters = self._filters
        weights = np.array(filters.weights())  # (F,)
        r = filters.noises()  # (F,)
        means = filters.means  # (F, K)
        within = r[:, None] * filters.variances  # (F, K)
        between = (means - filters.average()) ** 2  # (F, K)
        variances = weights @ (within + between)  # (K,)
        normals = seeding.generator(0, "explain").standard_normal((DRAWS, self.n_arms))
        chosen = np.zeros(self.n_arms)
        for f, weight in enumerate(weights):
            samples = means[f] + np.sqrt(r[f]) * normals @ filters.factor(f).T
            chosen += weight * np.bincount(samples.argmax(axis=1), minlength=self.n_arms)
        if not filters.t:
            chosen[:] = DRAWS / self.n_arms
        # Products of Python's floats may be infinite without a warning.
        spreads = [filters.unit * deviation for deviation in np.sqrt(variances).tolist()]
        columns = {"spread": np.array(spreads), "probability": chosen / DRAWS}
        for (own, common), weight in zip(PACES.T, weights, strict=True):
            columns[f"filter 1/{1 / own:g}, 1/{1 / common:g}"] = np.full(self.n_arms, weight)
        return columns

    def reset(self, keep: Collection[int] = ()) -> None:
        """Turn arms that are not kept into new arms. Without an arm to keep, start again."""
        super().reset(keep)
        forgotten = [k for k in range(self.n_arms) if k not in keep]
        if len(forgotten) == self.n_arms:
            self._filters = KalmanFilters(self.n_arms)
        elif forgotten:
            self._filters.renew(forgotten)

    def add_arm(self) -> None:
        super().add_arm()
        self._filters.add_arm()

    def remove_arm(self, arm: int) -> None:
        super().remove_arm(arm)
        self._filters.remove_arm(arm)

    def _check_loaded(self, state: dict[str, Any], where: str) -> None:
        filters = KalmanFilters(1)
        filters.load_state_dict(state["filters"])
        n_arms = state["n_arms"]
        found = len(filters.seen)
        require(
            found == n_arms,
            f"The filters in {where} must have {n_arms} arms, but have {found}: "
            "go back to an earlier copy.",
        )
