"""`esbas compare`: numbers worked out by hand, for runs that the tests write themselves."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from esbas import cli
from esbas.cli.compare import Compare, main
from esbas.errors import EsbasError, InvalidValueError, SaveFileError
from training.written_runs import write_run, write_training

Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Write the folder of a training with the given values of the episodes of each run."""

    def make(name: str, *runs: Sequence[float], **options: Any) -> Path:
        return write_training(tmp_path / name, *runs, **options)

    return make


def compare(tmp_path: Path, *folders: Path, **options: Any) -> list[dict[str, Any]]:
    main(Compare(folders, out=tmp_path / "out", **options))
    return list(json.loads((tmp_path / "out" / "summary.json").read_text())["trainings"])


# 10 steps each; from step 500 on, the mean of 5 rises by 20 with each
RISING = [0.0] * 50 + [100.0] * 50


def test_the_table_by_hand(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = made("a", RISING, [value + 6 for value in RISING], steps=1000, speed=200)
    b = made("b", [7.0] * 100, steps=1000, speed=50)
    capsys.readouterr()
    first, second = compare(tmp_path, a, b, threshold=50)
    assert [first[key] for key in ("training", "env", "selector", "learners", "runs")] == [
        "a",
        "CartPole-v1",
        "kalman-thompson",
        1,
        2,
    ]
    assert (first["end"], first["whole"]) == (103, 53)
    # Student's t, one degree of freedom; standard error 3
    assert first["end_ci95"] == pytest.approx(12.706 * 3, rel=1e-4)
    # 3 episodes of the last 5.3 are of 100: 57; in the other run, 3 of 106 and 2.3 of 6
    assert (first["steps_to_threshold"], first["runs_reaching_it"]) == (530, 2)
    assert first["steps_per_second"] == pytest.approx(200)
    assert (second["end"], second["end_ci95"], second["whole"]) == (7, None, 7)
    assert (second["steps_to_threshold"], second["runs_reaching_it"]) == (None, 0)
    assert (first["steps"], first["state"], second["state"]) == (1000, "finished", "finished")
    out = capsys.readouterr().out
    assert "103 over 2 runs" in " ".join(out.split())
    assert "recent episodes" in " ".join(out.split())
    assert "– (0 of 1 runs)" in out
    with (tmp_path / "out" / "trainings.csv").open(newline="") as file:
        assert [row["end"] for row in csv.DictReader(file)] == ["103.0", "7.0"]


def test_the_default_threshold_is_nine_tenths_of_the_way(made: Made, tmp_path: Path) -> None:
    compare(tmp_path, made("a", RISING, steps=1000), made("b", [7.0] * 100, steps=1000))
    assert json.loads((tmp_path / "out" / "summary.json").read_text())[
        "threshold"
    ] == pytest.approx(90, abs=1)


def test_smaller_values_can_be_better(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    falling = [100 - value for value in RISING]
    (line,) = compare(tmp_path, made("a", falling, steps=1000, objective="shortest"))
    assert json.loads((tmp_path / "out" / "summary.json").read_text())[
        "threshold"
    ] == pytest.approx(10, abs=1)
    assert line["steps_to_threshold"] == pytest.approx(560, abs=10)
    assert "Smaller is better" in " ".join(capsys.readouterr().out.split())


def test_most_runs_decide_whether_a_threshold_is_reached(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    low = [0.0] * 100
    (line,) = compare(tmp_path, made("a", RISING, RISING, low, steps=1000), threshold=50)
    assert (line["steps_to_threshold"], line["runs_reaching_it"]) == (530, 2)
    (line,) = compare(tmp_path, made("b", RISING, low, low, steps=1000), threshold=50)
    assert (line["steps_to_threshold"], line["runs_reaching_it"]) == (None, 1)
    assert "– (1 of 3 runs)" in capsys.readouterr().out


def test_unfinished_trainings_are_compared_up_to_their_last_episode(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = made("a", [1.0] * 30, [1.0] * 60, [], steps=600)
    (line,) = compare(tmp_path, a)
    assert (line["runs"], line["runs_planned"], line["state"], line["steps"]) == (
        2,
        3,
        "50% done",
        450,
    )
    assert "up to their last episode" in capsys.readouterr().out
    for seed in range(3):
        write_run(a, seed, [2.0] * 60)
    (line,) = compare(tmp_path, a)
    assert (line["runs"], line["state"], line["end"]) == (3, "finished", 2)
    capsys.readouterr()


def test_short_runs_have_curves_too(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = compare(tmp_path, made("a", [3.0], steps=10))
    assert (line["end"], line["steps_to_threshold"]) == (3, 10)
    (line,) = compare(tmp_path, made("b", [9.0, 0.0, 0.0, 3.0, 8.0], steps=50), threshold=4)
    # the mean of the first episode, 9, does not count yet; the mean of all five is 4
    assert line["steps_to_threshold"] == 50
    shown = " ".join(capsys.readouterr().out.split())
    assert "In a short run" in shown
    assert "return, all 5 episodes" in shown
    assert "recent episodes" not in shown


def test_long_runs_are_compared_by_the_last_tenth_of_their_steps(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = compare(tmp_path, made("a", [0.0] * 285 + [1.0] * 15, steps=3000), threshold=0.5)
    assert (line["end"], line["steps_to_threshold"]) == (0.5, 3000)  # the last 30 episodes
    shown = " ".join(capsys.readouterr().out.split())
    assert "return, recent episodes" in shown
    assert (
        "the mean of the recent episodes (the last tenth of the steps, at least 5 episodes) "
        "reached it" in shown
    )


def test_the_page_shows_curves_and_how_each_was_made(made: Made, tmp_path: Path) -> None:
    compare(tmp_path, made("a", [1.0] * 60), made("b", [2.0] * 60, selector="uniform"))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page
    assert "--selector uniform" in re.sub("<[^>]+>", "", page)
    assert f"esbas compare {tmp_path / 'a'} {tmp_path / 'b'}" in page
    assert (tmp_path / "out" / "curves.png").stat().st_size > 10_000


def test_a_new_comparison_replaces_the_old_one(made: Made, tmp_path: Path) -> None:
    a = made("a", [1.0] * 60)
    b = made("b", [2.0] * 60)
    compare(tmp_path, a)
    lines = compare(tmp_path, a, b, threshold=2)
    assert [line["training"] for line in lines] == ["a", "b"]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["config"] == {"threshold": 2}


def test_nothing_else_is_overwritten(made: Made, tmp_path: Path) -> None:
    a = made("a", [1.0] * 60)
    b = made("b", [2.0] * 60)
    before = {path: path.read_bytes() for path in b.rglob("*") if path.is_file()}
    with pytest.raises(InvalidValueError, match="give another --out"):
        main(Compare((a,), out=b))
    assert {path: path.read_bytes() for path in b.rglob("*") if path.is_file()} == before


def test_folders_of_the_same_name_are_named_by_their_paths(made: Made, tmp_path: Path) -> None:
    a = made("a", [1.0] * 60)
    b = made("b", [2.0] * 60)
    other = tmp_path / "elsewhere" / "a"
    shutil.copytree(b, other)
    assert [line["training"] for line in compare(tmp_path, a, other)] == [str(a), str(other)]


def test_different_wrappers_are_noted(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(
        tmp_path,
        made("a", [1.0] * 60),
        made("b", [2.0] * 60, wrappers=("TimeLimit(max_episode_steps=20)",)),
    )
    assert "different wrappers" in capsys.readouterr().out


def test_trainings_that_cannot_be_compared_are_refused(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = made("a", [1.0] * 60)
    cases: list[tuple[tuple[Path, ...], type[EsbasError], str]] = [
        (
            (a, made("b", [1.0] * 60, env="Acrobot-v1")),
            InvalidValueError,
            "must have the same environment, but 'a' has 'Cart",
        ),
        (
            (a, made("c", [1.0] * 60, objective="shortest")),
            InvalidValueError,
            "must have the same objective",
        ),
        ((a, a / ".." / "a"), InvalidValueError, "must be different"),
        ((a, made("d", [])), SaveFileError, "has no episode yet: wait"),
        ((a, tmp_path), SaveFileError, "is not the folder of a training"),
        ((), InvalidValueError, "Nothing is given to compare"),
    ]
    for folders, error, sentence in cases:
        with pytest.raises(error, match=sentence) as caught:
            main(Compare(folders, out=tmp_path / "out"))
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    capsys.readouterr()
    assert cli.main(["compare", str(a), str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert cli.main(["compare", str(a), "--out", str(tmp_path / "out")]) == 0
    assert "Trainings on CartPole-v1" in capsys.readouterr().out
