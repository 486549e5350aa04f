"""Verdicts of the control benchmark, from scores that are made up."""

import numpy as np
import pytest

from esbas.experiments.control import Control
from esbas.experiments.control.analysis import ControlAnalysis
from esbas.experiments.control.setup import methods_of
from experiments.tiny_protocol import TEXT

SEEDS = 12
SECOND = TEXT[
    TEXT.index('[[task]]\nname = "Rooms"') : TEXT.index('[[task]]\nname = "Shop"')
].replace("Rooms", "Halls")


@pytest.fixture
def analyzed(tmp_path):
    """Return verdicts and analysis for scores of the recommended selector on two tasks."""

    def analyze(rooms, halls, *, ssbas=0.6, search=0.3, best=20.0):
        path = tmp_path / "protocol.toml"
        path.write_text(TEXT + SECOND)
        options = Control(
            protocol_file=path, tasks=("Rooms", "Halls"), runs=SEEDS, out=tmp_path / "out"
        )
        cells = {}
        for task, recommended in zip(options.chosen_tasks, (rooms, halls), strict=True):
            level = {
                "kalman-thompson": recommended,
                "ssbas": ssbas,
                "uniform": 0.5,
                "alone:rate 0.5": 1.0,
                "alone:rate 0.1": 0.8,
            }
            found = {}
            for name in methods_of(task, options.protocol):
                noise = 0 if name.startswith("alone") else np.linspace(-0.01, 0.01, SEEDS)[:, None]
                found[name] = returns(level.get(name, search) + noise, best)
            cells[task.name] = found | {"random": {"returns": np.zeros(4)}}
        # An ensemble that exists on one task only.
        cells["Rooms"]["uniform"]["vote"] = np.full(SEEDS, 0.7 * best)
        analysis = ControlAnalysis(options, cells)
        return [each.holds for each in analysis.verdicts()], analysis

    return analyze


def returns(score, best):
    """Return runs with these scores: the best learner alone has `best`, and random actions 0."""
    curve = np.broadcast_to(best * np.asarray(score), (SEEDS, 10)).copy()
    return {"curve": curve, "final": curve[:, -1], "cpu": np.ones(SEEDS)}


def test_all_claims_can_hold(analyzed):
    holds, analysis = analyzed(0.97, 0.96)
    assert holds == [True, True, True, True]
    assert "not distinguishable" not in analysis.verdicts()[2].measured
    assert analysis.summary()["aggregate"]["kalman-thompson"]["score"]["iqm"] == pytest.approx(
        0.965, abs=0.005
    )


@pytest.mark.parametrize(
    ("scores", "holds"),
    [
        # As chance on one of two tasks: not on most, and below 0.75.
        ((0.97, 0.5), [False, False, True, True]),
        ((0.97, 0.4), [False, False, True, True]),  # below chance
        ((0.97, 0.8), [True, True, True, True]),  # half of the tasks reach 0.95
        ((0.97, 0.74), [True, False, True, True]),
        ((0.94, 0.94), [True, False, True, True]),
    ],
)
def test_each_claim_can_fail(analyzed, scores, holds):
    assert analyzed(*scores)[0] == holds


def test_claims_on_the_aggregate(analyzed):
    assert analyzed(0.9, 0.9, ssbas=0.95)[0][2:] == [False, True]
    assert analyzed(0.9, 0.9, search=0.95)[0][2:] == [True, False]


def test_a_difference_within_the_interval_is_called_indistinguishable(analyzed):
    _, analysis = analyzed(0.9 + np.linspace(-0.2, 0.21, SEEDS)[:, None], 0.9, ssbas=0.9)
    verdict = analysis.verdicts()[2]
    assert "not distinguishable from ssbas" in verdict.measured
    assert "uniform," not in verdict.measured.partition("not distinguishable")[2]


def test_a_task_whose_best_learner_misses_the_threshold_does_not_count(analyzed):
    holds, analysis = analyzed(0.9, 0.9, best=-2.0)  # worse than random actions
    assert holds == [None] * 4
    assert analysis.summary()["aggregate"] == {}


def test_methods_on_some_tasks_are_compared_on_these(analyzed):
    summary = analyzed(0.97, 0.8)[1].summary()
    assert "majority-vote" not in summary["aggregate"]
    (row,) = (row for name, row in summary["partial"].items() if name == "majority-vote")
    assert row["tasks"] == ["Rooms"]
    assert row["score"] is None
    assert row["final"]["iqm"] == pytest.approx(0.7)
    assert row["recommended_final"]["iqm"] == pytest.approx(0.97, abs=0.005)
