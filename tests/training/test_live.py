"""The display during a training."""

import dataclasses
import io
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from rich.console import Console

import esbas
from esbas.learners import Constant
from esbas.loop import EpisodeRecord
from esbas.roster import Fault
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
    """`left` controls the first 40 episodes, `right` the others; `left` fails in the last
    episode.
    """
    watch, run = tracker(**options)
    for number in range(1, count + 1):
        run.number = number
        run.steps = 10 * number
        faults = [Fault("left", "step", "ValueError: no", 4)] if number == count else []
        watch.add_record(
            record(number, "left" if number <= 40 else "right", float(number), *faults)
        )
    return watch.status()


def test_a_status_contains_returns_shares_and_dismissals():
    status = played()
    assert (status.seed, status.episodes, status.steps, status.learner) == (7, 60, 600, "right")
    assert status.value == np.mean(range(55, 61))  # a tenth of the steps: six episodes
    assert status.progress == pytest.approx(0.6)
    left, right = status.learners
    # and its own last 20
    assert (left.episodes, left.share, left.value, left.faults, left.away) == (40, 0, 30.5, 1, 4)
    assert (right.episodes, right.share, right.value, right.faults, right.away) == (
        20,
        1,
        50.5,
        0,
        0,
    )


def test_a_long_run_counts_its_last_tenth():
    status = played(300, episodes=400)
    assert status.value == np.mean(range(271, 301))


def test_progress_uses_the_given_budget():
    assert played(episodes=None, steps=1200).progress == pytest.approx(0.5)
    assert played(episodes=60).finished
    assert not played(episodes=None, steps=1200).finished


def test_without_a_terminal_a_line_is_printed_from_time_to_time(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(live_view, "PLAIN_EVERY", 1e9)
    with LiveView("CartPole-v1, ssbas", seeds=[7], console=Console(file=out, width=80)) as view:
        for count in (10, 20, 30):
            view.show(played(count))
        view.show(played(60, episodes=60))
    lines = out.getvalue().splitlines()
    assert len(lines) == 3  # at once, the first one and the last one
    assert lines[0] == "CartPole-v1, ssbas: starting"
    assert lines[1].startswith(
        "CartPole-v1, ssbas, seed 7: 100 steps (10%), 10 episodes, mean of recent episodes: 8"
    )
    assert "dismissed: left" in lines[1]
    assert lines[2].endswith("finished")


def test_on_a_terminal_there_is_a_table():
    out = io.StringIO()
    with LiveView(
        "CartPole-v1, ssbas", console=Console(file=out, width=140, force_terminal=True)
    ) as view:
        view.show(played())
    text = out.getvalue()
    for text_part in (
        "recent",
        "600",
        "50.5",
        "in control",
        "100%",
        "recent: the last tenth of the steps, at least 5 episodes",
        "dismissed for 4 episodes",
        "steps/s",
        "left",
    ):
        assert text_part in text, text_part


def test_a_line_shows_unknown_values():
    watch, _ = tracker()
    line = plain_line(watch.status())
    assert "? left" in line
    assert "nan" not in line


def test_the_view_can_be_switched_off():
    out = io.StringIO()
    threads = threading.active_count()
    with LiveView(
        "task", console=Console(file=out, width=80, force_terminal=True), enabled=False
    ) as view:
        assert threading.active_count() == threads
        view.show(played())
    assert out.getvalue() == ""


class FakeNotebook:
    """What an IPython kernel has: a shell with a kernel, and `display` with handles that can be
    updated.
    """

    def __init__(self, monkeypatch, *, kernel=True):
        self.shown = []  # the content of the area, one after the other
        self.areas = 0
        shell = types.SimpleNamespace(kernel=object()) if kernel else types.SimpleNamespace()
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: shell
        display = types.ModuleType("IPython.display")
        display.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.areas += 1
        self.shown.append(bundle)
        return self

    def update(self, bundle, *, raw):
        assert raw
        self.shown.append(bundle)


def test_a_notebook_has_one_area_that_is_updated(monkeypatch, capsys):
    notebook = FakeNotebook(monkeypatch)
    monkeypatch.setattr(live_view, "NOTEBOOK_EVERY", 0.0)
    threads = threading.active_count()
    with LiveView("CartPole-v1 <ssbas>", seeds=[7]) as view:
        assert threading.active_count() == threads
        assert "seed 7: waiting" in notebook.shown[0]["text/plain"]  # at once
        view.show(dataclasses.replace(played(), notes=("the callback <b>failed</b>",)))
    assert notebook.areas == 1
    assert len(notebook.shown) == 3
    last = notebook.shown[-1]
    for text in (
        "CartPole-v1 &lt;ssbas&gt;",
        "in control",
        "100%",
        "the callback &lt;b&gt;failed",
        "<pre style=",
    ):
        assert text in last["text/html"], text
    assert "<style" not in last["text/html"]
    assert "background" not in last["text/html"]
    assert "\x1b" not in last["text/plain"]
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_notebook_is_not_updated_too_often(monkeypatch):
    notebook = FakeNotebook(monkeypatch)
    with LiveView("task") as view:
        for count in range(1, 60):
            view.show(played(count))
        assert len(notebook.shown) == 1
        view.show(played(60, episodes=60))  # the end of a run is shown at once
        assert len(notebook.shown) == 2
    assert len(notebook.shown) == 3


def test_a_notebook_is_updated_by_the_thread_of_its_cell(monkeypatch):
    notebook = FakeNotebook(monkeypatch)
    monkeypatch.setattr(live_view, "NOTEBOOK_EVERY", 0.0)
    with LiveView("task") as view:
        other = threading.Thread(target=view.show, args=(played(),))
        other.start()
        other.join()
        assert len(notebook.shown) == 1
    assert "in control" in notebook.shown[-1]["text/plain"]  # the last picture has all reports


@pytest.mark.parametrize("kernel", [True, False])
def test_lines_are_printed_where_there_is_no_notebook(monkeypatch, capsys, kernel):
    """IPython in a terminal, a console that was given, and a program without IPython."""
    notebook = FakeNotebook(monkeypatch, kernel=kernel)
    out = io.StringIO()
    with LiveView(
        "task", seeds=[7], console=Console(file=out, width=80) if kernel else None
    ) as view:
        view.show(played())
    assert not notebook.shown
    assert "task: starting" in (out.getvalue() if kernel else capsys.readouterr().err)


def test_ipython_is_not_imported():
    program = """
import sys
from esbas.training.display.live_view import LiveView
with LiveView("task"):
    pass
assert "IPython" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
