"""Bandits that eliminate arms and commit.

They pull the surviving arm with the fewest pulls. A survivor's index is minus its pulls; that of an
eliminated arm is -∞.
"""

import math
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from esbas._internal import schema
from esbas.bandits.bandit import BANDITS, DEFAULT_HORIZON, Rng
from esbas.bandits.memory_bandit import AllRounds, Arm, MemoryBandit, Round
from esbas.errors import require


def elimination_radius(n_arms: float, pulls: float, delta: float) -> float:
    """Return the radius √(ln(5 K n² / δ) / n) of a confidence bound.

    Even-Dar et al. (2002) allow any constant above 4; here it is 5.
    """
    return math.sqrt(math.log(5.0 * n_arms * pulls * pulls / delta) / pulls)


def median_elimination_pulls(stage: int, epsilon: float, delta: float) -> int:
    """Return the pulls of each survivor in stage l = 1, 2, ...: ⌈4 / ε_l² · ln(3 / δ_l)⌉.

    ε_l = ε / 4 · (3/4)^(l - 1) and δ_l = δ / 2^l.
    """
    stage_epsilon = epsilon / 4.0 * 0.75 ** (stage - 1)
    return math.ceil(4.0 / stage_epsilon**2 * math.log(3.0 * 2.0**stage / delta))


@dataclass(slots=True)
class EliminationArm(Arm):
    """Adds whether the arm survives."""

    survives: bool = True


class Elimination(MemoryBandit):
    """The survivors, and a test whenever a reward has arrived."""

    arm_type: type[Arm] = EliminationArm
    any_scale = True
    memory: AllRounds

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)

    @property
    def survivors(self) -> list[int]:
        """The numbers of the arms that are not eliminated."""
        return [k for k, arm in enumerate(self.memory.arms) if arm.survives]

    def _keep(self, survivors: Collection[int]) -> None:
        for k, arm in enumerate(self.memory.arms):
            arm.survives = k in survivors

    @abstractmethod
    def _test(self) -> None:
        """Eliminate arms where possible."""

    @abstractmethod
    def _restart(self) -> None:
        """Start the stages again: arms have joined the survivors."""

    def _learn(self, settled: Round, reward: float) -> None:
        del settled, reward
        if len(self.survivors) > 1:
            self._test()

    def _pulls(self, k: int) -> float:
        arm: EliminationArm = self.memory.arms[k]
        return arm.pulls

    def _index(self, k: int) -> float:
        return float(-self._pulls(k)) if self.memory.arms[k].survives else -math.inf

    def choose(self, among: Collection[int] | None = None) -> int:
        """Return the survivor with the fewest pulls; without a survivor, the best of the arms."""
        arms = self._arms(among)
        survivors = [k for k in arms if self.memory.arms[k].survives]
        if survivors:
            return min(survivors, key=self._pulls)
        return max(arms, key=self._mean_or_first)

    def _mean_or_first(self, k: int) -> float:
        arm = self.memory.arms[k]
        return self._mean(arm) if arm.pulls else math.inf

    def _leader(self) -> int:
        means = {k: self.memory.arms[k].mean for k in self.survivors}
        return max(means, key=means.__getitem__)

    def reset(self, keep: Collection[int] = ()) -> None:
        super().reset(keep)
        self._revive()

    def _revive(self) -> None:
        """Let all arms survive, the kept ones of a reset included."""
        self._keep(range(self.n_arms))
        self._restart()

    def add_arm(self) -> None:
        super().add_arm()
        self._restart()

    def remove_arm(self, arm: int) -> None:
        """Remove an arm. If it was the last survivor, all other arms survive again."""
        super().remove_arm(arm)
        if not self.survivors:
            self._revive()


@BANDITS.register("successiveelimination")
class SuccessiveElimination(Elimination):
    """After each pull of all survivors, eliminate those with x_k + α(n_k) <= max_j (x_j - α(n_j)).

    α(n) = √(ln(5 K n² / δ) / n). With equal n this is x_max - x_k >= 2 α of Even-Dar et al. (2002);
    n may differ after a reset that keeps arms. The last survivor is optimal with probability 1 - δ.

    Args:
        n_arms: K.
        delta: δ, the probability to eliminate the best arm.
        epsilon: the accepted error, in units of `spread`: once α <= ε / 2, the leader is the only
            survivor.
        rng: not used.
    """

    extra_state: ClassVar = {"tested": schema.COUNT}
    use = "to commit to the best arm with high confidence"
    guarantee = "the best arm with probability 1 - δ, after O(ln(K / (δ Δ)) / Δ²) pulls of an arm"

    def __init__(
        self, n_arms: int, *, delta: float = 0.1, epsilon: float = 0.0, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, rng=rng)
        require(0 < delta < 1, f"`delta` must lie between 0 and 1, but got {delta!r}.")
        require(epsilon >= 0, f"`epsilon` must be at least 0, but got {epsilon!r}.")
        self.delta = delta
        self.epsilon = epsilon
        self.tested = 0  # rewards of each survivor at the last test

    def _test(self) -> None:
        arms = {k: self.memory.arms[k] for k in self.survivors}
        fewest = min(int(arm.rewards) for arm in arms.values())
        if fewest <= self.tested:
            return  # not every survivor has a new reward yet
        self.tested = fewest
        if elimination_radius(self.n_arms, fewest, self.delta) <= self.epsilon / 2:
            self._keep([self._leader()])
            return
        lower = {}
        upper = {}
        for k, arm in arms.items():
            radius = self.spread * elimination_radius(self.n_arms, arm.rewards, self.delta)
            lower[k] = arm.mean - radius
            upper[k] = arm.mean + radius
        best_lower = max(lower.values())
        self._keep([k for k in arms if upper[k] > best_lower])

    def _restart(self) -> None:
        self.tested = 0


@dataclass(slots=True)
class StagedArm(EliminationArm):
    """Adds the rewards that arrived in this stage."""

    fresh: schema.Count = 0
    fresh_total: float = 0.0


@BANDITS.register("medianelimination")
class MedianElimination(Elimination):
    """In each stage every survivor gets the same number of new rewards; the better half survives.

    The last survivor is within ε of the best with probability 1 - δ (Even-Dar et al. 2002). The
    better half of S arms has ⌈S / 2⌉ arms; the article keeps all at or above the median, which is
    the same without ties but never ends with them. A reward belongs to the stage in which it
    arrives.

    Args:
        n_arms: K.
        epsilon: ε, in units of `spread`.
        delta: δ.
        rng: not used.
    """

    arm_type = StagedArm
    extra_state: ClassVar = {"stage": schema.Number(min=1, max=64, whole=True)}
    use = "to commit to a good arm out of many"
    guarantee = "an arm within ε of the best with probability 1 - δ, after O(K / ε² ln(1/δ)) rounds"

    def __init__(
        self, n_arms: int, *, epsilon: float = 0.2, delta: float = 0.1, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, rng=rng)
        require(
            0 < epsilon <= 1,
            f"`epsilon` must be greater than 0 and at most 1, but got {epsilon!r}.",
        )
        require(0 < delta < 1, f"`delta` must lie between 0 and 1, but got {delta!r}.")
        self.epsilon = epsilon
        self.delta = delta
        self.stage = 1

    def _restart(self) -> None:
        self._start_stage(1)

    def _start_stage(self, stage: int) -> None:
        self.stage = stage
        for arm in self.memory.arms:
            arm.fresh = 0
            arm.fresh_total = 0.0

    def _learn(self, settled: Round, reward: float) -> None:
        settled.arm.fresh += 1
        settled.arm.fresh_total += reward
        super()._learn(settled, reward)

    def _test(self) -> None:
        arms: list[StagedArm] = self.memory.arms
        survivors = self.survivors
        needed = median_elimination_pulls(self.stage, self.epsilon, self.delta)
        if min(arms[k].fresh for k in survivors) < needed:
            return
        # `sorted` is stable: of equal arms, the lowest number comes first.
        ranked = sorted(survivors, key=lambda k: -arms[k].fresh_total / arms[k].fresh)
        self._keep(ranked[: math.ceil(len(ranked) / 2)])
        self._start_stage(self.stage + 1)

    def _pulls(self, k: int) -> float:
        arm: StagedArm = self.memory.arms[k]
        return arm.fresh + arm.pulls - arm.rewards


@BANDITS.register("explorethencommit")
class ExploreThenCommit(Elimination):
    """Pull each arm m times, then always the one with the best mean.

    Args:
        n_arms: K.
        pulls: m, by default `⌈(T / K)^(2/3)⌉`: a regret of order K^(1/3) T^(2/3), up to a
            logarithm, for any arms.
        horizon: T, used only if `pulls` is not given.
        rng: not used.
    """

    use = "as a baseline"
    guarantee = "O(K^(1/3) T^(2/3)) up to a logarithm"

    def __init__(
        self,
        n_arms: int,
        *,
        pulls: int | None = None,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, rng=rng)
        require(pulls is None or pulls >= 1, f"`pulls` must be at least 1, but got {pulls!r}.")
        require(horizon >= 1, f"`horizon` must be at least 1, but got {horizon!r}.")
        if pulls is None:
            pulls = math.ceil((horizon / n_arms) ** (2 / 3))
        self.pulls = pulls

    def _test(self) -> None:
        if min(self.memory.arms[k].rewards for k in self.survivors) >= self.pulls:
            self._keep([self._leader()])

    def _restart(self) -> None:
        """Do nothing: there is one stage, and the memory has all of it."""
