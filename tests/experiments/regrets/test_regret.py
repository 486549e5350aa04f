import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esbas.errors import InvalidValueError
from esbas.experiments import regrets as regret
from esbas.experiments.regrets import Growth

EXPECTATIONS = [[0.2, 0.5], [0.6, 0.5], [0.7, 0.7], [0.9, 0.6]]  # two arms, four meta-times
CHOSEN = [0, 1, 0, 1]


def test_regrets_worked_out_by_hand() -> None:
    # chosen: .2 .5 .7 .6; currently best: .5 .6 .7 .9; the optimum is 1
    np.testing.assert_allclose(regret.short_sighted(EXPECTATIONS, CHOSEN), [0.3, 0.4, 0.4, 0.7])
    np.testing.assert_allclose(
        regret.absolute(EXPECTATIONS, CHOSEN, optimum=1.0), [0.8, 1.3, 1.6, 2.0]
    )
    np.testing.assert_allclose(
        regret.canonical_absolute(EXPECTATIONS, optimum=1.0),
        [[0.8, 1.2, 1.5, 1.6], [0.5, 1.0, 1.3, 1.7]],
    )
    # alone, arm 0 gets 2.4 in total and arm 1 gets 2.3, so arm 0 is the best one alone
    np.testing.assert_allclose(
        regret.relative(EXPECTATIONS, CHOSEN, canonical=EXPECTATIONS),
        [0.0, 0.1, 0.1, 0.4],
        atol=1e-15,
    )


def test_gaps_worked_out_by_hand() -> None:
    table = [[0.1, 0.4, 0.4], [0.5, 0.5, 0.5], [0.3, 0.2, 0.6], [0.9, 0.9, 0.8]]
    np.testing.assert_allclose(regret.gaps(table)[2], [0.3, 0.4, 0.0])
    np.testing.assert_allclose(regret.smallest_gap(table), [0.3, math.inf, 0.3, 0.1])
    # meta-times 1, 2, 4
    np.testing.assert_allclose(
        regret.epoch_gaps(table), regret.gaps([table[0], table[1], table[3]])
    )
    np.testing.assert_allclose(
        regret.epoch_gaps(table, lengths=[2, 2]), regret.gaps([table[0], table[2]])
    )
    np.testing.assert_allclose(
        regret.epoch_gaps(table, lengths=[2, 5, 1]), regret.gaps([table[0], table[2]])
    )


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 12),
    st.booleans(),
)
def test_regrets_equal_the_definitions_computed_term_by_term(
    seed: int, runs: int, arms: int, length: int, own_data: bool
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.random((runs, length, arms) if own_data else (length, arms))
    chosen = rng.integers(arms, size=(runs, length))
    absolute = regret.absolute(table, chosen, optimum=2.0)
    short_sighted = regret.short_sighted(table, chosen)
    for r in range(runs):
        rows = table[r] if own_data else table
        for t in range(length):
            got = [rows[tau][chosen[r, tau]] for tau in range(t + 1)]
            assert absolute[r, t] == pytest.approx((t + 1) * 2.0 - sum(got))
            assert short_sighted[r, t] == pytest.approx(
                sum(max(rows[tau]) - got[tau] for tau in range(t + 1))
            )
    assert (short_sighted >= 0).all()
    assert (absolute >= short_sighted).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: regret.short_sighted(EXPECTATIONS, [0, 1, 2, 0]),
            "`chosen` must have arms from 0 to 1, but got 0 to 2.",
        ),
        (
            lambda: regret.short_sighted(EXPECTATIONS, [0, 1]),
            "`chosen` must have an arm for each meta-time",
        ),
        (lambda: regret.short_sighted(EXPECTATIONS, [0.0, 1.0, 0.0, 1.0]), "integers"),
        (lambda: regret.absolute([[math.nan]], [0], optimum=1.0), "`expectations` must be finite"),
        (
            lambda: regret.short_sighted_growth(1.5),
            "`gap` must be between 0 and 1, but got 1.5.",
        ),
        (
            lambda: regret.short_sighted_growth(0.3, gap_log_power=1),
            "`gap` must be 0 if `gap_log_power` is not 0, but got 0.3 and 1.",
        ),
        (
            lambda: regret.theorem_2([0.1, 0.0]),
            "`smallest_gaps` must have one number greater than 0 for each epoch",
        ),
        (
            lambda: regret.theorem_3([35], n_arms=2, canonical=[1.0] * 9, short_sighted=[0.0]),
            "`times` must be at least 9 K², but got 35 for K = 2.",
        ),
        (
            lambda: regret.theorem_3([60], n_arms=2, canonical=[1.0] * 9, short_sighted=[0.0]),
            "`canonical` must be one-dimensional and reach T / 3K",
        ),
    ],
)
def test_bad_input_raises_a_clear_error(call, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message.replace("(", r"\(")):
        call()


def test_table_1_as_printed() -> None:
    log = Growth(0, 1)
    log2 = Growth(0, 2)
    assert regret.short_sighted_growth(1) == regret.table_1_absolute(1, 1) == log
    assert regret.table_1_absolute(1, 0.5) is None  # the gray cell
    assert (
        regret.short_sighted_growth(0.6)
        == regret.table_1_absolute(0.6, 1)
        == regret.table_1_absolute(0.6, 0.8)
        == Growth(0.4)
    )
    assert regret.short_sighted_growth(0.5) == Growth(0.5)
    assert regret.short_sighted_growth(0.2) == regret.table_1_absolute(0.2, 1) == Growth(0.2, 1)
    assert regret.table_1_absolute(0.2, 0.5) == Growth(0.5)  # c† < 1 - c*
    assert regret.table_1_absolute(0.2, 0.8) == Growth(0.2, 1)  # c† >= 1 - c*
    assert regret.table_1_absolute(0.3, 0.9) == Growth(0.3, 1)
    assert regret.short_sighted_growth(0) == regret.table_1_absolute(0, 1) == log2
    assert regret.table_1_absolute(0, 0.7) == Growth(pytest.approx(0.3))
    assert regret.short_sighted_growth(0, gap_log_power=1) == Growth(0, 3)  # Corollary 2


@given(st.floats(0, 1), st.floats(0, 1))
def test_table_1_follows_from_theorem_3_unless_the_gap_closes_faster_than_the_learners_converge(
    gap: float, own: float
) -> None:
    printed = regret.table_1_absolute(gap, own)
    proven = regret.absolute_growth(gap, own)
    if gap < 0.5 or own >= gap:
        assert printed == proven
    else:
        assert printed is None or printed < proven


def test_growth_has_values_and_names() -> None:
    assert Growth(0.5, 1)(math.e**2) == pytest.approx(2 * math.e)
    np.testing.assert_allclose(Growth(0, 2)([1, math.e]), [0, 1])
    assert [str(g) for g in (Growth(0.35, 1), Growth(0, 2), Growth(1), Growth(0))] == [
        "T^0.35 log T",
        "log^2 T",
        "T",
        "1",
    ]
    assert Growth(0.2) < Growth(0.2, 1) < Growth(0.3) < Growth(0.3, 1)


def test_theorems_worked_out_by_hand() -> None:
    np.testing.assert_allclose(regret.theorem_1([[1.0, 2.0], [3.0, 1.0]]), [6.0, 4.0])
    # 0/.5, 1/.25, 2/∞, 3/.1
    np.testing.assert_allclose(regret.theorem_2([0.5, 0.25, math.inf, 0.1]), [0, 4, 4, 34])
    canonical = np.arange(1.0, 21.0)  # ρ*(T) = T
    bound = regret.theorem_3(
        [36, 51], n_arms=2, canonical=canonical, short_sighted=[2.0, 3.0], kappa=1.5
    )
    np.testing.assert_allclose(
        bound, [7 * 6 + 2 + 1.5 * math.log(36), 7 * 8.5 + 3 + 1.5 * math.log(51)]
    )
    parts = {"canonical": canonical, "short_sighted": [2.0, 3.0]}
    kappa = regret.kappa_of_theorem_3([36, 51], n_arms=2, absolute=bound, **parts)
    np.testing.assert_allclose(kappa, [1.5, 1.5])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 64))
def test_theorem_1_holds_for_any_choices_on_rising_curves(
    seed: int, arms: int, length: int
) -> None:
    rng = np.random.default_rng(seed)
    # expectations never decrease with more data
    expectations = np.sort(rng.random((length, arms)), axis=0)
    chosen = rng.integers(arms, size=length)
    bound = regret.theorem_1(regret.canonical_absolute(expectations, optimum=1.0))
    assert (regret.absolute(expectations, chosen, optimum=1.0) <= bound + 1e-12).all()


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.2, 0.35, 0.45])
def test_theorem_2_sums_to_the_corollaries_order(gap: float) -> None:
    epochs = np.arange(200.0)
    ratio = regret.theorem_2(2.0 ** (-gap * epochs)) / regret.short_sighted_growth(gap)(
        2.0 ** (epochs + 1)
    )
    assert ratio[-1] == pytest.approx(ratio[-50], rel=0.03)  # over 49 doublings of T
