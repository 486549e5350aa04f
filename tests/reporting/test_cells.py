"""Decimals are a property of a column, not of a cell."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas.reporting import Estimate
from esbas.reporting.cells import column_texts, is_numeric, table_texts

NUMBERS = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ([494.81, 7.0, -183.25], ["494.8", "7.0", "-183.2"]),
        ([42.739, 53.8402], ["42.74", "53.84"]),
        ([500.0, 20.0], ["500", "20"]),
        ([1.5], ["1.5"]),
        ([1234567.0, 0.5], ["1,234,567.0", "0.5"]),  # the smaller one shows
        ([1234567.0, 0.0005], ["1,234,567", "0"]),  # but not at any price
        ([0.0, -0.0], ["0", "0"]),
        ([math.nan, None, 0.25], ["–", "–", "0.25"]),
        ([60000, 7], ["60,000", "7"]),
        (["a", 1.0], ["a", "1"]),
        ([3e20, 1.0], ["3.000e+20", "1.000e+00"]),
        ([2e-12], ["2.000e-12"]),
    ],
)
def test_columns_by_hand(column, texts):
    assert column_texts(column) == texts


@given(NUMBERS)
def test_all_numbers_of_a_column_have_the_same_decimals(numbers):
    texts = column_texts(numbers)
    assert (
        len({("e" in text, len(text.partition("e")[0].partition(".")[2])) for text in texts}) == 1
    )
    for number, text in zip(numbers, texts, strict=True):
        decimals = len(text.partition(".")[2])
        text = text.replace(",", "")
        assert (
            float(text) == pytest.approx(number, rel=1e-3)
            if "e" in text
            else abs(float(text) - number) <= 0.51 * 10**-decimals
        )
        assert text != "-0"


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.001, 1e5)), min_size=1, max_size=6))
def test_all_intervals_of_a_column_have_the_same_decimals(pairs):
    texts = [
        text.replace(",", "").split(" ± ")
        for text in column_texts([Estimate(mean, ci95, 10) for mean, ci95 in pairs])
    ]
    assert len({len(part.partition(".")[2]) for text in texts for part in text}) == 1
    widest = max(ci95 for _, ci95 in pairs)
    assert float(max(texts, key=lambda text: float(text[1]))[1]) == pytest.approx(widest, rel=0.15)


def test_intervals_determine_the_decimals():
    column = [
        Estimate(21.014, 0.05, 9),
        Estimate(450.2, 12.3, 9),
        Estimate(3.0, 0.0, 9),
        Estimate(7.25, math.nan, 1),
        8.0,
    ]
    assert column_texts(column) == ["21.01 ± 0.05", "450.20 ± 12.30", "3.00 ± 0", "7.25", "8.00"]
    assert str(column[1]) == "450 ± 12"  # in a sentence, each for itself


def test_an_interval_that_is_not_shown_does_not_determine_the_decimals():
    column = [Estimate(332.25, 2128.0, 2, "episodes"), Estimate(20.5, 0.001, 2), 8.0]
    assert column_texts(column) == ["332.2 over 2 episodes", "20.5 over 2 runs", "8.0"]


def test_tables_are_formatted_by_column():
    assert table_texts([["a", 1.25], ["b", 100.5]]) == [["a", "1.2"], ["b", "100.5"]]
    assert table_texts([]) == []


@pytest.mark.parametrize(
    "text", ["1", "-2.5", "3 ± 1", "–", "", "888 (2 of 3 runs)", "– (0 of 3 runs)"]
)
def test_numbers(text):
    assert is_numeric(text)


@pytest.mark.parametrize(
    "text", ["a", "0.5: 100 % of the selections in the bin before 1,000", "- a"]
)
def test_texts(text):
    assert not is_numeric(text)
