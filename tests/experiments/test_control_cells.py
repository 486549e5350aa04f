"""Cells of the control benchmark: bins, searches, learners that share no data, and scores."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas.experiments.control.cells import EpisodeScores, binned_means, run_cell
from esbas.experiments.control.protocol import read_protocol
from esbas.experiments.control.scores import ANY, BEST, TaskScores
from esbas.experiments.control.searches import Candidate, rungs_of, search
from esbas.experiments.control.setup import methods_of
from esbas.selectors import Uniform
from esbas.selectors.choice import Pick
from experiments.tiny_protocol import TEXT


@pytest.fixture(scope="module")
def protocol(tmp_path_factory):
    path = tmp_path_factory.mktemp("protocol") / "protocol.toml"
    path.write_text(TEXT)
    return read_protocol(path)


def test_bins_by_hand():
    starts = np.array([0, 5, 12, 39])
    values = np.array([1.0, 3.0, 4.0, 8.0])
    # The third one is interpolated.
    assert binned_means(starts, values, steps=40, bins=4).tolist() == [2.0, 4.0, 6.0, 8.0]
    assert binned_means(np.array([20]), np.array([7.0]), steps=40, bins=4).tolist() == [7.0] * 4
    beyond = binned_means(np.array([0, 45]), np.array([1.0, 2.0]), steps=40, bins=2)
    assert beyond.tolist() == [1.0, 2.0]


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(-10, 10)), min_size=1, max_size=30))
def test_bins_are_means_of_the_episodes_that_start_in_them(episodes):
    starts = np.array([start for start, _ in episodes])
    values = np.array([value for _, value in episodes])
    curve = binned_means(starts, values, steps=100, bins=10)
    for number in range(10):
        inside = [value for start, value in episodes if start // 10 == number]
        if inside:
            assert curve[number] == pytest.approx(np.mean(inside))
    assert values.min() - 1e-9 <= curve.min() <= curve.max() <= values.max() + 1e-9


def test_rungs_by_hand():
    assert rungs_of(5, 400) == [(5, 100), (3, 100), (2, 100), (1, 100)]
    assert rungs_of(4, 300, commit_share=0.5) == [(4, 150), (1, 150)]
    assert rungs_of(1, 10) == [(1, 10)]


class FakeRun:
    """Stands for a run: all episodes have the same length, and given returns.

    The last return is repeated for ever.
    """

    def __init__(self, length, *values):
        self.steps = 0
        self.length = length
        self.values = list(values)

    def __next__(self):
        self.steps += self.length
        value = self.values[0]
        if len(self.values) > 1:
            self.values.pop(0)
        return SimpleNamespace(value=value, length=self.length)


def ignore(*_):
    """Stands for `report`."""


def test_a_search_keeps_the_best_and_uses_the_whole_budget():
    runs = [FakeRun(10, 1.0), FakeRun(5, 3.0), FakeRun(10, 2.0)]
    seen = []
    best = search(
        [Candidate(run) for run in runs],
        rungs_of(3, 270),
        report=lambda *told: seen.append(told[:2]),
    )
    assert best == 1
    assert sum(run.steps for run in runs) == 270
    assert runs[0].steps == 30  # a third of the first rung; then it is out
    assert runs[2].steps == 30 + 45 + 5  # half of the second rung; the last episode is completed
    assert [start for _, start in seen] == sorted(start for _, start in seen)


def played(run, episodes):
    """Return a candidate that has played."""
    candidate = Candidate(run)
    for _ in range(episodes):
        candidate.play()
    return candidate


def test_a_candidate_is_judged_by_the_later_half_of_its_steps():
    candidate = played(FakeRun(10, 0.0, 1.0, 2.0, 4.0, 6.0, 8.0), 4)  # episodes start at 0 to 30
    assert candidate.recent(0) == 3.0  # those from step 20 on: 2 and 4
    candidate.play()
    candidate.play()
    assert candidate.recent(0) == 6.0  # those from step 30 on: 4, 6 and 8
    assert candidate.recent(40) == 8.0  # after step 40, those from step 50 on
    assert candidate.recent(60) == 8.0  # none started later: the last one
    assert Candidate(FakeRun(10, 1.0)).recent(0) == -math.inf


def test_a_rung_compares_the_later_half_of_the_rung_before():
    # The rung has 80 steps, 40 for each. The falling one has the larger mean of the rung, 6 to 5,
    # and the rising one the larger mean of its later half, 10 to 2.
    falling = FakeRun(10, 10.0, 10.0, 2.0, 2.0)
    rising = FakeRun(10, 0.0, 0.0, 10.0, 10.0)
    assert search([Candidate(falling), Candidate(rising)], rungs_of(2, 160), report=ignore) == 1
    assert falling.steps == 40
    assert rising.steps == 40 + 80


def test_a_rung_forgets_the_rungs_before_it():
    # Three rungs of 120 steps: 30, 60 and 120 steps for each learner that remains. The second rung
    # is about the episodes that start from step 30 + 60 / 2 on, where the second learner is ahead,
    # 9 to 0. The later half of all 90 steps, from step 45 on, has an episode with 100.
    early = FakeRun(10, 100.0, 100.0, 100.0, 0.0, 0.0, 100.0, 0.0)
    late = FakeRun(10, 8.0, 8.0, 8.0, 9.0)
    others = [FakeRun(10, 1.0), FakeRun(10, 2.0)]
    candidates = [Candidate(run) for run in (early, late, *others)]
    assert search(candidates, rungs_of(4, 360), report=ignore) == 1
    assert [run.steps for run in (early, late, *others)] == [90, 90 + 120, 30, 30]


def test_the_leader_has_most_control_in_the_last_fifth_of_the_budget():
    episodes = EpisodeScores()
    start = 0
    for learner, length in [(0, 70), (1, 12), (0, 4), (1, 8), (2, 6)]:
        record = SimpleNamespace(value=1.0, length=length, faults=())
        episodes.add(learner, start, record)
        start += length
    # Starts: 0, 70, 82, 86, 94. The last fifth begins at step 80.
    assert episodes.shares(3) == pytest.approx([0.74, 0.20, 0.06])
    assert episodes.shares(3, since=80) == pytest.approx([4 / 18, 8 / 18, 6 / 18])
    assert episodes.leader(3, steps=100) == 1
    assert episodes.leader(3, steps=110) == 2  # from step 88 on


def test_the_leader_of_a_run_is_evaluated(protocol, monkeypatch):
    steps = 0
    add = EpisodeScores.add

    def counted_add(self, learner, start, record):
        nonlocal steps
        steps += record.length
        add(self, learner, start, record)

    def first_then_second(self, among, context):
        return Pick(among[0] if steps < 1_200 else among[1], None)

    monkeypatch.setattr(EpisodeScores, "add", counted_add)
    monkeypatch.setattr(Uniform, "pick", first_then_second)
    task = protocol.tasks["Rooms"]  # 1,500 steps
    cell = run_cell(task, methods_of(task, protocol)["uniform"], protocol, 0)
    assert cell["shares"][0] > 0.7
    assert np.isfinite(cell["greedy"]).tolist() == [False, True, False]
    assert cell["final"] == cell["greedy"][1]


@pytest.mark.parametrize("name", ["Rooms", "Pole"])
def test_a_learner_in_control_does_as_it_does_alone(protocol, name):
    task = protocol.tasks[name]
    methods = methods_of(task, protocol)
    learner = task.portfolio.default
    fixed, alone = (
        run_cell(task, methods[f"{kind}:{learner}"], protocol, 3) for kind in ("fixed", "alone")
    )
    np.testing.assert_equal(fixed["curve"], alone["curve"])
    assert fixed["final"] == alone["final"]
    assert fixed["shares"].tolist() == [1.0, *[0.0] * (len(task.portfolio.names) - 1)]
    assert methods[f"fixed:{learner}"].copied_from(task, "uniform") == (
        f"alone:{learner}" if name == "Rooms" else None
    )


def test_cells_depend_on_the_seed_alone_and_count_every_step(protocol):
    task = protocol.tasks["Rooms"]
    methods = methods_of(task, protocol)
    for name in ("kalman-thompson", "successive-halving", "uniform-then-commit"):
        first, again, other = (run_cell(task, methods[name], protocol, seed) for seed in (0, 0, 1))
        assert {
            key: value for key, value in first.items() if key != "cpu"
        }.keys() == again.keys() - {"cpu"}
        np.testing.assert_equal(first["curve"], again["curve"])
        assert not np.array_equal(first["curve"], other["curve"])
        assert task.steps <= first["steps"] < task.steps + 3 * 50  # the last episodes are completed
        assert first["shares"].sum() == pytest.approx(1)


def test_learners_that_share_no_data_learn_from_their_own_episodes(protocol):
    task = protocol.tasks["Pole"]
    methods = methods_of(task, protocol)
    cell = run_cell(task, methods["uniform"], protocol, 0)
    assert np.isfinite(cell["greedy"]).all()  # evaluate_all
    assert cell["faults"] == 0


def test_more_updates_and_tuned_learners(protocol):
    methods = methods_of(read_protocol().tasks["LunarLander"], read_protocol())
    (learner,) = methods["more-updates"].recipe.learners
    assert learner.options["gradient_steps"] == 4
    (tuned,) = methods["rl-zoo"].recipe.learners
    assert list(tuned.options["hidden"]) == [256, 256]
    # tables have no updates to repeat
    assert "more-updates" not in methods_of(protocol.tasks["Rooms"], protocol)


def cells(**levels):
    """Two seeds with two bins, by method."""
    return {
        name: {
            "curve": np.array([[level - 1, level + 1], [level, level]]),
            "final": np.array([level, level + 2.0]),
        }
        for name, level in levels.items()
    }


def test_scores_are_0_for_random_actions_and_1_for_the_best_learner(protocol):
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
    # random 2, the best final is 11
    assert scores.finals("uniform") == pytest.approx([4 / 9, 6 / 9])
    assert scores.counts
    assert scores.reached == pytest.approx(10.5)  # the last bin
