"""The meta-algorithms that are compared: compiled runs with the bandits' default parameters."""

from collections.abc import Callable

import numpy as np

from esbas.bandits import (
    D3RB,
    ED2RB,
    SWUCB,
    UCB1,
    DiscountedUCB,
    Exp3,
    Exp3S,
    Rexp3,
    RLessUCB,
    SlidingUCB,
    SWUCBSharp,
    Window,
)
from esbas.bandits.discounted import Discounted
from esbas.experiments.kernels.bounds import (
    balancing_regrets,
    discounted_regrets,
    exp3_regrets,
    rising_regrets,
    ucb_regrets,
    window_regrets,
)
from esbas.experiments.kernels.bounds.play import Floats, Integers, Keys

Run = Callable[..., Floats]
"""Takes expectations (T, K), keys (R,), checkpoints (C,) and xi=...

It returns the short-sighted regret, (R, C).
"""


def _ucb(*, restarts: bool) -> Run:
    def run(expectations: Floats, keys: Keys, checkpoints: Integers, *, xi: float) -> Floats:
        return ucb_regrets(expectations, keys, checkpoints, xi, restarts)

    return run


def _window(bandit: Callable[[int, int, float], UCB1], *, all_rounds: bool = False) -> Run:
    def run(expectations: Floats, keys: Keys, checkpoints: Integers, *, xi: float) -> Floats:
        horizon, n_arms = expectations.shape
        made = bandit(n_arms, horizon, xi)
        assert isinstance(made.memory, Window)
        sizes = np.array([made.memory.size(tau) for tau in range(1, horizon + 1)])
        return window_regrets(expectations, keys, checkpoints, made.xi, sizes, all_rounds)

    return run


def _discounted(expectations: Floats, keys: Keys, checkpoints: Integers, *, xi: float) -> Floats:
    del xi
    bandit = DiscountedUCB(expectations.shape[1], horizon=len(expectations))
    assert isinstance(bandit.memory, Discounted)
    return discounted_regrets(expectations, keys, checkpoints, bandit.xi, bandit.memory.discount)


def _exp3(bandit: type[Exp3]) -> Run:
    def run(expectations: Floats, keys: Keys, checkpoints: Integers, *, xi: float) -> Floats:
        del xi
        made = bandit(expectations.shape[1], horizon=len(expectations))
        alpha = made.alpha if isinstance(made, Exp3S) else 0.0
        batch = made.batch if isinstance(made, Rexp3) else 0
        return exp3_regrets(expectations, keys, checkpoints, made.gamma, alpha, batch)

    return run


def _balancing(bandit: type[D3RB] | type[ED2RB]) -> Run:
    def run(expectations: Floats, keys: Keys, checkpoints: Integers, *, xi: float) -> Floats:
        del xi
        made = bandit(expectations.shape[1])
        return balancing_regrets(
            expectations, keys, checkpoints, made.d_min, made.c, made.delta, isinstance(made, ED2RB)
        )

    return run


def _rising(expectations: Floats, keys: Keys, checkpoints: Integers, *, xi: float) -> Floats:
    del xi
    bandit = RLessUCB(expectations.shape[1])
    parameters = (bandit.epsilon, bandit.alpha, bandit.sigma)
    blocks = np.split(keys, range(25, len(keys), 25))  # it stores all rewards: fewer runs at a time
    return np.concatenate(
        [rising_regrets(expectations, block, checkpoints, *parameters) for block in blocks]
    )


META_ALGORITHMS: dict[str, Run] = {
    "ESBAS": _ucb(restarts=True),
    "SSBAS": _window(lambda n_arms, _, xi: SlidingUCB(n_arms, xi=xi)),
    "UCB1": _ucb(restarts=False),
    "SW-UCB": _window(lambda n_arms, horizon, _: SWUCB(n_arms, horizon=horizon)),
    "SW-UCB#": _window(lambda n_arms, *_: SWUCBSharp(n_arms), all_rounds=True),
    "D-UCB": _discounted,
    "Exp3": _exp3(Exp3),
    "Exp3.S": _exp3(Exp3S),
    "Rexp3": _exp3(Rexp3),
    "D3RB": _balancing(D3RB),
    "ED2RB": _balancing(ED2RB),
    "R-less-UCB": _rising,
}
"""ξ is used by ESBAS, SSBAS and UCB1; the others have their own parameters.

With all but ESBAS, learners learn all the time.
"""
