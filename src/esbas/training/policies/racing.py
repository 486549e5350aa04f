"""A race: policies play until it is clear which one is the best, or the steps are used up.

All policies play the same episodes, so they are compared by the differences of their values in each
episode, which vary less than the values themselves.

- A policy leaves the race when it is worse than the leader beyond doubt (a paired t-test; racing:
  Maron and Moore, 1994).
- When the steps become scarce, the worse half leaves, down to two policies (successive halving;
  Karnin et al., 2013). The policy with the largest share of control stays, because the selector has
  seen more episodes of it than an evaluation can afford.
- The race ends when one policy is left, or when the others are as good as the leader, or when the
  steps are used up.
- Of policies that are within half a standard error of the leader, the one with the largest share of
  control wins (as in the one-standard-error rule of Breiman et al., 1984, with the selector's trust
  instead of simplicity; with a whole one, the better of two finalists lost more often). With few
  episodes, a standard error is itself uncertain, so it is that of Student's distribution: 0.69 of
  it for two episodes, 0.53 for six.
- If the steps are too few for an episode of every policy, only those with the largest shares of
  control race. Otherwise those with short episodes would win, because all others are cut.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from esbas.training.policies.scoring import Scorer

TIE = 0.6915  # one-sided: the chance that a normal variable is below half a standard deviation
CONFIDENCE = 0.995  # one-sided, of leaving the race; high, because it is tested many times
FEWEST = 5  # episodes before a policy leaves the race because it is worse beyond doubt
FEWEST_EQUAL = 20  # episodes before policies count as equally good
SMALL = 0.01  # a difference of this share of what was gained by learning counts as none
GROWTH = 1.1  # policies are compared again after this many times as many episodes
ALLOWANCE = 2  # a first episode may be this many times as long as those of the training
NOT_PLAYED = "it was not played, because there are too few steps for all learners"


@dataclass(frozen=True)
class _Difference:
    """By how much a policy is worse than the leader, over the episodes that both have played."""

    mean: float
    error: float  # its standard error; infinite if there is only one episode
    episodes: int

    @property
    def low(self) -> float:
        """The difference is larger than this, beyond doubt."""
        return self.mean - self._half_width(CONFIDENCE)

    @property
    def high(self) -> float:
        """The difference is smaller than this, beyond doubt."""
        return self.mean + self._half_width(CONFIDENCE)

    @property
    def is_tie(self) -> bool:
        """Whether the difference is within half a standard error."""
        return self.mean <= self._half_width(TIE)

    def _half_width(self, confidence: float) -> float:
        if self.episodes < 2:
            return math.inf
        return float(stdtrit(self.episodes - 1, confidence)) * self.error


class Race:
    """A race of the policies of a scorer.

    Args:
        scorer: lets the policies play. Its budget is that of the race.
        episodes: of the winner, even if it is found earlier.
        shares: the share of control of each policy's learner in recent episodes of the training.
        start: the mean value of the first episodes of the training, from which what was gained by
            learning is measured.
        length: the mean length of recent episodes of the training, in steps.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        episodes: int,
        shares: Mapping[str, float],
        start: float,
        length: float,
    ) -> None:
        self._scorer = scorer
        self._wanted = episodes
        self._shares = shares
        self._start = start
        self._length = length
        self._budget = scorer.remaining
        self._racing: list[str] = []

    def run(self) -> list[str]:
        """Let the policies play, and return the names of those without a problem, best first."""
        self._scorer.play_first(self._participants())
        self._racing = list(self._scorer.valid)
        halvings = 1
        stages = math.ceil(math.log2(max(2, len(self._racing))))
        next_comparison = FEWEST
        while self._goes_on() and self._scorer.play_round(self._racing):
            self._racing = [name for name in self._racing if name in self._scorer.valid]
            if self._episodes() >= next_comparison:
                self._drop_worse()
                if self._episodes() >= self._wanted and self._are_equal():
                    break
                next_comparison = math.ceil(GROWTH * self._episodes() + 0.5)
            used = self._budget - self._scorer.remaining
            if used >= halvings / stages * self._budget:
                halvings += 1
                self._drop_half()
        return self._order()

    def _participants(self) -> list[str]:
        """Return the policies that race. The others get a problem.

        Those with most control come last: they may use the steps that others have left over.
        """
        scores = self._scorer.valid
        by_share = sorted(scores, key=lambda name: self._shares.get(name, 0.0))
        affordable = int(self._budget // (ALLOWANCE * max(1.0, self._length)))
        left_out = max(0, len(by_share) - max(1, affordable))
        for name in by_share[:left_out]:
            scores[name].problem = NOT_PLAYED
        return by_share[left_out:]

    def _goes_on(self) -> bool:
        return len(self._racing) > 1 or self._episodes() < self._wanted

    def _episodes(self) -> int:
        counts = [len(self._scorer.scores[name].values) for name in self._racing]
        return min(counts, default=0)

    def _mean(self, name: str) -> float:
        """Return the mean value of a policy such that larger is better."""
        return self._scorer.rank(float(np.mean(self._scorer.scores[name].values)))

    def _leader(self, names: Iterable[str]) -> str:
        """Return the best of these policies; of equal ones, that with the larger share."""
        return max(names, key=lambda name: (self._mean(name), self._shares.get(name, 0.0)))

    def _difference(self, leader: str, name: str) -> _Difference:
        best = self._scorer.scores[leader].values
        values = self._scorer.scores[name].values
        episodes = min(len(best), len(values))
        differences = np.array(best[:episodes]) - np.array(values[:episodes])
        mean = self._scorer.rank(float(differences.mean()))
        if episodes < 2:
            return _Difference(mean, math.inf, episodes)
        error = float(differences.std(ddof=1)) / math.sqrt(episodes)
        return _Difference(mean, error, episodes)

    def _drop_worse(self) -> None:
        """Drop the policies that are worse than the leader beyond doubt."""
        if not self._racing:
            return
        leader = self._leader(self._racing)
        staying = []
        for name in self._racing:
            if name == leader or self._difference(leader, name).low <= 0.0:
                staying.append(name)
        self._racing = staying

    def _drop_half(self) -> None:
        """Drop the worse half, but never the policy with the largest share of control."""
        count = max(2, (len(self._racing) + 1) // 2)
        best_first = sorted(self._racing, key=self._mean, reverse=True)
        most_trusted = max(self._racing, key=lambda name: self._shares.get(name, 0.0), default="")
        staying = {*best_first[:count], most_trusted}
        self._racing = [name for name in self._racing if name in staying]

    def _are_equal(self) -> bool:
        """Return whether no policy is worse than the leader by more than a small amount."""
        if self._episodes() < FEWEST_EQUAL:
            return False
        leader = self._leader(self._racing)
        gain = self._mean(leader) - self._scorer.rank(self._start)
        small = SMALL * max(0.0, gain)
        return all(self._difference(leader, name).high <= small for name in self._racing)

    def _order(self) -> list[str]:
        """Return the winner, then those that stayed in the race, then the others."""
        valid = self._scorer.valid
        racing = [name for name in self._racing if name in valid]
        if not racing:
            racing = list(valid)
        if not racing:
            return []
        leader = self._leader(racing)
        tied = []
        for name in racing:
            if name == leader or self._difference(leader, name).is_tie:
                tied.append(name)
        winner = max(tied, key=lambda name: (self._shares.get(name, 0.0), self._mean(name)))
        others = [name for name in valid if name != winner]
        others.sort(key=lambda name: (name in racing, self._mean(name)), reverse=True)
        return [winner, *others]
