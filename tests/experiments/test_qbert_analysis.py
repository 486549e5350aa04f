"""Profiles, costs, and what the analysis of Q*bert makes of logs with known values."""

from dataclasses import fields

import numpy as np
import pytest

from esbas.experiments.qbert import Qbert
from esbas.experiments.qbert.analysis import QbertAnalysis
from esbas.experiments.qbert.cost import MeasuredRates, estimate
from esbas.experiments.qbert.figures import score_figure
from esbas.experiments.qbert.profiles import LAPTOP, NETWORKS, PAPER, Profile, hyperparameters
from esbas.experiments.qbert.setup import LEARNERS
from training.written_runs import LENGTH, write_run

SAME = {"steps": None, "memory": None, "action_repeat": None, "update_every": None}


def test_the_paper_profile_has_the_printed_values():
    printed = {
        "batch_size": 32,
        "memory": 10**6,
        "history": 4,
        "target_every": 50_000,
        "gamma": 0.99,
        "learning_rate": 2.5e-4,
    }
    printed |= {"action_repeat": 20, "update_every": 20, "noop_max": 30, "optimizer": "rmsprop"}
    assert {name: getattr(PAPER, name) for name in printed} == printed
    assert PAPER.sync_every == 2500
    assert [
        (network.name, [layer[1:] for layer in network.convolutions], network.hidden)
        for network in NETWORKS
    ] == [
        ("small", [(4, 2), (4, 2)], 128),
        ("large", [(8, 4), (4, 2)], 256),
        ("huge", [(8, 4), (4, 2), (3, 1)], 512),
    ]


def test_schedules_shrink_with_the_steps_and_never_grow():
    assert PAPER.with_options(**SAME) == PAPER
    tenth = PAPER.with_options(**SAME | {"steps": 1_000_000})
    assert (tenth.replay_start, tenth.target_every, tenth.epsilon_steps) == (5_000, 5_000, 100_000)
    longer = PAPER.with_options(**SAME | {"steps": 20_000_000})
    assert (longer.replay_start, longer.target_every, longer.epsilon_steps) == (
        50_000,
        50_000,
        1_000_000,
    )
    tiny = PAPER.with_options(**SAME | {"steps": 60, "update_every": 7})
    assert (tiny.replay_start, tiny.target_every, tiny.sync_every, tiny.epsilon_steps) == (
        32,
        7,
        1,
        6,
    )


def test_the_table_has_every_hyperparameter():
    header, rows = hyperparameters(LAPTOP.with_options(**SAME | {"steps": 3000}))
    assert all(len(row) == len(header) == 6 for row in rows)
    titles = [str(row[0]) for row in rows]
    assert all(any(each.metadata["title"] == title for title in titles) for each in fields(Profile))
    start = next(row for row in rows if str(row[0]).startswith("replay start"))
    used = max(LAPTOP.batch_size, round(LAPTOP.replay_start * 3000 / LAPTOP.steps))
    assert start[1:5] == ["5·10⁻⁴", "50,000", f"{LAPTOP.replay_start:,}", f"{used:,}"]


def test_costs_follow_from_the_rates():
    rates = MeasuredRates(
        step=0.01,
        act={"small": 0.001, "large": 0.002, "huge": 0.003},
        update={"small": 0.03, "large": 0.02, "huge": 0.05},
        gpu_update={"small": 0.001, "large": 0.001, "huge": 0.002},
        weights={"small": 1_000_000, "large": 1_000_000, "huge": 2_000_000},
        process=5e8,
        libraries=1e8,
        disk_per_frame=100.0,
    )
    rows = {str(what): value for what, value, _ in estimate(rates, PAPER, cores=2)}
    acting = 10_000_000 * 0.012 / 3600
    training = 497_500 * 2 * 0.1 / 3600
    assert rows["updates of each network"] == 497_500
    assert rows["acting"] == pytest.approx(acting)
    assert rows["updates of six networks"] == pytest.approx(training)
    assert rows["one run in total"] == pytest.approx(acting + training)
    assert rows["one run on 2 cores"] == pytest.approx(acting)  # acting does not divide
    assert rows["the same with six networks alone"] == pytest.approx(7 * acting + 2 * training)
    assert rows["updates of six networks on a GPU"] == pytest.approx(497_500 * 2 * 0.004 / 3600)
    assert rows["replay memory, compressed"] == pytest.approx(0.1)
    assert rows["3 processes with PyTorch"] == pytest.approx(1.6)


@pytest.fixture
def analysis(tmp_path):
    """Write two runs of all methods.

    The selector alternates, and the scores of small 1 grow by 10 with each game.
    """
    options = Qbert(alone=True, runs=2, out=tmp_path)
    trainings = options.trainings(tmp_path)
    for name, training in trainings.items():
        for seed in training.seeds:
            games = 60 if name == "SSBAS" else 30
            learners = LEARNERS if name == "SSBAS" else (name,)
            write_run(
                training.folder,
                seed,
                [10 * k + 100 * seed for k in range(1, games + 1)],
                learners=learners,
                steps=games * LENGTH,
            )
    return QbertAnalysis(options.setup, trainings, np.array([0.0, 50.0, 100.0]))


def test_running_means_and_shares(analysis):
    assert analysis.window == 2  # at most a tenth of 30 games
    at = analysis.grid("SSBAS", steps=False)
    assert (at[0], at[-1]) == (1, 60)
    scores = analysis.scores("SSBAS", at, steps=False)
    assert scores[:, 0].tolist() == [10, 110]
    assert scores[:, -1].tolist() == [595, 695]
    assert analysis.scores("small 1", np.array([5 * LENGTH]), steps=True).tolist() == [[45], [145]]
    shares = analysis.shares(np.array([1, 2, 60]), steps=False)
    assert shares[0, :, 1].tolist() == [0.5, 0.5, 0, 0, 0, 0]
    assert shares[0, :, 2].tolist() == [0, 0, 0, 0, 0.5, 0.5]
    assert analysis.selected().tolist() == pytest.approx([1 / 6] * 6)


def test_intervals_are_over_runs_if_there_are_several(analysis):
    last = analysis.last("SSBAS")
    assert (last.mean, last.runs) == (pytest.approx(355), 2)
    analysis.runs["SSBAS"] = analysis.runs["SSBAS"][:1]
    alone = analysis.last("SSBAS")
    assert (alone.mean, alone.runs) == (pytest.approx(305), 60)
    rows = analysis.method_table()
    assert [row[0] for row in rows] == ["SSBAS", *LEARNERS, "random actions"]
    assert rows[-1][3].mean == 50


def test_the_figure_has_a_curve_per_method_and_an_area_per_network(analysis):
    above, below = score_figure(analysis).axes
    labels = above.get_legend_handles_labels()[1]
    assert set(labels) == {"SSBAS", *(f"{name} alone" for name in LEARNERS), "random actions"}
    assert above.get_legend().get_texts()[0].get_text() == "SSBAS"
    assert len(below.collections) == len(LEARNERS)
    assert below.get_xlim() == (0, 60)
    assert "2 runs, 95 % bands" in above.get_title(loc="left")
