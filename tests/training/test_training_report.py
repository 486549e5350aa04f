"""The report of a training, for runs that the tests write themselves."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from esbas.objective import make_objective
from esbas.reporting import Results
from esbas.training.folder import open_folder
from esbas.training.reports import curves
from esbas.training.reports.training_report import TrainingSummary, publish
from esbas.training.runs.episode_log import Episodes
from training.written_runs import LENGTH, write_training


def published(folder: Path) -> str:
    """The page as text, with every tag and run of blanks as one blank."""
    training = open_folder(folder)
    about = json.loads((folder / "config.json").read_text())
    publish(Results(folder, command=about["command"], config=about["config"]), training)
    page = re.sub(r"<svg.*?</svg>", " ", (folder / "report.html").read_text(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", page.replace("\N{NO-BREAK SPACE}", " ")).split())


def run(values: list[float], learners: list[str] | None = None) -> Episodes:
    steps = LENGTH * np.arange(1, len(values) + 1)
    names = np.array(learners or ["a"] * len(values))
    return Episodes(steps, names, np.array(values), np.full(len(values), LENGTH), np.zeros(len(values), np.int64))


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([50, 70], "the last 50 episodes"),
        ([12], "all 12 episodes"),
        ([12, 12], "all 12 episodes"),
        ([1], "the only episode"),
        ([12, 70], "the last 12 to 50 episodes"),
        ([12, 30], "the last 12 to 30 episodes"),
    ],
)
def test_the_real_number_of_episodes(lengths, text):
    assert curves.window_text([run([1.0] * length) for length in lengths]) == text


def test_a_short_run_says_how_short_it_is(tmp_path, capsys):
    page = published(write_training(tmp_path / "it", [1.0, 2.0, 6.0], steps=30))
    shown = " ".join(capsys.readouterr().out.split())
    for text in (page, shown):
        assert "Mean value (return) of all 3 episodes: 3, in one run." in text
        assert "last 50" not in text


def test_curves_begin_with_the_first_episode():
    short, long = run([4.0, 0.0, 2.0]), run([float(k) for k in range(100)])
    for runs, first in (([short], 4.0), ([long], 0.0)):
        at = curves.grid(runs)
        assert (at[0], at[-1]) == (LENGTH, runs[0].steps[-1])
        assert curves.values(runs[0], at)[0] == first
        np.testing.assert_array_equal(curves.shares(runs[0], ["a", "b"], at)[:, 0], [1, 0])
    np.testing.assert_allclose(curves.values(short, short.steps), [4, 2, 2])  # means of what is there
    assert curves.values(long, long.steps)[-1] == np.mean(range(50, 100))
    assert curves.grid([long], settled=True)[0] == 50 * LENGTH


def test_the_band_stays_within_the_values_of_episodes(tmp_path):
    folder = write_training(tmp_path / "it", [0.0, 10.0] * 30, [10.0] * 60)
    figure = TrainingSummary(open_folder(folder)).figure()
    (band,) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0, 10)  # 7.5 ± 32 without limits


def test_there_is_a_row_for_each_seed(tmp_path):
    values = [[1.0] * 30 + [3.0] * 30, [2.0] * 40]
    folder = write_training(tmp_path / "it", *values, speed=10, members=("random", "random(name='other')"))
    page = published(folder)
    with (folder / "runs.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first.values()) == ["0", "60", "600", "2.2", "2.0", "60.0", "0", "other"]  # 8 of the last 15
    assert (second["episodes"], second["steps"], second["seconds"]) == ("40", "400", "40.0")
    assert (
        "seed episodes steps value at the end value of the whole run seconds faults best learner at the end 0 60 600 2.2" in page
    )
    assert "Training time: 1 min 40 s (50.0 s each on average)." in page
    assert re.search(r"Started on \d{4}-\d\d-\d\d at \d\d:\d\d UTC", page)
    assert json.loads((folder / "summary.json").read_text())["runs"]["1"]["steps"] == 400


def test_the_leader_controls_most_episodes_at_the_end():
    learners = ["a"] * 12 + ["b", "b", "a", "b"]
    longest, shortest = make_objective("longest"), make_objective("shortest")
    assert curves.leader(run([1.0] * 16, learners), longest) == "b"
    tie = run([1.0] * 12 + [5.0, 5.0, 1.0, 1.0], ["a"] * 12 + ["b", "b", "a", "a"])
    assert (curves.leader(tie, longest), curves.leader(tie, shortest)) == ("b", "a")


def test_the_figure_comes_first(tmp_path):
    folder = write_training(tmp_path / "it", [1.0] * 60)
    published(folder)
    page = (folder / "report.html").read_text()
    assert page.index("<svg") < page.index("<table")
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Results", "Runs", "Best policy", "Learners", "Portfolio"]
