"""Progress within episodes, estimates, and the live view at several widths, with several seeds."""

import io
import itertools
import threading
import time

import pytest
from rich.console import Console

from esbas.testing import Corridor
from esbas.training import TrainingConfig
from esbas.training.display import live_view
from esbas.training.display.counting import CountingEnv
from esbas.training.display.live_view import LiveView, plain_line
from esbas.training.display.speed import SpeedMeter
from esbas.training.display.status import LearnerStatus, Status
from esbas.training.display.tables import shorten
from esbas.training.runs import one_run
from esbas.training.train import save_options
from training.programs import plan_of_config

NAMES = [
    f"DQN rate {rate:g}, {n_steps} steps"
    for rate, n_steps in itertools.product((3e-4, 1e-3, 2.5e-3), (3, 6))
]


def status(seed=0, *, names=NAMES, finished=False, current=0, evaluated=0, away=0, notes=()):
    learners = tuple(
        LearnerStatus(
            name, 1234, 1 / len(names), 487.25, 3 if away else 0, away if name == names[1] else 0
        )
        for name in names
    )
    numbers = {
        "episodes": 312,
        "steps": 45_312 + current,
        "progress": 0.75,
        "learner": names[-1],
        "value": 487.25,
    }
    return Status(
        seed=seed,
        **numbers,
        speed=1033.0,
        left=61.0,
        learners=learners,
        finished=finished,
        current=current,
        evaluated=evaluated,
        notes=notes,
    )


def drawn(width, *statuses, seeds=()):
    """The last picture on a terminal of this width."""
    out = io.StringIO()
    console = Console(file=out, width=width, height=60, force_terminal=True, color_system=None)
    with LiveView("CartPole-v1, ssbas", seeds=seeds, console=console) as view:
        for each in statuses:
            view.show(each)
    return out.getvalue().rpartition("CartPole-v1, ssbas")[2].splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("away", [0, 4])
def test_each_learner_has_one_line_and_its_state_at_any_width(width, away):
    lines = drawn(width, status(away=away))
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if "17%" in line]
    assert len(rows) == len(NAMES)
    assert len({row.split("  ")[0] for row in rows}) == len(NAMES)  # names stay different
    assert rows[-1].rstrip().endswith("in control")
    assert "dismissed" in rows[1] if away else "dismissed" not in "".join(lines)
    if width >= 80:
        assert all(name in row for name, row in zip(NAMES, rows, strict=True))
        assert any("━" in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_several_seeds_show_learners_and_waiting_seeds(width):
    lines = drawn(
        width, status(0, finished=True), status(1), status(2, current=812), seeds=(0, 1, 2, 3, 4)
    )
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert " seeds 3, 4: waiting" in text
    assert "seed 2: episode 313 at step 812" in text
    assert "in control: 2" in text  # of the two that are running
    assert sum("done" in line for line in lines) == 1


def test_many_finished_runs_are_counted():
    text = "\n".join(drawn(80, *(status(seed, finished=seed < 19) for seed in range(20))))
    assert "19 other runs are finished" in text
    assert "in control" in text


def test_names_are_shortened_where_they_differ_least():
    assert shorten(["a", "long name, first", "long name, second"], 10) == [
        "a",
        "long…first",
        "long…econd",
    ]
    assert len(set(shorten(NAMES, 12))) == len(NAMES)
    assert max(map(len, shorten(NAMES, 12))) == 12
    too_long = ["aaaaaaaaaa-x-aaaaaaaaaa", "aaaaaaaaaa-y-aaaaaaaaaa"]
    assert shorten(too_long, 5) == ["aaaa…", "aaaa…"]


def test_a_line_shows_the_running_episode_and_evaluations():
    line = plain_line(status(current=812, evaluated=900))
    assert (
        "46,124 steps (75%), 312 episodes, episode 313 at step 812, 900 steps of evaluation" in line
    )


def test_lines_appear_while_no_run_reports_anything(monkeypatch):
    """A learner may learn for minutes."""
    for name, seconds in (("PLAIN_EVERY", 0.05), ("TICK", 0.02), ("QUIET", 0.0)):
        monkeypatch.setattr(live_view, name, seconds)
    out = io.StringIO()
    threads = threading.active_count()
    with LiveView("task", console=Console(file=out, width=80)) as view:
        wait_for(out, "task: starting for 0:00")
        view.show(status())
        wait_for(out, "no step for 0:00\n" + "task, seed 0")
    ended = out.getvalue()
    assert threading.active_count() == threads
    time.sleep(0.1)
    assert out.getvalue() == ended


def wait_for(out, text):
    end = time.monotonic() + 60
    while text not in out.getvalue():
        assert time.monotonic() < end, out.getvalue()
        time.sleep(0.01)


def test_notes_are_printed_once():
    out = io.StringIO()
    with LiveView("task", console=Console(file=out, width=80)) as view:
        for _ in range(3):
            view.show(status(notes=("the callback failed",)))
    assert out.getvalue().count("task, seed 0: the callback failed") == 1


def test_a_task_reports_steps_within_an_episode():
    seen = []
    task = CountingEnv(Corridor(5), seen.append, every=0.0)
    for _ in range(2):
        task.reset(seed=0)
        for _ in range(3):
            task.step(1)
    assert seen == [1, 2, 3, 1, 2, 3]
    assert task.action_space.n == 2  # the rest is the task's own
    quiet = CountingEnv(Corridor(5), lambda steps: pytest.fail("too early"), every=1e9)
    quiet.reset(seed=0)
    quiet.step(1)
    assert quiet.steps == 1


def test_a_run_reports_within_an_episode(tmp_path, monkeypatch):
    monkeypatch.setattr(one_run, "REPORT_WITHIN", 0.0)
    config = TrainingConfig("CartPole-v1", learners=("random",), episodes=1, tensorboard=False)
    statuses = []
    plan = plan_of_config(config)
    one_run.train_seed(plan, 0, tmp_path, saving=save_options(config), report=statuses.append)
    within = [each for each in statuses if each.current]
    assert (
        [each.steps for each in within]
        == [each.current for each in within]
        == list(range(1, len(within) + 1))
    )
    assert {(each.episodes, each.learner) for each in within} == {(0, "random")}
    assert (statuses[-1].current, statuses[-1].steps) == (0, len(within))


def metered(speed_at, *, until, steps=60_000):
    """A meter at a time, of a run that makes `speed_at(steps)` steps per second."""
    meter = SpeedMeter(100.0, steps=0, progress=0.0)
    done = 0.0
    now = 0.0
    while now < until:
        now += 0.25
        done += 0.25 * speed_at(done)
        meter.add(100.0 + now, steps=int(done), progress=done / steps)
    return meter


def test_the_remaining_time_is_unknown_at_first():
    assert metered(lambda done: 1000, until=4).left != metered(lambda done: 1000, until=4).left
    assert metered(lambda done: 1000, until=5).left == pytest.approx(55)
    # 0.5 % of the budget
    assert metered(lambda done: 10, until=30).left != metered(lambda done: 10, until=30).left
    assert metered(lambda done: 10, until=60).left == pytest.approx(5940)


def test_the_estimate_forgets_a_fast_start():
    """5,000 steps without updates at 20,000 steps per second, then 300 per second.

    The mean speed would be twice as high.
    """
    meter = metered(lambda done: 20_000 if done < 5_000 else 300, until=20)
    assert meter.speed == pytest.approx(300, rel=0.02)
    assert meter.left == pytest.approx((60_000 - 5_000 - 20 * 300) / 300, rel=0.05)


def test_the_meter_stays_small():
    assert len(metered(lambda done: 1, until=3000)._samples) < 300
