"""Tables and columns: as text, HTML, DataFrames and files."""

import copy
import csv
import math
import pickle
import sys

import numpy as np
import pytest

from esbas.errors import InvalidValueError, MissingExtraError, UnknownNameError
from esbas.reporting import Columns, Estimate, Table

TABLE = Table(
    ["learner", "score", "share [%]", "faults"],
    [
        ["a <b>", Estimate(498.2, 4.0, 5), 75.25, 0],
        ["long name", Estimate(7.0, math.nan, 1), None, 1200],
    ],
)


def test_the_text_is_aligned():
    assert str(TABLE).splitlines() == [
        "learner      score  share [%]  faults",
        "a <b>      498 ± 4      75.25       0",
        "long name        7          –   1,200",
    ]
    assert repr(TABLE) == str(TABLE)
    assert str(Table(["a", "b"], [])) == "a  b"


def test_html_is_escaped_and_has_no_colors():
    html = TABLE._repr_html_()
    assert "a &lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 3
    assert html.count("text-align: right") == 3 * 3
    assert "#" not in html


def test_rows_and_columns_can_be_read():
    assert len(TABLE) == 2
    assert TABLE["faults"] == (0, 1200)
    first, _ = TABLE
    assert first["learner"] == "a <b>"
    assert list(first) == list(TABLE.columns)
    assert Table(["a"], [[1]]) == Table(("a",), ((1,),)) != Table(["a"], [[2]])
    with pytest.raises(UnknownNameError, match="did you mean 'score'"):
        TABLE["scores"]


def test_what_does_not_fit_is_refused():
    with pytest.raises(
        InvalidValueError, match=r"A row of the table has 1 cells, but there are 2 columns"
    ):
        Table(["a", "b"], [[1]])
    with pytest.raises(InvalidValueError, match="different names, but got 'a' twice"):
        Table(["a", "a"], [])
    with pytest.raises(InvalidValueError, match="same number of rows, but 'a' has 1, 'b' has 2"):
        Columns({"a": [1], "b": [1, 2]})
    with pytest.raises(InvalidValueError, match=r"'a' has the shape \(1, 2\)"):
        Columns({"a": [[1, 2]]})


def test_a_table_becomes_a_data_frame_and_a_file(tmp_path):
    pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    assert list(frame) == ["learner", "score", "score, ci95", "share [%]", "faults"]
    assert frame["score"].tolist() == [498.2, 7.0]
    assert frame["faults"].sum() == 1200
    assert math.isnan(frame["share [%]"][1])
    TABLE.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[1:] == [
        ["a <b>", "498.2", "4.0", "75.25", "0"],
        ["long name", "7.0", "", "", "1200"],
    ]


def test_without_pandas_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for each in (TABLE, Columns({"a": [1]})):
        with pytest.raises(MissingExtraError) as caught:
            each.to_pandas()
        assert (
            str(caught.value)
            == "A DataFrame needs pandas, but it is not installed: pip install pandas."
        )


def episodes(count):
    return Columns(
        {"number": np.arange(1, count + 1), "learner": ["a"] * count, "ended": [True] * count}
    )


def test_columns_are_read_only_arrays():
    columns = episodes(3)
    assert columns.names == ("number", "learner", "ended")
    assert len(columns) == 3
    assert columns["number"] is columns.number
    with pytest.raises(ValueError, match="read-only"):
        columns.number[0] = 7
    given = np.array([1, 2])
    kept = Columns({"a": given})
    given[0] = 7
    assert kept.a.tolist() == [1, 2]
    assert "number" in dir(columns)
    assert set(dict(columns)) == set(columns.names)
    with pytest.raises(UnknownNameError, match="did you mean 'number'"):
        columns["numbers"]
    with pytest.raises(AttributeError, match="the columns are number, learner, ended"):
        columns.numbers  # noqa: B018
    for again in (copy.deepcopy(columns), pickle.loads(pickle.dumps(columns))):
        assert again.number.tolist() == [1, 2, 3]


def test_long_columns_show_their_ends():
    lines = repr(episodes(1000)).splitlines()
    assert lines[0] == "number  learner  ended"
    assert lines[5:8] == ["     5  a        True", "     …  …        …", "   996  a        True"]
    assert lines[-1] == "1,000 rows"
    html = episodes(1000)._repr_html_()
    assert html.count("<tr>") == 12
    assert "1,000 rows" in html
    assert repr(episodes(10)).count("…") == 0
    assert repr(episodes(1)).endswith("\n1 row")


def test_columns_become_a_data_frame_and_a_file(tmp_path):
    pytest.importorskip("pandas")
    frame = episodes(3).to_pandas()
    assert frame["number"].sum() == 6
    assert frame["ended"].all()
    frame.loc[0, "number"] = 9  # the frame is a copy
    episodes(2).to_csv(tmp_path / "episodes.csv")
    assert (tmp_path / "episodes.csv").read_text() == "number,learner,ended\n1,a,True\n2,a,True\n"
