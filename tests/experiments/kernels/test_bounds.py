"""The compiled runs and the objects make the same choices from the same draws."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from esbas import ESBAS, SSBAS, UCB1, BanditSelector, Selector
from esbas.bandits import (
    D3RB,
    ED2RB,
    SWUCB,
    DiscountedUCB,
    Exp3,
    Exp3S,
    Rexp3,
    RLessUCB,
    SWUCBSharp,
)
from esbas.experiments import regrets as regret
from esbas.experiments.bounds.meta_algorithms import META_ALGORITHMS
from esbas.experiments.kernels.counter import run_key, uniform

HORIZON = 700
ARMS = ["rising", "steady", "late"]


def _expectations() -> np.ndarray:
    time = np.arange(HORIZON)
    curves = [0.7 - 0.6 / np.sqrt(1 + time), np.full(HORIZON, 0.5501), 0.9 - 0.9 / (1 + time / 100)]
    return np.stack(curves, axis=1)  # (T, K): the best arm changes twice


class Draws:
    """Replaces a generator: returns the random words that the compiled run uses for its choices."""

    def __init__(self, key: np.uint64) -> None:
        self.key = key
        self.tau = 0

    def random(self) -> float:
        self.tau += 1
        return uniform(self.key, 2 * self.tau + 1)


def _choices(selector: Selector, key: np.uint64, expectations: np.ndarray) -> np.ndarray:
    chosen = []
    for tau in range(1, HORIZON + 1):
        choice = selector.ask()
        chosen.append(ARMS.index(choice.arm))
        selector.tell(choice, float(uniform(key, 2 * tau) < expectations[tau - 1, chosen[-1]]))
    return np.array(chosen)


def _direct(bandit: Callable[..., object]) -> Callable[[], Selector]:
    return lambda: BanditSelector(ARMS, bandit=bandit, scale=None)


OBJECTS: dict[str, Callable[[], Selector]] = {
    "ESBAS": lambda: ESBAS(ARMS, xi=0.3, scale=None),
    "SSBAS": lambda: SSBAS(ARMS, xi=0.3, scale=None),
    "UCB1": _direct(partial(UCB1, xi=0.3)),
    "SW-UCB": _direct(partial(SWUCB, horizon=HORIZON)),
    "SW-UCB#": _direct(SWUCBSharp),
    "D-UCB": _direct(partial(DiscountedUCB, horizon=HORIZON)),
    "Exp3": _direct(partial(Exp3, horizon=HORIZON)),
    "Exp3.S": _direct(partial(Exp3S, horizon=HORIZON)),
    "Rexp3": _direct(partial(Rexp3, horizon=HORIZON)),
    "D3RB": _direct(D3RB),
    "ED2RB": _direct(ED2RB),
    "R-less-UCB": _direct(RLessUCB),
}


def test_every_meta_algorithm_of_the_experiment_is_compared() -> None:
    assert set(OBJECTS) == set(META_ALGORITHMS)


@pytest.mark.parametrize("name", OBJECTS)
def test_compiled_runs_choose_as_the_objects_do(name: str) -> None:
    expectations = _expectations()
    keys = np.array([run_key(3, "parity", run) for run in range(3)])
    every = np.arange(1, HORIZON + 1)
    compiled = META_ALGORITHMS[name](expectations, keys, every, xi=0.3)  # (R, T)
    for key, recorded in zip(keys, compiled, strict=True):
        selector = OBJECTS[name]()
        if isinstance(selector, BanditSelector):
            selector.bandit.rng = Draws(key)
        chosen = _choices(selector, key, expectations)
        assert len(set(chosen)) == len(ARMS)
        steps = np.diff(recorded, prepend=0.0)
        # they identify the arm at each meta-time, since they differ within a row
        gaps = regret.gaps(expectations)
        np.testing.assert_array_equal(np.abs(gaps - steps[:, None]).argmin(axis=1), chosen)
        np.testing.assert_allclose(recorded, regret.short_sighted(expectations, chosen), rtol=1e-12)


def test_runs_use_only_the_draws_of_their_own_stream() -> None:
    expectations = _expectations()
    keys = np.array([run_key(3, "parity", run) for run in range(4)])
    run = partial(META_ALGORITHMS["ESBAS"], checkpoints=np.array([100, HORIZON]), xi=0.25)
    together = run(expectations, keys)
    assert len(np.unique(together[:, 1])) == 4
    np.testing.assert_array_equal(
        together, np.concatenate([run(expectations, keys[:1]), run(expectations, keys[1:])])
    )
