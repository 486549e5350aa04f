"""The display during a training."""

import io

import numpy as np
import pytest
from rich.console import Console

import esbas
from esbas.faults import Fault
from esbas.learners import Constant
from esbas.runner import EpisodeRecord
from esbas.testing import Corridor
from esbas.training.display import live_view
from esbas.training.display.live_view import LiveView, plain_line
from esbas.training.display.status import StatusTracker


def tracker(episodes=100, steps=None):
    names = "left", "right"
    learners = [Constant(name, lambda _: 0) for name in names]
    run = esbas.run(Corridor(5), learners, esbas.Fixed(names), episodes=episodes, steps=steps)
    return StatusTracker(run, seed=7), run


def record(number, arm, value, *faults):
    return EpisodeRecord(number, arm, value, 10, 0, True, False, tuple(faults))


def played(count=60, **options):
    """`left` controls the first 40 episodes, `right` the others; `left` fails in the last episode."""
    watch, run = tracker(**options)
    for number in range(1, count + 1):
        run.number, run.steps = number, 10 * number
        faults = [Fault("left", "step", "ValueError: no", 4)] if number == count else []
        watch.add_record(record(number, "left" if number <= 40 else "right", float(number), *faults))
    return watch.status()


def test_a_status_contains_returns_shares_and_dismissals():
    status = played()
    assert (status.seed, status.episodes, status.steps, status.arm) == (7, 60, 600, "right")
    assert status.value == np.mean(range(11, 61))
    assert status.progress == pytest.approx(0.6)
    left, right = status.members
    assert (left.episodes, left.share, left.value, left.faults, left.away) == (40, pytest.approx(2 / 3), 30.5, 1, 4)
    assert (right.episodes, right.share, right.value, right.faults, right.away) == (20, pytest.approx(1 / 3), 50.5, 0, 0)


def test_progress_uses_the_given_budget():
    assert played(episodes=None, steps=1200).progress == pytest.approx(0.5)
    assert played(episodes=60).finished
    assert not played(episodes=None, steps=1200).finished


def test_without_a_terminal_a_line_is_printed_from_time_to_time(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(live_view, "PLAIN_EVERY", 1e9)
    with LiveView("CartPole-v1, ssbas", console=Console(file=out, width=80)) as view:
        for count in (10, 20, 30):
            view.show(played(count))
        view.show(played(60, episodes=60))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2  # the first and the last
    assert lines[0].startswith("CartPole-v1, ssbas, seed 7: 100 steps (10%), 10 episodes, mean of the last 10: 5.5")
    assert "dismissed: left" in lines[0]
    assert lines[1].endswith("finished")


def test_on_a_terminal_there_is_a_table():
    out = io.StringIO()
    with LiveView("CartPole-v1, ssbas", console=Console(file=out, width=140, force_terminal=True)) as view:
        view.show(played())
    text = out.getvalue()
    for text_part in ("mean of", "last 50", "600", "35.5", "in control", "67%", "dismissed for 4 episodes", "steps/s", "left"):
        assert text_part in text, text_part


def test_a_line_shows_unknown_values():
    watch, _ = tracker()
    line = plain_line(watch.status())
    assert "? left" in line
    assert "nan" not in line
