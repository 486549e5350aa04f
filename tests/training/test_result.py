"""What `esbas.train` returns: numbers, tables, figures and policies in hand."""

import json
import math
import shutil
from html.parser import HTMLParser
from typing import ClassVar

import numpy as np
import pytest
from matplotlib.figure import Figure

import esbas
from esbas.errors import EsbasError, InvalidValueError, SaveFileError, UnknownNameError
from esbas.training.recent import recent_count, recent_weights
from esbas.training.runs.episode_log import read_episodes
from training.programs import train_without_report

LEARNERS = "tabular_q(learning_rate=0.1)", "tabular_q(learning_rate=0.5)"
OPTIONS = {"learners": LEARNERS, "steps": 600, "tensorboard": False, "progress": False}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return esbas.train(
        "FrozenLake-v1", seeds=range(3), out=tmp_path_factory.mktemp("result") / "it", **OPTIONS
    )


@pytest.fixture
def training(trained, tmp_path):
    """A copy that a test may change."""
    return esbas.load_training(shutil.copytree(trained.folder, tmp_path / "it"))


def recent_means(training):
    runs = [read_episodes(training.folder / "runs" / f"seed-{seed}") for seed in training.seeds]
    means = []
    for run in runs:
        weights = recent_weights(run.steps)
        means.append(np.average(run.values[-len(weights) :], weights=weights))
    return means


def test_the_score_is_the_mean_of_recent_episodes_over_runs(trained):
    means = recent_means(trained)
    assert trained.score.mean == pytest.approx(np.mean(means))
    # the 97.5 % quantile of Student's t with 2 degrees of freedom
    half = 4.302653 * np.std(means, ddof=1) / math.sqrt(3)
    assert trained.score.high - trained.score.mean == pytest.approx(half, rel=1e-6)
    assert trained.score.low == pytest.approx(trained.score.mean - half, rel=1e-6)
    assert (trained.score.runs, trained.score.over) == (3, "runs")
    assert str(trained.score).endswith(" over 3 runs")  # its interval is wider than its mean


def test_the_score_of_one_run_has_an_interval_over_its_recent_episodes(tmp_path):
    training = train_without_report("FrozenLake-v1", out=tmp_path / "it", **OPTIONS)
    run = read_episodes(training.folder / "runs" / "seed-0")
    assert training.score.over == "episodes"
    assert training.score.runs == recent_count(run.steps)
    assert training.score.mean == pytest.approx(recent_means(training)[0])
    assert math.isfinite(training.score.high)


def test_tables_and_columns(trained):
    table = trained.table()
    assert table["learner"] == trained.learners
    assert sum(table["share of control [%]"]) == pytest.approx(100)
    assert trained.runs()["seed"] == ("0", "1", "2")
    episodes = trained.episodes()
    assert len(episodes) == sum(trained.runs()["episodes"])
    assert set(episodes.learner) <= set(trained.learners)
    assert (episodes.number[episodes.run == 1] == np.arange(1, (episodes.run == 1).sum() + 1)).all()
    frame = episodes.to_pandas()
    assert list(frame.columns) == list(episodes.names)
    assert frame.groupby("run")["length"].sum().tolist() == list(trained.runs()["steps"])


def test_the_figure_is_drawn_and_shown(trained, tmp_path):
    figure = trained.figure()
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "it.png")
    assert (tmp_path / "it.png").stat().st_size > 10_000
    assert figure._repr_png_()


def test_it_shows_itself_in_a_notebook(trained):
    class Checker(HTMLParser):
        found: ClassVar[set[str]] = set()

        def handle_starttag(self, tag, attrs):
            self.found.add(tag)

    page = trained._repr_html_()
    Checker().feed(page)
    assert {"table", "svg", "b"} <= Checker.found
    assert "FrozenLake-v1" in page


def test_its_repr_says_what_it_is(trained):
    assert repr(trained).startswith("<Training of 2 learners on FrozenLake-v1: ")
    assert str(trained.score) in repr(trained)
    assert str(trained.folder) in repr(trained)


def test_the_best_policy_acts_and_predicts(trained):
    policy = trained.policy()
    assert policy.name in trained.learners
    action, state = policy.predict(0)
    assert state is None
    assert action in range(4)
    actions, _ = policy.predict(np.arange(16))
    assert actions.shape == (16,)
    assert trained.policy(LEARNERS and trained.learners[0], seed=1).name == trained.learners[0]
    with pytest.raises(UnknownNameError, match="did you mean"):
        trained.policy("tabular Q learning_rate 0.6")
    assert esbas.load_policy(trained.folder).name == policy.name


def test_evaluate_returns_an_estimate_over_fresh_episodes(training):
    result = training.evaluate(episodes=7, progress=False)
    assert (result.runs, result.over) == (7, "episodes")
    assert result.mean == pytest.approx(np.mean(result.values))
    assert result.learner == training.policy().name
    assert json.loads((training.folder / "evaluation.json").read_text())["episodes"] == 7
    again = training.evaluate(episodes=7, progress=False)
    assert again.values == result.values  # the same seed, the same episodes
    assert training.evaluate_learners(episodes=2)["learner"] == training.learners
    with pytest.raises(SaveFileError, match="has kept no trajectories"):
        training.evaluate_offline()


def test_extend_makes_runs_longer_and_adds_runs(training, tmp_path):
    assert training.extend(steps=900, progress=False, tensorboard=False) is training
    assert all(steps >= 900 for steps in training.runs()["steps"])
    training.extend(seeds=[7], progress=False, tensorboard=False)
    assert training.seeds == (0, 1, 2, 7)
    whole = train_without_report(
        "FrozenLake-v1", seeds=[0, 7], out=tmp_path / "whole", **OPTIONS | {"steps": 900}
    )
    for seed in (0, 7):
        path = f"runs/seed-{seed}/episodes.csv"
        assert (whole.folder / path).read_bytes() == (training.folder / path).read_bytes()
    with pytest.raises(InvalidValueError, match="must be at least what seed 0 has played"):
        training.extend(steps=10)


def test_export_writes_a_file_for_other_programs(training, tmp_path):
    assert training.export() == training.folder / "policy.npz"
    assert training.export(tmp_path / "best").name == "best.npz"
    archive = training.export(tmp_path / "best.zip")  # what NumPy writes is a zip archive
    assert "table" in np.load(archive)
    with pytest.raises(InvalidValueError, match=r"must be written to a \.npz file"):
        training.export(tmp_path / "best.pt")


def test_trainings_are_compared(trained, training, tmp_path):
    other = train_without_report(
        "FrozenLake-v1", selector="uniform", out=tmp_path / "other", **OPTIONS
    )
    comparison = esbas.compare(trained, tmp_path / "other")
    assert [row["selector"] for row in comparison.table()] == ["kalman-thompson", "uniform"]
    assert isinstance(comparison.figure(), Figure)
    assert comparison.report is None
    assert comparison.save(tmp_path / "compared") == tmp_path / "compared" / "report.html"
    assert "<table" in comparison._repr_html_()
    assert "FrozenLake-v1" in repr(comparison)
    cliff = train_without_report("CliffWalking-v1", out=tmp_path / "cliff", **OPTIONS)
    for wrong, sentence in (
        ((), "Nothing is given"),
        ((3,), "but got 3"),
        ((other, other.folder), "must be different"),
    ):
        with pytest.raises(InvalidValueError, match=sentence):
            esbas.compare(*wrong)
    with pytest.raises(InvalidValueError, match="must have the same environment"):
        esbas.compare(other, cliff)


def test_a_training_that_another_process_runs_can_be_looked_at(training):
    """It is loaded from its files, whatever they have at the moment."""
    directory = training.folder / "runs" / "seed-0"
    (directory / "clock.json").unlink()
    lines = (directory / "episodes.csv").read_text().splitlines(keepends=True)
    # a row is being written
    (directory / "episodes.csv").write_text("".join(lines[:5]) + lines[5][:3])
    loaded = esbas.load_training(training.folder)
    assert not loaded.finished
    assert loaded.runs()["episodes"][0] == 4
    assert "unfinished" in repr(loaded)


def test_before_the_first_episode_there_is_one_sentence(training):
    shutil.rmtree(training.folder / "runs")
    for ask in (lambda: training.score, training.table, training.episodes, training.figure):
        with pytest.raises(SaveFileError, match="has no episode yet"):
            ask()
    assert "no result yet" in repr(training)
    assert "has no episode yet" in training._repr_html_()


@pytest.mark.parametrize("folder", [3, "", "nowhere", None])
def test_what_is_no_folder_is_refused(folder):
    with pytest.raises(EsbasError) as caught:
        esbas.load_training(folder)
    assert "\n" not in str(caught.value)
