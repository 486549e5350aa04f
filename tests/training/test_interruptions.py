"""Trainings that are stopped or killed, in processes that the tests start and stop."""

import os
import signal
import sys
import time

import numpy as np
import pytest

from esbas import cli
from esbas._internal import archive
from esbas.errors import TrainingError
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.lock import locked
from processes import PAUSE, WAIT
from training.programs import FOREIGN, OWN, assert_same, numbers, words


@pytest.fixture
def start(launch):
    """Start the program. Its output goes to the file `log`."""
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from esbas.cli import program; program()"
    return lambda arguments, log: launch([sys.executable, "-c", code, *arguments], log)


def wait_for_rows(out, count, process, seed=0):
    path = out / "runs" / f"seed-{seed}" / "checkpoint.npz"
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if process.poll() is not None:
            return
        try:
            if archive.read(path, "run")["number"] >= count:
                return
        except ValueError:  # not written yet
            pass
        time.sleep(PAUSE)
    pytest.fail(f"no checkpoint after {WAIT} s")


KILLED = [  # learners, steps, episodes after which they are killed
    pytest.param(OWN, 3000, (2, 8), id="own DQN"),
    pytest.param(FOREIGN, 450, (2,), id="Stable-Baselines3", marks=pytest.mark.services),
]


@pytest.mark.parametrize(("learners", "steps", "kills"), KILLED)
def test_a_training_killed_at_any_moment_resumes_with_the_same_results(
    start, tmp_path, learners, steps, kills
):
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    assert cli.main(words(whole, "--no-tensorboard", learners=learners, steps=steps)) == 0
    saving = ["--no-tensorboard", "--checkpoint-every", "0"]
    rng = np.random.default_rng()
    killed = 0
    log = tmp_path / "log"
    process = start(words(broken, *saving, learners=learners, steps=steps), log)
    for count in kills:
        wait_for_rows(broken, count, process)
        time.sleep(rng.uniform(0, 0.1))  # at any moment: during a step, an episode or a checkpoint
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        process = start(["resume", str(broken), *saving], log)
    assert process.wait(WAIT) == 0, log.read_text()
    assert killed == len(kills)
    assert_same(numbers(whole), numbers(broken))


def test_torn_and_later_rows_are_dropped(start, tmp_path):
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    assert cli.main(words(whole, "--no-tensorboard", steps=3000)) == 0
    process = start(
        words(broken, "--checkpoint-every", "0", "--no-tensorboard", steps=3000), tmp_path / "log"
    )
    wait_for_rows(broken, 1, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    directory = broken / "runs" / "seed-0"
    with (directory / "episodes.csv").open("a") as file:
        file.write("999,99999,random,1.0,1,0,1,0\n1000,2")
    assert cli.main(["resume", str(broken), "--no-tensorboard"]) == 0
    assert_same(numbers(whole), numbers(broken))


def test_ctrl_c_loses_nothing(start, tmp_path):
    whole = tmp_path / "whole"
    stopped = tmp_path / "stopped"
    assert cli.main(words(whole, "--no-tensorboard", steps=20_000)) == 0
    process = start(
        words(stopped, "--no-tensorboard", "--checkpoint-every", "0.1", steps=20_000),
        tmp_path / "log",
    )
    wait_for_rows(stopped, 3, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT) == 130
    assert "stopped; the same command continues" in (tmp_path / "log").read_text()
    played = len(read_episodes(stopped / "runs" / "seed-0"))
    assert (
        3 <= played == archive.read(stopped / "runs" / "seed-0" / "checkpoint.npz", "run")["number"]
    )
    assert (stopped / "report.html").exists()
    assert cli.main(words(stopped, "--no-tensorboard", steps=20_000)) == 0
    assert_same(numbers(whole), numbers(stopped))


def test_tensorboard_hides_repeated_episodes(start, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "it"
    process = start(words(out, "--checkpoint-every", "0.1", steps=10_000), tmp_path / "log")
    wait_for_rows(out, 1, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    time.sleep(1.1)  # TensorBoard distinguishes files by the second of their creation
    assert cli.main(["resume", str(out)]) == 0
    logs = EventAccumulator(str(out / "runs" / "seed-0" / "tensorboard"))
    logs.Reload()
    episodes = read_episodes(out / "runs" / "seed-0")
    values = {event.step: event.value for event in logs.Scalars("episode/value")}
    steps = [event.step for event in logs.Scalars("episode/value")]
    assert len(steps) == len(set(steps))
    assert set(steps) <= set(episodes.steps.tolist())
    assert steps[-1] == episodes.steps[-1]
    assert values[steps[-1]] == episodes.values[-1]


def test_one_process_at_a_time_trains_a_run(start, tmp_path, capsys):
    out = tmp_path / "it"
    command = words(
        out, "--no-tensorboard", "--checkpoint-every", "0", learners=["random"], steps=10**9
    )
    process = start(command, tmp_path / "log")
    wait_for_rows(out, 1, process)
    assert cli.main(["resume", str(out), "--no-tensorboard"]) == 2
    assert "A run is trained by one process at a time" in capsys.readouterr().err
    process.terminate()  # the signal of cluster schedulers; handled like Ctrl-C
    assert process.wait(WAIT) == 130
    played = len(read_episodes(out / "runs" / "seed-0"))
    assert played == archive.read(out / "runs" / "seed-0" / "checkpoint.npz", "run")["number"]


AT_ONCE = "--no-tensorboard", "--checkpoint-every", "0", "--seeds", "0", "1", "--jobs", "2"


def wait_until_released(directory):
    """Wait until no process trains in this folder."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            with locked(directory):
                return
        except TrainingError:
            time.sleep(PAUSE)
    pytest.fail("a run continues without its parent")


def test_runs_save_and_end_when_their_parent_is_killed(start, tmp_path):
    out = tmp_path / "it"
    process = start(words(out, *AT_ONCE, learners=["random"], steps=10**9), tmp_path / "log")
    wait_for_rows(out, 1, process)
    process.kill()
    process.wait()
    directories = [out / "runs" / f"seed-{seed}" for seed in (0, 1)]
    for directory in directories:
        directory.mkdir(exist_ok=True)  # the second run may not have started
        wait_until_released(directory)
    played = len(read_episodes(directories[0]))
    assert played == archive.read(directories[0] / "checkpoint.npz", "run")["number"]


def test_ctrl_c_stops_runs_in_processes_after_a_checkpoint(start, tmp_path):
    out = tmp_path / "it"
    process = start(words(out, *AT_ONCE, learners=["random"], steps=10**9), tmp_path / "log")
    for seed in (0, 1):
        wait_for_rows(out, 1, process, seed=seed)
    os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C in a terminal
    assert process.wait(WAIT) == 130, (tmp_path / "log").read_text()
    for seed in (0, 1):
        directory = out / "runs" / f"seed-{seed}"
        assert (
            len(read_episodes(directory))
            == archive.read(directory / "checkpoint.npz", "run")["number"]
        )
    assert (tmp_path / "log").read_text().count("stopping after this episode") == 1
    assert (out / "report.html").exists()
