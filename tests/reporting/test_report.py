import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.reporting import Results, Section, estimate, figures

VOID = {"meta", "img", "link", "br"}


class Page(HTMLParser):
    """Checks that tags close in order, and collects attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def results(tmp_path):
    results = Results(tmp_path, command="esbas demo", config={"runs": 3})
    figure, axes = figures.new_figure()
    axes.plot([1, 2])
    results.figure("curve", figure)
    return results


def test_a_report_is_one_self_contained_page(results, tmp_path):
    table = (["name", "value"], [["a & <b>", estimate([11, 12, 13])], ["c", None]])
    results.report(
        "Title <1>",
        [
            Section("One", "First `code`.\n\nSecond.", table, "curve", "What it shows"),
            Section("Two"),
        ],
    )
    page = Page((tmp_path / "report.html").read_text())
    assert "Title <1>" in page.text
    assert "a & <b>" in page.text
    assert "12.0 ± 2.5" in page.text
    assert "What it shows" in page.text
    outside = [source for source in page.sources if not source.startswith(("data:", "#"))]
    assert outside  # links to the files next to it
    assert all((tmp_path / source).exists() for source in outside)


def test_figures_come_before_tables_and_long_tables_are_folded(results, tmp_path):
    table = (["name", "value"], [["a", 1.0]] * 56)
    results.report("T", [Section("S", "Words.", table, "curve")])
    text = (tmp_path / "report.html").read_text()
    assert (
        text.index("Words.")
        < text.index("<svg")
        < text.index("<details><summary>Show the table: 56 rows")
        < text.index("<table")
    )
    results.report("T", [Section("S", table=(table[0], table[1][:30]))])
    assert "<details>" not in (tmp_path / "report.html").read_text()


def test_a_report_says_when_its_results_were_started(results, tmp_path):
    os.utime(tmp_path / "config.json", (0, 0))
    results.report("T", [])
    assert "Started on 1970-01-01 at 00:00 UTC" in Page((tmp_path / "report.html").read_text()).text


def test_a_report_contains_the_command_that_reproduces_it(results, tmp_path):
    results.report("T", [])
    page = Page((tmp_path / "report.html").read_text())
    assert "esbas demo --runs 3" in page.text
    assert f"numpy {np.__version__}" in page.text


def test_a_report_supports_phones_and_dark_mode(results, tmp_path):
    results.report("T", [Section("S", figure="curve")])
    text = (tmp_path / "report.html").read_text()
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "<script" not in text
    assert not re.search(r"https?://", text)


def test_numbers_are_right_aligned(results, tmp_path):
    results.report("T", [Section("S", table=(["name", "value"], [["a", 1.5], ["b", "–"]]))])
    text = (tmp_path / "report.html").read_text()
    assert "<th>name</th><th class=number>value</th>" in text
    assert "<td>a</td><td class=number>1.5</td>" in text


def test_a_missing_figure_raises(results):
    with pytest.raises(
        InvalidValueError, match=r"must have been written by `Results.figure`, but 'none' was not"
    ):
        results.report("T", [Section("S", figure="none")])
