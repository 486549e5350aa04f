"""Values of any size and sign: `scale="auto"` must not depend on units or on later values."""

import math
from functools import partial

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
VALUES = st.lists(st.tuples(*[st.integers(-50, 50)] * 3), min_size=1, max_size=60)  # one row per round, one value per arm


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
    mine, theirs = kind("abc", scale=(-50, 50)), kind("abc", scale=(-50 * factor, 50 * factor))
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


def test_the_range_is_that_of_the_observed_values():
    scale = Scale("auto")
    assert (scale.spread, scale.unit(3.0)) == (1.0, 0.5)
    scale.see(-10.0)
    assert (scale.spread, scale.unit(-10.0)) == (1.0, 0.5)
    scale.see(30.0)
    assert (scale.spread, scale.unit(0.0)) == (40.0, 0.25)
    assert Scale((0, 4)).unit(9.0) == 1.0
    assert Scale((0, 4)).unit(-9.0) == 0.0
    assert (Scale(None).spread, Scale(None).unit(9.0)) == (1.0, 9.0)


@pytest.mark.parametrize("scale", ["automatic", (1, 1), (2, 1), (0, math.inf), (0, math.nan), (1,), (0, 1, 2), 3])
def test_a_bad_scale_is_refused(scale):
    with pytest.raises(InvalidValueError, match=r'scale is "auto", None or .low, high. with low < high'):
        SSBAS("ab", scale=scale)
