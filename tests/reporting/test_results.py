import json
import math
from pathlib import Path

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.reporting import Results, estimate, figures

COMMAND = "esbas reproduce bounds"


def folder(path: Path, **config: object) -> Results:
    return Results(path, command=COMMAND, config={"runs": 10, "seed": 0} | config)


def test_a_folder_records_its_command(tmp_path):
    folder(tmp_path / "deep" / "out", rates=(0.1, 0.2), quick=False, horizon=None, curve_name="a b")
    about = json.loads((tmp_path / "deep" / "out" / "config.json").read_text())
    assert about["command"] == COMMAND
    assert about["config"]["rates"] == [0.1, 0.2]
    assert {"python", "esbas", "numpy", "numba"} <= set(about["versions"])
    assert (
        about["again"]
        == f"{COMMAND} --runs 10 --seed 0 --rates 0.1 0.2 --no-quick --curve-name 'a b'"
    )


def test_the_same_settings_continue(tmp_path):
    arrays = {"values": np.arange(6.0).reshape(2, 3), "arms": np.array([1, 2], np.uint8)}
    folder(tmp_path).store_part("first", arrays)
    again = folder(tmp_path)
    assert again.part("second") is None
    stored = again.part("first")
    for name, array in arrays.items():
        np.testing.assert_array_equal(stored[name], array)
        assert stored[name].dtype == array.dtype


def test_other_settings_are_refused_and_nothing_is_lost(tmp_path):
    folder(tmp_path).store_part("first", {"x": np.ones(1)})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        InvalidValueError, match=r"runs=10, but this is runs=20: give another --out"
    ):
        folder(tmp_path, runs=20)
    with pytest.raises(InvalidValueError, match=r"command='esbas reproduce bounds'.*'esbas demo'"):
        Results(tmp_path, command="esbas demo", config={"runs": 10, "seed": 0})
    with pytest.raises(InvalidValueError, match="fast=None, but this is fast=True"):
        folder(tmp_path, fast=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_another_version_is_refused(tmp_path):
    folder(tmp_path)
    path = tmp_path / "config.json"
    about = json.loads(path.read_text())
    about["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(about))
    with pytest.raises(InvalidValueError, match=r"version of numpy='1\.0'"):
        folder(tmp_path)


def test_other_folders_files_and_damage_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(InvalidValueError, match=r"has 'thesis.tex' and no config.json"):
        folder(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with pytest.raises(InvalidValueError, match="can be written to"):
        folder(tmp_path / "mine" / "thesis.tex")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "config.json").write_text('{"command": ')
    with pytest.raises(InvalidValueError, match="must be JSON"):
        folder(tmp_path / "torn")


def test_a_folder_killed_before_its_first_file_is_still_new(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / ".config.json.123.tmp").write_text("{")
    folder(tmp_path)
    assert (tmp_path / "config.json").exists()


def test_a_damaged_part_is_run_again(tmp_path):
    results = folder(tmp_path)
    results.store_part("a", {"x": np.arange(1000)})
    path = tmp_path / "parts" / "a.npz"
    path.write_bytes(path.read_bytes()[:-500])
    assert results.part("a") is None
    path.write_bytes(b"")
    assert results.part("a") is None


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "a b"])
def test_a_part_has_a_file_name(tmp_path, name):
    with pytest.raises(InvalidValueError, match="file name"):
        folder(tmp_path).store_part(name, {})


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    results = folder(tmp_path)
    results.summary({"x": 1})

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        results.summary({"x": 2})
    assert json.loads((tmp_path / "summary.json").read_text()) == {"x": 1}
    assert not list(tmp_path.glob(".*"))


def test_a_summary_is_strict_json(tmp_path):
    data = {
        "nan": math.nan,
        "values": np.array([1.0, np.inf]),
        "estimate": estimate([1, 3]),
        "path": Path("a"),
        "n": np.int64(3),
    }
    folder(tmp_path).summary(data | {7: (True, None)})

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    read = json.loads((tmp_path / "summary.json").read_text(), parse_constant=refuse)
    assert read["nan"] is None
    assert read["values"] == [1.0, None]
    assert read["estimate"]["mean"] == 2.0
    assert (read["path"], read["n"], read["7"]) == ("a", 3, [True, None])


def test_results_are_plain_data(tmp_path):
    with pytest.raises(InvalidValueError, match="got object"):
        folder(tmp_path).summary({"x": object()})


def test_a_table_is_csv_with_full_precision(tmp_path):
    folder(tmp_path).table(
        "t", ["name", "mean", "ci95"], [["a, b", 1 / 3, math.nan], ["c", np.float64(0.1), None]]
    )
    assert (
        tmp_path / "t.csv"
    ).read_text() == 'name,mean,ci95\n"a, b",0.3333333333333333,\nc,0.1,\n'


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    results = folder(tmp_path)

    def draw() -> None:
        figure, axes = figures.new_figure()
        figures.curve_with_band(axes, [1, 2], [1, 2], [0.1, 0.1], "a")
        figures.legend(axes)
        results.figure("f", figure)

    draw()
    first = [(tmp_path / name).read_bytes() for name in ("f.svg", "f.png")]
    draw()
    assert [(tmp_path / name).read_bytes() for name in ("f.svg", "f.png")] == first
    assert first[1].startswith(b"\x89PNG")
