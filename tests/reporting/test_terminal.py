"""Tables on standard output."""

import pytest

from esbas.reporting.cells import fitted_headers, table_width
from esbas.reporting.terminal import print_table
from esbas.training.reports.training_report import LEARNER_HEADER

SIX = [
    [f"DQN rate {rate}, {kind}", 12.5, 61.25, 183.3, 470.4, 0]
    for kind in ("corrected", "uncorrected")
    for rate in ("0.0003", "0.001", "0.0025")
]


def test_six_learners_fit_80_columns_without_a_broken_name(capsys):
    print_table("Learners", LEARNER_HEADER, SIX)
    shown = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in shown) <= 80
    for name, *_ in SIX:
        assert sum(line.strip().startswith(f"{name} ") for line in shown) == 1


def test_a_table_that_cannot_be_narrow_keeps_its_headers(capsys):
    row = ["a long cell that takes forty characters "] * 3
    print_table("Wide", ["the first column", "the second column", "the third column"], [row])
    assert "the second column" in capsys.readouterr().out


@pytest.mark.parametrize(("width", "lines"), [(80, 1), (20, 2)])
def test_headers_are_broken_only_where_needed(width, lines):
    header = ["a header of words", "value"]
    texts = [["x", "1"]]
    fitted = fitted_headers(header, texts, width=width, gap=2)
    assert len(fitted[0].split("\n")) == lines
    assert table_width(fitted, texts, gap=2) <= width
