"""The report of a training, for runs that the tests write themselves."""

import csv
import html
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import esbas
from esbas.cli.train import show
from esbas.objective import make_objective
from esbas.reporting import ReportFolder
from esbas.specs.portfolios.recipe import Recipe, read_recipe
from esbas.training import recent
from esbas.training.folder import open_folder
from esbas.training.reports import curves
from esbas.training.reports.episode_columns import episode_columns
from esbas.training.reports.explaining import ALGORITHMS, explained
from esbas.training.reports.next_steps import next_steps
from esbas.training.reports.training_report import TrainingSummary, publish
from esbas.training.runs.episode_log import Episodes
from training.written_runs import LENGTH, write_training

RECENT = "the recent episodes (the last tenth of the steps, at least 5 episodes)"


def published(folder: Path) -> str:
    """The page as text, with every tag and run of blanks as one blank."""
    training = open_folder(folder)
    publish(ReportFolder(folder, command_line="esbas train"), training)
    page = re.sub(r"<svg.*?</svg>", " ", (folder / "report.html").read_text(), flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", page.replace("\N{NO-BREAK SPACE}", " ")).split())


def default_portfolio(kind: str) -> Recipe:
    text = resources.files("esbas.specs.portfolios").joinpath(f"{kind}.toml").read_text("utf-8")
    return read_recipe(text, source=kind)


def run(values: list[float], learners: list[str] | None = None) -> Episodes:
    count = len(values)
    return Episodes(
        steps=LENGTH * np.arange(1, count + 1),
        learners=np.array(learners or ["a"] * count),
        values=np.array(values),
        lengths=np.full(count, LENGTH),
        epochs=np.zeros(count, np.int64),
        terminated=np.ones(count, np.bool_),
        truncated=np.zeros(count, np.bool_),
    )


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([210, 500], RECENT),
        ([12], RECENT),
        ([3, 70], RECENT),
        ([5, 5], "all 5 episodes"),
        ([3], "all 3 episodes"),
        ([3, 4], "all episodes"),
        ([1], "the only episode"),
    ],
)
def test_the_episodes_at_the_end_are_described(lengths, text):
    runs = [run([1.0] * length) for length in lengths]
    assert curves.window_text(runs) == text
    assert curves.window_name(runs) == text.removeprefix("the ").partition(" (")[0]


@pytest.mark.parametrize(
    ("lengths", "text", "rule"),
    [
        (
            [3, 70],
            "recent episodes (the last tenth of the steps)",
            "recent episodes (the last tenth of the steps, at least 5 episodes)",
        ),
        ([3, 5], "episodes so far", "episodes so far"),
    ],
)
def test_the_episodes_of_a_curve_are_described(lengths, text, rule):
    runs = [run([1.0] * length) for length in lengths]
    assert curves.moving_text(runs) == text
    assert curves.moving_rule(runs) == rule
    assert curves.moving_name(runs) == text.partition(" (")[0]


def test_a_short_run_says_how_short_it_is(tmp_path, capsys):
    folder = write_training(tmp_path / "it", [1.0, 2.0, 6.0], steps=30)
    page = published(folder)
    show(esbas.load_training(folder))
    shown = " ".join(capsys.readouterr().out.split())
    for text in (page, shown):
        assert "Mean value (return) of all 3 episodes: 3, in one run." in text
        assert "recent" not in text


def test_curves_begin_with_a_full_window():
    short = run([4.0, 0.0, 2.0])
    long = run([float(k) for k in range(100)])
    for runs, first, mean in (([short], 2, 2.0), ([long], 5, 2.0)):
        at = curves.grid(runs, least=recent.LEAST)
        assert (at[0], at[-1]) == (first * LENGTH, runs[0].steps[-1])
        assert curves.values(runs[0], at)[0] == mean
        np.testing.assert_array_equal(curves.shares(runs[0], ["a", "b"], at)[:, 0], [1, 0])
    assert curves.grid([long])[0] == LENGTH
    assert curves.grid([long], least=recent.SETTLED)[0] == 20 * LENGTH
    # means of what is there
    np.testing.assert_allclose(curves.values(short, short.steps), [4, 2, 2])
    assert curves.values(long, long.steps)[-1] == np.mean(range(90, 100))


def test_curves_are_means_of_the_last_tenth_of_the_steps():
    longer = run([float(k) for k in range(300)], ["a"] * 285 + ["b"] * 15)
    mean = np.mean(range(270, 300))
    assert curves.values(longer, longer.steps[-1:])[0] == pytest.approx(mean)
    assert curves.last_mean(longer) == pytest.approx(mean)
    np.testing.assert_allclose(
        curves.shares(longer, ["a", "b"], longer.steps[-1:])[:, 0], [0.5, 0.5]
    )
    # the last episode has not ended: of 2,990 steps, the last 299 are recent
    between = longer.steps[-1:] - 1
    expected = (0.9 * 269 + sum(range(270, 299))) / 29.9
    assert curves.values(longer, between)[0] == pytest.approx(expected)


def test_curves_do_not_lag_behind_episodes_that_become_longer():
    """As on CartPole-v1: 200 episodes of 25 steps, then episodes of 500 steps, each with its
    length as its value.
    """
    lengths = np.array([25] * 200 + [500] * 10)
    steps = np.cumsum(lengths)
    growing = replace(run([0.0] * 210), steps=steps, lengths=lengths, values=lengths.astype(float))
    assert curves.values(growing, np.array([5_000, 7_500])).tolist() == [25, 500]


def test_each_learner_has_a_curve_of_its_own():
    first = run([1.0] * 50 + [3.0] * 50, ["a"] * 100)
    second = run([5.0] * 100, ["b"] * 3 + ["a"] * 97)
    own = curves.own_values([first, second], "b")
    assert (own.steps.tolist(), own.means.tolist()) == ([20], [5])  # too few for a second mean
    own = curves.own_values([first, second], "a")
    assert len(own.steps) <= curves.BINS
    assert (own.means[0] < 3.5, own.means[-1]) == (True, 4)
    assert np.all(np.diff(own.steps) > 0)
    assert curves.own_values([first], "c").means.tolist() == []
    few = run([float(k) for k in range(20)], ["b", "a"] * 10)  # one of two episodes
    assert curves.own_values([few], "b").means.tolist() == [4, 14]


def test_a_fixed_number_of_episodes_can_be_given():
    longer = run([float(k) for k in range(300)])
    assert curves.last_mean(longer, window=100) == np.mean(range(200, 300))
    assert curves.values(longer, longer.steps[-1:], window=5)[0] == 297


def test_the_band_stays_within_the_values_of_episodes(tmp_path):
    folder = write_training(tmp_path / "it", [0.0, 10.0] * 30, [10.0] * 60, [10.0] * 60)
    figure = TrainingSummary(open_folder(folder)).figure()
    (band,) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (round(heights.min(), 6), heights.max()) == (0, 10)  # 8 ± 8.6 without limits


def test_two_runs_are_lines_without_a_band(tmp_path):
    folder = write_training(tmp_path / "it", [0.0, 10.0] * 30, [10.0] * 60)
    axes = TrainingSummary(open_folder(folder)).figure().axes[0]
    assert not axes.collections
    assert len(axes.lines) == 3  # the mean, and each run
    assert "2 runs, each as a thin line" in axes.get_legend().get_texts()[0].get_text()


def test_there_is_a_row_for_each_seed(tmp_path):
    values = [[1.0] * 30 + [3.0] * 30, [2.0] * 40]
    folder = write_training(
        tmp_path / "it", *values, speed=10, learners=("random", "random(name='other')")
    )
    page = published(folder)
    with (folder / "runs.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    # 8 of the last 15
    assert list(first.values()) == ["0", "60", "600", "3.0", "2.0", "60.0", "0", "other"]
    assert (second["episodes"], second["steps"], second["seconds"]) == ("40", "400", "40.0")
    header = "seed episodes steps value at the end value of the whole run seconds faults "
    header += "best learner at the end"
    assert f"{header} 0 60 600 3 2" in page
    assert "Training time: 1 min 40 s (50.0 s each on average)." in page
    assert re.search(r"Started on \d{4}-\d\d-\d\d at \d\d:\d\d UTC", page)
    assert json.loads((folder / "summary.json").read_text())["runs"]["1"]["steps"] == 400


def test_the_leader_controls_most_episodes_at_the_end():
    learners = ["a"] * 72 + ["b"] * 5 + ["a"] * 3  # the last 8 are recent
    longest = make_objective("longest")
    shortest = make_objective("shortest")
    assert curves.leader(run([1.0] * 80, learners), longest) == "b"
    tie = run([1.0] * 72 + [5.0] * 4 + [1.0] * 4, ["a"] * 72 + ["b"] * 4 + ["a"] * 4)
    assert (curves.leader(tie, longest), curves.leader(tie, shortest)) == ("b", "a")


def test_the_figure_comes_first(tmp_path):
    folder = write_training(tmp_path / "it", [1.0] * 60)
    published(folder)
    page = (folder / "report.html").read_text()
    assert page.index("<svg") < page.index("<table")
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "Results",
        "Runs",
        "Best policy",
        "Learners",
        "Portfolio",
        "What to do next",
    ]


def test_the_report_begins_with_the_best_policy_and_ends_with_what_to_do_next(tmp_path, capsys):
    options = {"learners": ["random", "random(name='other')"], "tensorboard": False}
    folder = tmp_path / "my training"
    training = esbas.train("FrozenLake-v1", steps=100, progress=False, out=folder, **options)
    page = " ".join(re.sub(r"<[^>]+>", " ", training.report.read_text()).split())
    assert page.index("Best policy: ") < page.index("Mean value (return) of the recent episodes")
    assert "other random actions; it learns nothing." in page
    commands = [
        f"esbas evaluate '{folder}'",
        f"esbas.load_policy('{folder}')",
        f"esbas export '{folder}'",
        f"esbas resume '{folder}' --steps 200",
    ]
    end = html.unescape(page[page.rindex("What to do next") :])
    for command in commands:
        assert command in end
    assert "Documentation: docs/train.md and docs/policies.md" in end
    link = '<a href="https://github.com/esbas/esbas/blob/main/docs/policies.md">'
    assert link in training.report.read_text()
    show(training)
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("Best policy: ")
    for command in commands:
        assert command in shown
    summary = list(json.loads((folder / "summary.json").read_text()))
    assert summary.index("best policy") < summary.index("value at the end")


def test_next_steps_fit_the_training(tmp_path):
    unfinished = open_folder(write_training(tmp_path / "it", [1.0] * 10, steps=600))
    assert next_steps(unfinished)[0] == (
        "continue this training",
        f"esbas resume {unfinished.folder}",
    )
    options = {"tensorboard": False, "progress": False, "steps": 50}
    named = esbas.train(
        "FrozenLake-v1", learners="training.plugins:Plainest", out=tmp_path / "named", **options
    )
    steps = dict(next_steps(named._training))
    assert steps["play the best policy"] == f"esbas evaluate {named.folder} --trust"
    assert steps["load it in Python"].endswith(", trust=True)")
    made = esbas.train(
        lambda: gymnasium.make("FrozenLake-v1"), learners="random", out=tmp_path / "made", **options
    )
    assert dict(next_steps(made._training))["train longer"] == "training.extend(steps=100)"


PORTFOLIO = """
[[learner]]
algorithm = "dqn"
name = "corrected"
learning_rate = 1e-3
n_steps = 6
corrected = true

[[learner]]
algorithm = "dqn"
name = "uncorrected"
n_steps = 6
corrected = false

[[learner]]
algorithm = "tabular_q"
name = "Q"
learning_rate = 0.05

[[learner]]
algorithm = "tabular_q"
name = "optimistic"
initial = 1.0

[[learner]]
algorithm = "dqn"
name = "small"
convolutions = [[16, 4, 2], [32, 4, 2]]
hidden = [128]

[[learner]]
algorithm = "dqn"
name = "annealed"
epsilon = [1.0, 0.05, 15_000]
zeta = 2.0

[[learner]]
algorithm = "r_max"
epsilon = 0.01

[[learner]]
algorithm = "training.plugins:Plainest"
"""


def test_learners_are_explained_by_their_options():
    recipe = read_recipe(PORTFOLIO, source="the test")
    assert [explained(spec) for spec in recipe.learners] == [
        (
            "a deep Q-network, learning rate 0.001; corrected: n-step returns (n up to 6) "
            "are corrected for the actions of other learners (Retrace)."
        ),
        (
            "a deep Q-network; uncorrected: n-step returns (n = 6) are used as they are, "
            "also where other learners acted: faster, but biased."
        ),
        "Q-learning with a table, learning rate 0.05.",
        "Q-learning with a table; all values begin at 1, so that untried actions are tried first.",
        "a deep Q-network; convolutions with 16, 32 filters and dense layers of 128 units.",
        (
            "a deep Q-network; 100 % of its actions are random at first, 5 % after 15,000 steps; "
            "ez-greedy: random actions are taken n times in a row, n with probability ∝ n^-2."
        ),
        (
            "R-max: a table with a model, which goes where it has not been; 1 % of its actions "
            "are random."
        ),
        "training.plugins:Plainest.",
    ]


@pytest.mark.parametrize("kind", ["discrete", "tabular", "atari", "continuous"])
def test_all_algorithms_of_default_portfolios_are_explained(kind):
    assert {spec.algorithm for spec in default_portfolio(kind).learners} <= set(ALGORITHMS)


def test_all_episodes_are_columns(tmp_path):
    folder = write_training(
        tmp_path / "it", [1.0, 2.5], [3.0], learners=("random", "random(name='other')")
    )
    episodes = episode_columns(TrainingSummary(open_folder(folder)).runs)
    assert episodes.names == (
        *("run", "number", "learner", "value", "length"),
        *("steps", "epoch", "terminated", "truncated"),
    )
    rows = [
        tuple(column.tolist())
        for column in (episodes.run, episodes.number, episodes.learner, episodes.value)
    ]
    assert rows == [(0, 0, 1), (1, 2, 1), ("random", "other", "random"), (1.0, 2.5, 3.0)]
    assert episodes.steps.tolist() == [LENGTH, 2 * LENGTH, LENGTH]
    assert episodes.terminated.tolist() == [True] * 3
    assert episodes.truncated.tolist() == [False] * 3
    assert (episodes.terminated.dtype, episodes.value.dtype) == (np.bool_, np.float64)


def test_a_training_without_episodes_has_empty_columns():
    episodes = episode_columns({})
    assert len(episodes) == 0
    assert repr(episodes).endswith("0 rows")
    assert episodes.value.dtype == np.float64
