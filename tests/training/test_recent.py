"""The recent episodes of a run: by hand, and against the definition for any run."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas.training.recent import (
    LEAST,
    RecentEpisodes,
    last_old_step,
    recent_count,
    recent_weights,
    recent_windows,
)

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=300)


def defined(lengths):
    """The weight of every episode of a run, straight from the definition, step by step."""
    ends = np.cumsum(lengths).tolist()
    total = ends[-1]
    least_start = ends[-LEAST] - lengths[-LEAST] if len(ends) > LEAST else 0
    window_start = min(least_start, total - math.ceil(Fraction(total, 10)))
    weights = []
    for end, length in zip(ends, lengths, strict=True):
        inside = [step for step in range(end - length + 1, end + 1) if step > window_start]
        weights.append(Fraction(len(inside), length))
    return weights


def weights_of(steps, count):
    windows = recent_windows(steps, np.array([count]))
    weights = np.zeros(len(steps))
    weights[windows.first[0] : windows.last[0] + 1] = 1
    weights[windows.first[0]] = windows.part[0]
    assert windows.weight[0] == pytest.approx(weights.sum())
    return weights[:count]


def test_a_run_by_hand():
    """30 episodes of 10 steps, then 100 episodes of 1 step: 400 steps, of which the last tenth
    begins after step 360.
    """
    lengths = [10] * 30 + [1] * 100
    steps = np.cumsum(lengths)
    windows = recent_windows(steps, np.array([130, 35, 31, 30, 3]))
    # After 130 episodes, those of the steps 361 to 400 are recent: 40 of 1 step.
    # After 35, at step 305, the tenth begins after step 274: 6/10 of the 28th and 7 more.
    # After 31, at step 301, it begins after step 270. After 30, at 300, these would be three: the
    # last five are recent. Of 3, all are.
    assert windows.first.tolist() == [90, 27, 26, 25, 0]
    assert windows.part.tolist() == [1, 0.6, 1, 1, 1]
    assert windows.weight.tolist() == [40, 7.6, 5, 5, 3]
    assert recent_count(steps) == 40
    recent = RecentEpisodes()
    for number, done in enumerate(steps, 1):
        recent.add(int(done), float(number), "a" if number <= 100 else "b")
    assert recent.weight == 40
    assert recent.mean == np.mean(range(91, 131))
    assert (recent.share("a"), recent.share("b"), recent.share("c")) == (0.25, 0.75, 0.0)


def test_an_episode_counts_with_the_part_of_it_that_is_recent():
    lengths = [100, 20] + [10] * 8  # 200 steps; those from 181 on are two episodes, five are recent
    assert recent_weights(np.cumsum(lengths)).tolist() == [1] * 5
    lengths = [860, 100] + [5] * 8  # 1,000 steps: 60 of the 100 steps are among the last 100
    assert recent_weights(np.cumsum(lengths)).tolist() == [0.6] + [1] * 8
    recent = RecentEpisodes()
    for steps, value in zip(np.cumsum(lengths).tolist(), [0.0, 50.0] + [1.0] * 8, strict=True):
        recent.add(steps, value, "a" if value == 50 else "b")
    assert recent.mean == pytest.approx((0.6 * 50 + 8) / 8.6)
    assert recent.share("a") == pytest.approx(0.6 / 8.6)


def test_long_episodes_replace_many_short_ones_at_once():
    """The first 100 episodes have 20 steps. Five of 500 steps later, no short one is recent."""
    lengths = [20] * 100 + [500] * 5
    steps = np.cumsum(lengths)
    recent = RecentEpisodes()
    for done, length in zip(steps.tolist(), lengths, strict=True):
        recent.add(done, float(length))
    assert recent.mean == 500
    assert recent_count(steps) == LEAST


def test_one_long_episode_does_not_become_the_whole_window():
    steps = np.array([*range(1, 31), 10_000])
    assert recent_count(steps) == LEAST


def test_there_may_be_no_episode():
    recent = RecentEpisodes()
    assert recent.weight == 0
    assert math.isnan(recent.mean)
    assert recent.share("a") == 0
    assert recent_count(np.array([], np.int64)) == 0


def test_steps_may_be_as_many_as_an_integer_can_hold():
    steps = np.array([2**62, 2**63 - 1])
    assert recent_windows(steps, np.array([2])).first.tolist() == [0]
    assert last_old_step(2**63 - 1) == int(last_old_step(steps[-1:])[0])


def test_episodes_without_steps_count_as_whole_ones():
    """No environment has them, but a log could."""
    assert recent_weights(np.zeros(7, np.int64)).tolist() == [1] * 5
    recent = RecentEpisodes()
    for value in range(7):
        recent.add(0, float(value))
    assert recent.mean == 4


@given(LENGTHS)
def test_any_run_has_the_episodes_of_the_definition(lengths):
    steps = np.cumsum(lengths)
    for count in {1, len(steps) // 2, len(steps)} - {0}:
        expected = [float(weight) for weight in defined(lengths[:count])]
        assert weights_of(steps, count).tolist() == pytest.approx(expected)
    assert recent_weights(steps).tolist() == [float(each) for each in defined(lengths) if each]


@given(LENGTHS, st.data())
def test_episode_by_episode_is_the_same_as_all_at_once(lengths, data):
    number = st.floats(-1e6, 1e6)
    values = np.array(data.draw(st.lists(number, min_size=len(lengths), max_size=len(lengths))))
    steps = np.cumsum(lengths)
    recent = RecentEpisodes()
    for k in range(len(steps)):
        recent.add(int(steps[k]), values[k], "even" if k % 2 == 0 else "odd")
        weights = recent_weights(steps[: k + 1])
        window = slice(k + 1 - len(weights), k + 1)
        assert recent.weight == pytest.approx(weights.sum())
        expected = np.average(values[window], weights=weights)
        assert recent.mean == pytest.approx(expected, rel=1e-9, abs=1e-9)
        even = np.average(np.arange(window.start, window.stop) % 2 == 0, weights=weights)
        assert recent.share("even") == pytest.approx(even)


@given(LENGTHS, st.data())
def test_asking_changes_no_bit(lengths, data):
    """A resumed run adds earlier episodes without asking for their means: it must stop at the
    same step.
    """
    number = st.floats(-1e6, 1e6)
    values = data.draw(st.lists(number, min_size=len(lengths), max_size=len(lengths)))
    asked = RecentEpisodes()
    resumed = RecentEpisodes()
    for steps, value in zip(np.cumsum(lengths).tolist(), values, strict=True):
        asked.add(steps, value)
        assert math.isfinite(asked.mean)
        resumed.add(steps, value)
    assert asked.mean == resumed.mean


def test_a_huge_value_leaves_no_trace():
    recent = RecentEpisodes()
    recent.add(1, 1e18)
    for steps in range(2, 500):
        recent.add(steps, 0.1)
    assert recent.mean == pytest.approx(0.1, rel=1e-12)


def test_many_episodes_take_constant_time_each():
    recent = RecentEpisodes()
    for steps in range(1, 300_000):
        recent.add(steps, 1.0)
        assert recent.mean == 1.0
    assert recent.weight == 30_000
    assert repr(recent) == "<3e+04 recent episodes, mean 1>"
