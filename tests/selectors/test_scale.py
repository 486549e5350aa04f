"""Values of any size and sign: `scale="auto"` must not depend on units or on later values."""

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas import ESBAS, SSBAS, UCB1, BanditSelector
from esbas.errors import InvalidValueError
from esbas.selectors import Scale


class UnitUCB(UCB1):
    """A bandit whose rewards must lie in [0, 1]."""

    any_scale = False

    def update(self, arm, reward, *, pull=None):
        assert 0 <= reward <= 1
        super().update(arm, reward, pull=pull)


KINDS = [
    ESBAS,
    SSBAS,
    partial(BanditSelector, bandit=UCB1),
    partial(BanditSelector, bandit=UnitUCB),
    partial(ESBAS, bandit=UnitUCB),
]
# one row per round, one value per arm
VALUES = st.lists(st.tuples(*[st.integers(-50, 50)] * 3), min_size=1, max_size=60)


def chosen(selector, rows):
    arms = []
    for row in rows:
        choice = selector.ask()
        arms.append("abc".index(choice.arm))
        selector.tell(choice, float(row[arms[-1]]))
    return arms


@pytest.mark.parametrize("kind", KINDS)
@given(VALUES, st.integers(-20, 20), st.integers(-1000, 1000))
def test_automatic_scale_does_not_depend_on_units(kind, rows, power, shift):
    other = [[value * 2.0**power + shift * 2.0**power for value in row] for row in rows]
    assert chosen(kind("abc"), rows) == chosen(kind("abc"), other)


@pytest.mark.parametrize("kind", KINDS)
@given(VALUES, st.data())
def test_automatic_scale_does_not_look_ahead(kind, rows, draw):
    known = draw.draw(st.integers(0, len(rows)))
    other = rows[:known] + [[1000 * value + 7 for value in row] for row in rows[known:]]
    assert chosen(kind("abc"), rows)[: known + 1] == chosen(kind("abc"), other)[: known + 1]


@pytest.mark.parametrize("kind", KINDS)
@given(VALUES, st.integers(-5, 5))
def test_a_given_range_does_not_depend_on_units(kind, rows, power):
    factor = 2.0**power
    other = [[value * factor for value in row] for row in rows]
    mine = kind("abc", scale=(-50, 50))
    theirs = kind("abc", scale=(-50 * factor, 50 * factor))
    assert chosen(mine, rows) == chosen(theirs, other)


def test_raw_values_reach_the_bandit_unchanged():
    selector = SSBAS("ab", scale=None)
    selector.tell(selector.ask(), 1000.0)
    selector.tell(selector.ask(), -1000.0)
    selector.tell(selector.ask(among=["a"]), 500.0)
    report = selector.explain()
    assert report["a"]["mean"] == 500.0  # before round 4 the window holds the last two selections
    assert report["a"]["bonus"] == pytest.approx(math.sqrt(0.25 * math.log(2)))


def test_a_bandits_own_spread_is_kept_if_values_are_raw():
    selector = BanditSelector("ab", bandit=partial(UCB1, spread=10.0), scale=None)
    for _ in range(2):
        selector.tell(selector.ask(), 0.0)
    assert selector.explain()["a"]["bonus"] == pytest.approx(10 * math.sqrt(0.25 * math.log(2)))


def test_the_spread_and_the_range_by_hand():
    scale = Scale("auto")
    assert (scale.spread, scale.unit(3.0)) == (1.0, 0.5)
    scale.see(-10.0)
    assert (scale.spread, scale.unit(-10.0)) == (1.0, 0.5)  # all values are equal
    scale.see(30.0)  # 40 from the mean -10: mean deviation 20
    assert (scale.spread, scale.unit(0.0)) == (40.0, 0.25)
    scale.see(10.0)  # 0 from the mean 10: mean deviation 40 / 3
    assert (scale.spread, scale.unit(0.0)) == (pytest.approx(80 / 3), 0.25)
    # after 8 values the first three are forgotten: all others are equal
    for value in (10.0, 10.0, 10.0, 10.0, 10.0, 10.0):
        scale.see(value)
    assert (scale.spread, scale.unit(7.0)) == (1.0, 0.5)
    assert Scale((0, 4)).unit(9.0) == 1.0
    assert Scale((0, 4)).unit(-9.0) == 0.0
    assert (Scale(None).spread, Scale(None).unit(9.0)) == (1.0, 9.0)


def recent(t):
    """The number of the first value that counts after t values."""
    power = 1 << (t.bit_length() - 1)
    return power // 2 if power >= 8 else 1


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=70))
def test_the_scale_equals_brute_force_on_the_whole_history(values):
    scale = Scale("auto")
    deviations = []
    for t, value in enumerate(values, 1):
        scale.see(float(value))
        before = values[recent(t) - 1 : t - 1]
        mean = sum(before) / len(before) if before else value
        deviations.append(abs(value - mean))
        counting = deviations[recent(t) - 1 :]
        deviation = sum(counting) / len(counting)
        assert scale.spread == pytest.approx(2 * deviation if deviation else 1.0)
        known = values[recent(t) - 1 : t]
        low = max(min(known), mean - 4 * deviation)
        high = min(max(known), mean + 4 * deviation)
        for probe in (-500, 0, value):
            expected = min(max((probe - low) / (high - low), 0), 1) if high - low > 1e-9 else 0.5
            assert scale.unit(probe) == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_a_saved_scale_continues(values):
    scale = Scale("auto")
    twin = Scale("auto")
    for value in values:
        scale.see(value)
    twin.load_state_dict(json.loads(json.dumps(scale.state_dict(), allow_nan=False)))
    for value in (3.0, -7.0, 1e5):
        scale.see(value)
        twin.see(value)
        assert (twin.spread, twin.unit(1.0)) == (scale.spread, scale.unit(1.0))


EXAMPLES = {
    "failed episodes": ((200.0, 250.0, 300.0), 20.0, [-5000.0] * 6),
    "one outlier": ((0.2, 0.5, 0.8), 0.1, [-100.0]),
    "an outlier after 500 rounds": ((0.2, 0.5, 0.8), 0.1, [0.5] * 500 + [-100.0]),
    "no outlier": ((-3.0, -2.0, -1.0), 1.0, []),
}


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("kind", [SSBAS, ESBAS])
def test_outliers_do_not_decide_who_acts(kind, example):
    """The best arm gets nine tenths of the last 1,000 of 3,000 rounds after any start."""
    means, deviation, first = EXAMPLES[example]
    best = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        selector = kind("abc", seed=seed)
        for number in range(3000):
            choice = selector.ask()
            value = means["abc".index(choice.arm)] + deviation * rng.normal()
            selector.tell(choice, first[number] if number < len(first) else value)
            best += number >= 2000 and choice.arm == "c"
    assert best / 2000 >= 0.9


@pytest.mark.parametrize(
    "scale", ["automatic", (1, 1), (2, 1), (0, math.inf), (0, math.nan), (1,), (0, 1, 2), 3]
)
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(
        InvalidValueError, match=r'`scale` must be "auto", None or .low, high. with low < high'
    ):
        SSBAS("ab", scale=scale)
