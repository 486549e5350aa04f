"""The rank test, by hand, by counting all possibilities, and against SciPy."""

import itertools

import numpy as np
import pytest
from scipy import stats

from esbas.errors import InvalidValueError
from esbas.reporting import ranks
from esbas.reporting.ranks import least_p, p_larger


@pytest.mark.parametrize(
    ("sample", "other", "expected"),
    [
        # Ranks of the sample: 5 and 4. One of the 10 pairs of the ranks 1 to 5 has this sum.
        ([8.0, 9.0], [1.0, 2.0, 3.0], 1 / 10),
        # 5 and 3: the sum 8 or more has {3, 5} and {4, 5}.
        ([9.0, 3.0], [1.0, 2.0, 8.0], 2 / 10),
        # 1 and 2: all pairs have at least this sum.
        ([1.0, 2.0], [3.0, 8.0, 9.0], 1.0),
        # Ranks 2.5 and 4 of 1, 2.5, 2.5, 4: {2.5, 4} twice, of 6 pairs.
        ([7.0, 9.0], [1.0, 7.0], 2 / 6),
        # All values are equal.
        ([3.0, 3.0], [3.0, 3.0, 3.0], 1.0),
        # An outlier is only the largest value.
        ([1e9, 9.0], [1.0, 2.0, 3.0], 1 / 10),
    ],
)
def test_by_hand(sample: list[float], other: list[float], expected: float) -> None:
    assert p_larger(sample, other) == pytest.approx(expected, rel=1e-12)


def counted(sample: list[float], other: list[float]) -> float:
    """Count the divisions of all values in which the sample wins at least as many pairs."""

    def wins(first: list[float], second: list[float]) -> float:
        return sum((a > b) + (a == b) / 2 for a in first for b in second)

    values = [*sample, *other]
    found = []
    for chosen in itertools.combinations(range(len(values)), len(sample)):
        first = [values[index] for index in chosen]
        second = [value for index, value in enumerate(values) if index not in chosen]
        found.append(wins(first, second) >= wins(sample, other))
    return float(np.mean(found))


@pytest.mark.parametrize("seed", range(30))
def test_small_samples_are_counted_exactly_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = rng.integers(0, 4, size=rng.integers(1, 6)).tolist()
    other = rng.integers(0, 4, size=rng.integers(1, 7)).tolist()
    assert p_larger(sample, other) == pytest.approx(counted(sample, other), rel=1e-12)


@pytest.mark.parametrize("values", [2, 5, 10_000], ids=["many ties", "ties", "no ties"])
@pytest.mark.parametrize("sizes", [(30, 40), (200, 25), (500, 700)])
def test_large_samples_agree_with_scipy(values: int, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    for _ in range(5):
        sample = rng.integers(0, values, sizes[0])
        other = rng.integers(0, values, sizes[1])
        expected = stats.mannwhitneyu(sample, other, alternative="greater", method="asymptotic")
        assert p_larger(sample, other) == pytest.approx(expected.pvalue, rel=1e-9)


def test_counting_and_the_approximation_agree_where_they_meet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    sample = rng.integers(0, 6, 25) + 1
    other = rng.integers(0, 6, 25)
    exact = p_larger(sample, other)
    monkeypatch.setattr(ranks, "EXACT", 0)
    assert p_larger(sample, other) == pytest.approx(exact, rel=0.25)


def test_the_smallest_possible_value() -> None:
    assert least_p(3, 3) == p_larger([4.0, 5.0, 6.0], [1.0, 2.0, 3.0]) == 1 / 20
    assert least_p(100_000, 5_000) == 0.0  # there are more orders than a float can count
    assert least_p(25, 25) == pytest.approx(p_larger(np.arange(25) + 25.0, np.arange(25.0)))


def test_the_chance_of_a_small_value_without_a_difference_is_that_value() -> None:
    rng = np.random.default_rng(0)
    for size in (20, 60):
        values = rng.standard_cauchy((2000, 2 * size))  # heavy tails
        found = np.array([p_larger(row[:size], row[size:]) for row in values])
        assert 0.004 <= np.mean(found <= 0.01) <= 0.016


def test_empty_samples_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least one number"):
        p_larger([], [1.0])
