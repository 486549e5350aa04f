"""The feature sets of the paper's negotiation learners: simple, fast, simple-2, fast-2, and n-z-* with z features of noise.

The functions are plain and call no others: the feature maps call them as they are, the compiled experiment compiles the same.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.errors import InvalidValueError, require

Floats = NDArray[np.float64]
NOTHING_HEARD_COST = 1.0  # stands for the cost of the option heard as long as none was
TWO_32 = 4294967296.0
_NAME = re.compile(r"(?:n-(?P<noise>[1-9]\d*)-)?(?P<base>simple|fast)(?P<square>-2)?")


def time_feature(turn: Any) -> Any:
    """φ_t = 0.1 t / (0.1 t + 1) at the system's t-th act, t = 1, 2, ..."""
    return 0.1 * turn / (0.1 * turn + 1.0)


def difference_feature(heard_cost: Any, next_cost: Any) -> Any:
    """φ_dif: the system's cost of the option heard (1 if none) minus that of its next best option."""
    return heard_cost - next_cost


def feature_count(base: int, square: bool) -> int:
    """How many features there are over this many base features: 1 and they themselves, with `square` all their products, too."""
    return 1 + base + (base * (base + 1) // 2 if square else 0)


def fill_features(base: Any, count: int, square: bool, out: Floats) -> None:
    """Write (1, b_0, ..., b_count-1) and, with `square`, b_i b_j for i <= j in order of i, then j.

    Features come first: `base` is (count, ...) and `out` (feature_count, ...), so that one state and a column of them are alike.
    """
    out[0] = 1.0
    for i in range(count):
        out[1 + i] = base[i]
    if square:
        at = 1 + count
        for i in range(count):
            for j in range(i, count):
                out[at] = base[i] * base[j]
                at += 1


def scatter(key: Any, value: Any) -> Any:
    """A new key, from 0 to 2^32 - 1, that looks random: for plain integers, columns of int64 and compiled int64 alike."""
    x = (key ^ value) & 0xFFFFFFFF  # the factors lie below 2^31, so that no product leaves int64
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF
    return x ^ (x >> 15)


class DialogueFeatures:
    """A feature map by its name in the paper, from observations of `esbas.envs.NegotiationDialogue`.

    The base features are φ_asr, φ_dif, with `simple` φ_t, and the noise. A noise feature is a number from [0, 1) for each
    instance, dialogue, turn and feature, and the value acted on must be the value trained on, though the learner cannot know
    which dialogue of the shared data it is acting in. So it is computed from what is seen: the seed of the instance, the first
    32 bits of the system's lowest cost (drawn anew for every dialogue, so it names it), the turn and the feature's number
    (from 0), scattered in this order from key 0.

    Args:
        name: such as "simple", "fast-2" or "n-1-simple-2".
        seed: of the noise; instances with different seeds see independent noise.
    """

    def __init__(self, name: str, *, seed: int = 0) -> None:
        match = _NAME.fullmatch(name)
        if match is None:
            remedy = "take simple, fast, simple-2 or fast-2, with n-z- before it for z features of noise"
            raise InvalidValueError(f"a feature set must have a name of the paper, but got {name!r}: {remedy}")
        require(0 <= seed < TWO_32, "0 <= seed < 2^32", seed=seed)
        self.name, self.seed = name, seed
        self.noise, self.square, self.timed = int(match["noise"] or 0), bool(match["square"]), match["base"] == "simple"
        self.base_count = 2 + self.timed + self.noise
        self.size = feature_count(self.base_count, self.square)

    def __call__(self, observation: Floats) -> Floats:
        """The features of one observation, (d,)."""
        turn, score, heard, _, following, *costs = np.asarray(observation, np.float64).tolist()
        heard_cost = NOTHING_HEARD_COST if heard < 0 else costs[int(heard)]
        base = self._base(score, heard_cost, costs[int(following)], int(turn), int(costs[0] * TWO_32))
        out = np.empty(self.size)
        fill_features(base, self.base_count, self.square, out)
        return out

    def batch(self, observations: Floats) -> Floats:
        """The features of many, (N, d)."""
        seen = np.asarray(observations, np.float64)
        turn, score, heard, _, following = seen[:, :5].T
        costs, row = seen[:, 5:], np.arange(len(seen))
        heard_cost = np.where(heard < 0, NOTHING_HEARD_COST, costs[row, heard.astype(np.int64)])
        next_cost = costs[row, following.astype(np.int64)]
        lowest = (costs[:, 0] * TWO_32).astype(np.int64)
        base = self._base(score, heard_cost, next_cost, turn.astype(np.int64), lowest)
        out = np.empty((self.size, len(seen)))
        fill_features(base, self.base_count, self.square, out)
        return np.ascontiguousarray(out.T)

    def _base(self, score: Any, heard_cost: Any, next_cost: Any, turn: Any, lowest: Any) -> list[Any]:
        """The base features, of one observation or as columns of many."""
        base = [score, difference_feature(heard_cost, next_cost)]
        if self.timed:
            base.append(time_feature(turn))
        if self.noise:
            key = scatter(scatter(scatter(0, self.seed), lowest), turn)
            base += [scatter(key, feature) / TWO_32 for feature in range(self.noise)]
        return base
