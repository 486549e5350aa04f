"""Cells of the control benchmark: bins, searches, members that are fixed or share no data, and scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas.experiments.control.cells import binned_means, run_cell
from esbas.experiments.control.protocol import read_protocol
from esbas.experiments.control.scores import ANY, BEST, TaskScores
from esbas.experiments.control.searches import Candidate, rungs_of, search
from esbas.experiments.control.setup import methods_of
from experiments.tiny_protocol import TEXT


@pytest.fixture(scope="module")
def protocol(tmp_path_factory):
    path = tmp_path_factory.mktemp("protocol") / "protocol.toml"
    path.write_text(TEXT)
    return read_protocol(path)


def test_bins_by_hand():
    starts, values = np.array([0, 5, 12, 39]), np.array([1.0, 3.0, 4.0, 8.0])
    assert binned_means(starts, values, steps=40, bins=4).tolist() == [2.0, 4.0, 6.0, 8.0]  # the third one is interpolated
    assert binned_means(np.array([20]), np.array([7.0]), steps=40, bins=4).tolist() == [7.0] * 4
    assert binned_means(np.array([0, 45]), np.array([1.0, 2.0]), steps=40, bins=2).tolist() == [1.0, 2.0]


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(-10, 10)), min_size=1, max_size=30))
def test_bins_are_means_of_the_episodes_that_start_in_them(episodes):
    starts, values = np.array([start for start, _ in episodes]), np.array([value for _, value in episodes])
    curve = binned_means(starts, values, steps=100, bins=10)
    for place in range(10):
        inside = [value for start, value in episodes if start // 10 == place]
        if inside:
            assert curve[place] == pytest.approx(np.mean(inside))
    assert values.min() - 1e-9 <= curve.min() <= curve.max() <= values.max() + 1e-9


def test_rungs_by_hand():
    assert rungs_of(5, 400) == [(5, 100), (3, 100), (2, 100), (1, 100)]
    assert rungs_of(4, 300, commit_share=0.5) == [(4, 150), (1, 150)]
    assert rungs_of(1, 10) == [(1, 10)]


class Episodes:
    """Stands for a run: each episode has the same length and return."""

    def __init__(self, length, value):
        self.steps, self.length, self.value = 0, length, value

    def __next__(self):
        self.steps += self.length
        return self


def test_a_search_keeps_the_best_and_uses_the_whole_budget():
    runs = [Episodes(10, 1.0), Episodes(5, 3.0), Episodes(10, 2.0)]
    seen = []
    best = search([Candidate(run) for run in runs], rungs_of(3, 270), report=lambda *told: seen.append(told[:2]))
    assert best == 1
    assert sum(run.steps for run in runs) == 270
    assert runs[0].steps == 30  # a third of the first rung; then it is out
    assert runs[2].steps == 30 + 45 + 5  # half of the second rung; the last episode is completed
    assert [start for _, start in seen] == sorted(start for _, start in seen)


@pytest.mark.parametrize("name", ["Rooms", "Pole"])
def test_a_member_in_control_does_as_it_does_alone(protocol, name):
    task = protocol.tasks[name]
    methods = methods_of(task, protocol)
    member = task.portfolio.default
    fixed, alone = (run_cell(task, methods[f"{kind}:{member}"], protocol, 3) for kind in ("fixed", "alone"))
    np.testing.assert_equal(fixed["curve"], alone["curve"])
    assert fixed["final"] == alone["final"]
    assert fixed["shares"].tolist() == [1.0, *[0.0] * (len(task.portfolio.names) - 1)]
    assert methods[f"fixed:{member}"].copied_from(task, "uniform") == (f"alone:{member}" if name == "Rooms" else None)


def test_cells_depend_on_the_seed_alone_and_count_every_step(protocol):
    task = protocol.tasks["Rooms"]
    methods = methods_of(task, protocol)
    for name in ("kalman-thompson", "successive-halving", "uniform-then-commit"):
        first, again, other = (run_cell(task, methods[name], protocol, seed) for seed in (0, 0, 1))
        assert {key: value for key, value in first.items() if key != "cpu"}.keys() == again.keys() - {"cpu"}
        np.testing.assert_equal(first["curve"], again["curve"])
        assert not np.array_equal(first["curve"], other["curve"])
        assert task.steps <= first["steps"] < task.steps + 3 * 50  # the last episodes are completed
        assert first["shares"].sum() == pytest.approx(1)


def test_members_that_share_no_data_learn_from_their_own_episodes(protocol):
    task = protocol.tasks["Pole"]
    methods = methods_of(task, protocol)
    cell = run_cell(task, methods["uniform"], protocol, 0)
    assert np.isfinite(cell["greedy"]).all()  # evaluate_all
    assert cell["faults"] == 0


def test_more_updates_and_tuned_members(protocol):
    methods = methods_of(read_protocol().tasks["LunarLander"], read_protocol())
    (member,) = methods["more-updates"].recipe.members
    assert member.options["updates"] == 4
    (tuned,) = methods["rl-zoo"].recipe.members
    assert list(tuned.options["hidden"]) == [256, 256]
    assert "more-updates" not in methods_of(protocol.tasks["Rooms"], protocol)  # tables have no updates to repeat


def cells(**levels):
    """Two seeds with two bins, by method."""
    return {
        name: {"curve": np.array([[level - 1, level + 1], [level, level]]), "final": np.array([level, level + 2.0])}
        for name, level in levels.items()
    }


def test_scores_are_0_for_random_actions_and_1_for_the_best_member(protocol):
    task = protocol.tasks["Rooms"]
    names = [f"alone:{name}" for name in task.portfolio.names]
    found = cells(**{"uniform": 6.0, **dict(zip(names, (10.0, 4.0, 2.0), strict=True))}) | {
        "random": {"returns": np.array([1.0, 3.0])}
    }
    methods = {name: method for name, method in methods_of(task, protocol).items() if name in found}
    scores = TaskScores(task, methods, found, "uniform")
    assert scores.reference == names[0]
    assert scores.scores(names[0]).tolist() == scores.scores(BEST).tolist() == [1.0, 1.0]
    assert scores.scores("uniform").tolist() == [0.5, 0.5]
    assert scores.scores(ANY) == pytest.approx([(1 + 0.25 + 0) / 3] * 2)
    assert scores.finals("uniform") == pytest.approx([4 / 9, 6 / 9])  # random 2, the best final is 11
    assert scores.counts
    assert scores.reached == pytest.approx(10.5)  # the last bin
