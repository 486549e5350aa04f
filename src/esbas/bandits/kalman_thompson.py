"""Thompson sampling from Kalman filters: for arms that learn from the same data."""

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from esbas import schema, seeding
from esbas.bandits.bandit import BANDITS, Floats, Rng
from esbas.bandits.kalman_filters import PACES, KalmanFilters
from esbas.bandits.memory_bandit import MemoryBandit, Round

DRAWS = 1000  # from which `explain` estimates probabilities


@BANDITS.register("kalman-thompson")
class KalmanThompson(MemoryBandit):
    """Draw one of nine Kalman filters by its weight, then all values from its posterior N(m, r P); pull the arm with the largest.

    Values change in each round, all together by N(0, r q_c) and each by N(0, r q_d), and rewards have noise N(0, r). With
    q = 1 / (1 + f t)² changes become smaller with the number of rounds t; the filters combine f = 1/2, 1/8, 1/32 for q_d with
    f = 1/8, 1/32, 1/128 for q_c. The weight of a filter is the product of its predictive densities (Student's t), earlier rounds
    discounted; r is the discounted mean of its squared errors. The first arm is drawn uniformly. An arm without a reward in
    the later half of the rounds becomes doubtful: its variance v becomes 4 v + 4.

    Kalman (1960), "A New Approach to Linear Filtering and Prediction Problems"; Thompson (1933), "On the Likelihood that One
    Unknown Probability Exceeds Another"; Raftery, Kárný & Ettler (2010), "Online Prediction Under Model Uncertainty via Dynamic
    Model Averaging". Rewards y and a + b y (b > 0) give the same choices, up to rounding. Work per round is O(K²), and
    O(K³) for a choice.
    """

    deterministic = False
    any_scale = True
    setting = "learning arms"
    use = "learners that share their data, values of any size; see `esbas.default_selector`"
    extra_state: ClassVar[dict[str, Any]] = {"filters": dict}
    width: ClassVar[float] = 1.0
    """The standard deviations of samples, relative to those of the posterior."""

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
        """The arm with the largest sample, a random one of equals."""
        arms = self._arms(among)
        if not self._filters.t:
            return arms[int(self.rng.integers(len(arms)))]
        f = self._filters.draw(self.rng.random())
        samples = self._filters.sample(f, self.width * self.rng.standard_normal(self.n_arms))
        largest = max(samples) if among is None else max(samples[k] for k in arms)
        best = [k for k in arms if samples[k] == largest]
        return self._settle(best[0] if len(best) == 1 else best[int(self.rng.integers(len(best)))], arms)

    def _settle(self, k: int, arms: Sequence[int]) -> int:
        """The arm to pull, after arm k had the largest sample among `arms`."""
        del arms
        return k

    def _learn(self, settled: Round, reward: float) -> None:
        self._filters.observe(self._arm_of(settled), reward)

    def _arm_of(self, settled: Round) -> int:
        """The number that the arm of a round has now."""
        return next(k for k, arm in enumerate(self.memory.arms) if arm is settled.arm)

    def _index(self, k: int) -> float:
        return float(self.indices()[k])

    def indices(self) -> Floats:
        """(K,): the posterior means; 0 before the first reward."""
        filters = self._filters
        means: list[float] = filters.average().tolist()
        return np.array([filters.origin + filters.unit * mean for mean in means])

    def explain(self) -> dict[str, Floats]:
        """(K,) each: the posterior standard deviations, the probabilities of being chosen next, and the weights of the filters.

        The probabilities are estimated from 1,000 samples of each filter, always with the same random numbers; those of the
        bandit's own generator are not used. The weights are the same for all arms.
        """
        filters, weights = self._filters, np.array(self._filters.weights())
        r, means = filters.noises(), filters.means
        variances = weights @ (r[:, None] * filters.variances + (means - filters.average()) ** 2)
        normals = self.width * seeding.generator(0, "explain").standard_normal((DRAWS, self.n_arms))
        chosen = np.zeros(self.n_arms)
        for f, weight in enumerate(weights):
            samples = means[f] + np.sqrt(r[f]) * normals @ filters.factor(f).T
            chosen += weight * np.bincount(samples.argmax(axis=1), minlength=self.n_arms)
        if not filters.t:
            chosen[:] = DRAWS / self.n_arms
        chosen = self._settled(chosen)
        spreads = [filters.unit * deviation for deviation in np.sqrt(variances).tolist()]  # may be infinite, without a warning
        columns = {"spread": np.array(spreads), "probability": chosen / DRAWS}
        names = [f"filter 1/{1 / own:g}, 1/{1 / common:g}" for own, common in PACES.T]
        return columns | {name: np.full(self.n_arms, weight) for name, weight in zip(names, weights, strict=True)}

    def _settled(self, largest: Floats) -> Floats:
        """(K,): how often each arm is pulled, if it has the largest sample that often."""
        return largest

    def reset(self, keep: Collection[int] = ()) -> None:
        """Arms that are not kept become new arms. Without an arm to keep, the filters start again."""
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
        found = KalmanFilters(1)
        found.load_state_dict(state["filters"])
        n_arms = len(found.seen)
        schema.require(n_arms == state["n_arms"], "the filters have all arms", where, arms=n_arms, n_arms=state["n_arms"])
