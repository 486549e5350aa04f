"""The feature sets of the negotiation learners in the paper.

They are simple, fast, simple-2, fast-2, and n-z-* with z noise features.

The functions call no other Python functions, so that the feature maps and the compiled experiment
can share them.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.errors import InvalidValueError, require

Floats = NDArray[np.float64]
NOTHING_HEARD_COST = 1.0  # the cost of the option heard before the first one is heard
TWO_32 = 4294967296.0
_NAME = re.compile(r"(?:n-(?P<noise>[1-9]\d*)-)?(?P<base>simple|fast)(?P<square>-2)?")


def time_feature(turn: Any) -> Any:
    """Return φ_t = 0.1 t / (0.1 t + 1) at the system's t-th act, t = 1, 2, ..."""
    return 0.1 * turn / (0.1 * turn + 1.0)


def difference_feature(heard_cost: Any, next_cost: Any) -> Any:
    """Return φ_dif.

    It is the system's cost of the option heard (1 if none) minus that of its next best option.
    """
    return heard_cost - next_cost


def feature_count(base: int, square: bool) -> int:
    """Return the number of features for `base` base features.

    Features are a constant, the base features and, with `square`, all their products.
    """
    products = base * (base + 1) // 2 if square else 0
    return 1 + base + products


def fill_features(base: Any, count: int, square: bool, out: Floats) -> None:
    """Write (1, b_0, ..., b_count-1) and, with `square`, b_i b_j for i <= j in order of i, then j.

    The first axis is that of the features: `base` is (count, ...) and `out` is (feature_count,
    ...), for one state or for many.
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
    """Return a hash of key and value, from 0 to 2^32 - 1.

    Both are Python integers, int64 arrays or compiled int64.
    """
    x = (key ^ value) & 0xFFFFFFFF  # the factors are below 2^31, so products fit into int64
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 0x735A2D97) & 0xFFFFFFFF
    return x ^ (x >> 15)


class DialogueFeatures:
    """A feature map for observations of `NegotiationDialogue`, by its name in the paper.

    The base features are φ_asr, φ_dif, with `simple` φ_t, and the noise. A noise feature is a
    number in [0, 1) for each instance, dialogue, turn and feature. It must have the same value when
    acting and when learning, but a learner does not know which dialogue of the shared data it acts
    in. So noise is a hash of what the learner sees: the seed of the instance, the first 32 bits of
    the system's lowest cost (which identifies the dialogue), the turn and the index of the feature,
    in this order.

    Args:
        name: such as "simple", "fast-2" or "n-1-simple-2".
        seed: the seed of the noise; instances with different seeds have independent noise.
    """

    def __init__(self, name: str, *, seed: int = 0) -> None:
        match = _NAME.fullmatch(name)
        if match is None:
            raise InvalidValueError(
                f"A feature set must have a name of the paper, but got {name!r}: choose simple, "
                "fast, simple-2 or fast-2, with the prefix n-z- for z noise features."
            )
        require(
            0 <= seed < TWO_32, f"`seed` must be at least 0 and less than 2^32, but got {seed!r}."
        )
        self.name = name
        self.seed = seed
        self.noise = int(match["noise"] or 0)
        self.square = bool(match["square"])
        self.timed = match["base"] == "simple"
        self.base_count = 2 + self.timed + self.noise
        self.size = feature_count(self.base_count, self.square)

    def __call__(self, observation: Floats) -> Floats:
        """Return the features of one observation, (d,)."""
        turn, score, heard, _, following, *costs = np.asarray(observation, np.float64).tolist()
        heard_cost = NOTHING_HEARD_COST if heard < 0 else costs[int(heard)]
        next_cost = costs[int(following)]
        lowest = int(costs[0] * TWO_32)
        base = self._base(score, heard_cost, next_cost, int(turn), lowest)
        out = np.empty(self.size)
        fill_features(base, self.base_count, self.square, out)
        return out

    def batch(self, observations: Floats) -> Floats:
        """Return the features of many observations, (N, d)."""
        seen = np.asarray(observations, np.float64)
        turn, score, heard, _, following = seen[:, :5].T
        costs = seen[:, 5:]
        row = np.arange(len(seen))
        heard_cost = np.where(heard < 0, NOTHING_HEARD_COST, costs[row, heard.astype(np.int64)])
        next_cost = costs[row, following.astype(np.int64)]
        lowest = (costs[:, 0] * TWO_32).astype(np.int64)
        base = self._base(score, heard_cost, next_cost, turn.astype(np.int64), lowest)
        out = np.empty((self.size, len(seen)))
        fill_features(base, self.base_count, self.square, out)
        return np.ascontiguousarray(out.T)

    def _base(
        self, score: Any, heard_cost: Any, next_cost: Any, turn: Any, lowest: Any
    ) -> list[Any]:
        """Return the base features of one observation, or those of many as arrays."""
        base = [score, difference_feature(heard_cost, next_cost)]
        if self.timed:
            base.append(time_feature(turn))
        if self.noise:
            key = scatter(scatter(scatter(0, self.seed), lowest), turn)
            base += [scatter(key, feature) / TWO_32 for feature in range(self.noise)]
        return base
