"""Sweeps and trainings on two nodes give the results of this machine, also after kills."""

import signal
import sys
import threading

import pytest

from cluster.folders import DIALOGUE, GRIDWORLD, LONG_TRAIN, TRAIN, same_parts, same_runs
from cluster.recording import Recording
from esbas.cli import main
from esbas.training.display.status import Status
from esbas.training.runs.clock import read_clock
from esbas.training.runs.remote import RunUpdate
from processes import WAIT, wait_until

RECORDING = "--engine", "cluster.recording:Recording", "--jobs", "2"


@pytest.mark.parametrize("command", [GRIDWORLD, DIALOGUE], ids=lambda command: command[1])
def test_sweeps(cluster, tmp_path, command):
    assert main([*command, "--out", str(tmp_path / "local")]) == 0
    Recording.gate = tmp_path / "gate"
    opening = threading.Thread(target=open_when_both_wait, args=(lambda: None,))
    opening.start()
    assert main([*command, *RECORDING, "--out", str(tmp_path / "ray")]) == 0
    opening.join()
    same_parts(tmp_path / "local", tmp_path / "ray")
    assert len(set(Recording.nodes.values())) == 2


def test_a_node_that_is_killed_in_the_middle_of_a_sweep(cluster, tmp_path):
    assert main([*GRIDWORLD, "--out", str(tmp_path / "local")]) == 0
    Recording.gate = tmp_path / "gate"
    second = cluster.second.node_id
    killing = threading.Thread(target=open_when_both_wait, args=(cluster.kill_second,))
    killing.start()
    assert main([*GRIDWORLD, *RECORDING, "--out", str(tmp_path / "ray")]) == 0
    killing.join()
    same_parts(tmp_path / "local", tmp_path / "ray")
    assert second not in Recording.nodes.values()


def open_when_both_wait(before):
    wait_until(lambda: len(set(Recording.waiting().values())) == 2, "a job on each node")
    before()
    Recording.gate.touch()


def test_a_training(cluster, tmp_path):
    assert main([*TRAIN, "--out", str(tmp_path / "local")]) == 0
    # otherwise, one node may take both runs while the other one is still starting
    Recording.gate = tmp_path / "gate"
    opening = threading.Thread(target=open_when_both_wait, args=(lambda: None,))
    opening.start()
    assert main([*TRAIN, *RECORDING, "--out", str(tmp_path / "ray")]) == 0
    opening.join()
    same_runs(tmp_path / "local", tmp_path / "ray")
    assert len(set(Recording.nodes.values())) == 2


def test_a_node_that_is_killed_in_the_middle_of_a_training(cluster, tmp_path):
    assert main([*LONG_TRAIN, "--out", str(tmp_path / "local")]) == 0
    Recording.gate = tmp_path / "gate"
    second = cluster.second.node_id
    after = []
    killed = []

    def receive(name, message):
        if (
            isinstance(message, RunUpdate)
            and not killed
            and Recording.waiting()[name] == second
            and "clock.json" in message.names
        ):
            killed.extend(
                [name, read_clock(tmp_path / "ray" / "runs" / f"seed-{message.seed}").episodes]
            )
            cluster.kill_second()
        elif isinstance(message, Status) and killed and name == killed[0]:
            after.append(message.episodes)

    Recording.on_message = receive
    opening = threading.Thread(target=open_when_both_wait, args=(lambda: None,))
    opening.start()
    assert main([*LONG_TRAIN, *RECORDING, "--out", str(tmp_path / "ray")]) == 0
    opening.join()
    same_runs(tmp_path / "local", tmp_path / "ray")
    assert killed
    assert 1 <= killed[1] <= min(after)  # it continued from the checkpoint
    assert second not in Recording.nodes.values()


def test_a_killed_driver_of_a_training_continues(cluster, tmp_path, launch):
    folder = tmp_path / "ray"
    command = [*LONG_TRAIN, "--engine", cluster.engine, "--jobs", "2", "--out", str(folder)]
    assert main([*LONG_TRAIN, "--out", str(tmp_path / "local")]) == 0
    driver = launch([sys.executable, "-m", "esbas", *command], tmp_path / "log")
    clocks = [folder / "runs" / f"seed-{seed}" for seed in (0, 1)]
    wait_until(
        lambda: all(read_clock(each) for each in clocks) or driver.poll() is not None,
        "a checkpoint of both seeds",
    )
    driver.kill()
    driver.wait()
    assert not all(read_clock(each).finished for each in clocks)
    assert main(command) == 0
    same_runs(tmp_path / "local", folder)


KILLED = """
import os, signal, sys
from esbas.cli import main
from esbas.reporting import Results

store = Results.store_part

def store_and_die(*arguments):
    store(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

Results.store_part = store_and_die
main(sys.argv[1:])
"""


def test_a_killed_driver_of_a_sweep_continues(cluster, tmp_path, launch):
    folder = tmp_path / "ray"
    command = [*GRIDWORLD, "--jobs", "2", "--out", str(folder)]
    assert main([*GRIDWORLD, "--out", str(tmp_path / "local")]) == 0
    driver = launch(
        [sys.executable, "-c", KILLED, *command, "--engine", cluster.engine], tmp_path / "log"
    )
    assert driver.wait(WAIT) == -signal.SIGKILL
    (stored,) = folder.glob("parts/*.npz")
    assert main([*command, *RECORDING[:2]]) == 0
    assert len(Recording.nodes) > 1
    assert stored.stem not in Recording.nodes
    same_parts(tmp_path / "local", folder)
