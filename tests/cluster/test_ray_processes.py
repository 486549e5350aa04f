"""Where Ray's processes listen, and what is left of them."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from cluster.conftest import marked_processes
from cluster.folders import GRIDWORLD, LONG_TRAIN, TRAIN, same_parts, same_runs
from cluster.sockets import addresses
from esbas.cli import main
from esbas.engine import Job, Resources, find_engine
from esbas.training.runs.clock import read_clock
from processes import WAIT, wait_until

OWN = """
import pathlib, sys, time
from esbas.engine import Job, Resources, find_engine

def work(context, folder, number):
    pathlib.Path(folder, str(number)).touch()
    while not pathlib.Path(folder, "end").exists():
        time.sleep(0.05)
    return number * number

if __name__ == "__main__":
    jobs = [Job(str(k), (sys.argv[1], k)) for k in range(2)]
    with find_engine("ray").map(work, jobs, resources=Resources(jobs=2)) as outcomes:
        print(sorted(outcome.result() for outcome in outcomes))
"""


@pytest.fixture
def own(_mark, tmp_path, launch):
    """Start a program with its own Ray, whose two jobs wait for the file `end`.

    Returns the program, and the processes of Ray.
    """
    before = set(marked_processes())
    program = launch([sys.executable, "-c", OWN, str(tmp_path)], tmp_path / "log")
    wait_until(
        lambda: all((tmp_path / str(k)).exists() for k in range(2)) or program.poll() is not None,
        "the start of both jobs",
    )
    return program, lambda: set(marked_processes()) - before - {program.pid}


def test_ray_on_this_machine_is_visible_to_it_alone_and_ends_with_the_program(own, tmp_path):
    program, started = own
    found = addresses(started())
    assert found
    assert all(address.is_loopback for address in found), found
    (tmp_path / "end").touch()
    assert program.wait(WAIT) == 0
    assert (tmp_path / "log").read_text().endswith("[0, 1]\n")
    wait_until(lambda: not started(), "the end of all processes")


def test_ray_on_this_machine_ends_with_a_program_that_is_killed(own):
    program, started = own
    assert len(started()) > 3
    program.kill()
    program.wait()
    wait_until(lambda: not started(), "the end of all processes")


def test_the_cluster_of_the_tests_is_on_this_machine_alone(cluster):
    found = addresses(marked_processes())
    assert found
    assert all(address.is_loopback for address in found), found


def test_ctrl_c_stops_a_training_after_a_checkpoint(cluster, tmp_path, launch):
    folder = tmp_path / "ray"
    log = tmp_path / "log"
    command = [*LONG_TRAIN, "--engine", cluster.engine, "--jobs", "2", "--out", str(folder)]
    driver = launch([sys.executable, "-m", "esbas", *command], log)
    runs = [folder / "runs" / f"seed-{seed}" for seed in (0, 1)]
    wait_until(
        lambda: all(read_clock(each) for each in runs) or driver.poll() is not None,
        "a checkpoint of both seeds",
    )
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: to all processes
    assert driver.wait(WAIT) == 130
    assert "Traceback" not in log.read_text()
    episodes = [len((each / "episodes.csv").read_text().splitlines()) - 1 for each in runs]
    # the last episode before the stop is in the checkpoint
    assert [read_clock(each).episodes for each in runs] == episodes
    assert not all(read_clock(each).finished for each in runs)
    assert (
        main(["resume", str(folder), "--engine", cluster.engine, "--jobs", "2", "--no-tensorboard"])
        == 0
    )
    assert main([*LONG_TRAIN, "--out", str(tmp_path / "local")]) == 0
    same_runs(tmp_path / "local", folder)


def test_ctrl_c_stops_a_sweep(cluster, tmp_path, launch):
    folder = tmp_path / "ray"
    log = tmp_path / "log"
    command = [
        *GRIDWORLD[:-1],
        "100000000",
        "--engine",
        cluster.engine,
        "--jobs",
        "2",
        "--out",
        str(folder),
    ]
    driver = launch([sys.executable, "-m", "esbas", *command], log)
    wait_until(lambda: (folder / "config.json").exists() or driver.poll() is not None, "the start")
    time.sleep(3)
    assert interrupted(driver) == 130
    assert "Traceback" not in log.read_text()
    with find_engine(cluster.engine).map(
        quick, [Job("a"), Job("b")], resources=Resources(jobs=2)
    ) as found:
        # both CPUs are free again
        assert [outcome.result() for outcome in found] == ["done", "done"]


def interrupted(driver):
    """Return the exit code after Ctrl-C, several times if necessary.

    Ray may lose a signal while the driver connects to the cluster.
    """
    for _ in range(4):
        os.killpg(driver.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return driver.wait(WAIT / 5)
    return driver.poll()


def quick(context):
    return "done"


# Ray leaves log files open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_mark")
def test_a_driver_outside_the_cluster(tmp_path, launch):
    from ray.cluster_utils import Cluster

    from cluster.conftest import OPTIONS

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cluster = Cluster(
        initialize_head=True, head_node_args={**OPTIONS, "ray_client_server_port": port}
    )
    try:
        for k, command in enumerate((GRIDWORLD, TRAIN)):
            remote = [
                *command,
                "--engine",
                f"ray://127.0.0.1:{port}",
                "--jobs",
                "2",
                "--out",
                str(tmp_path / f"ray{k}"),
            ]
            driver = launch([sys.executable, "-m", "esbas", *remote], tmp_path / "log")
            assert driver.wait(WAIT) == 0, (tmp_path / "log").read_text()
            assert main([*command, "--out", str(tmp_path / f"local{k}")]) == 0
    finally:
        cluster.shutdown()
    same_parts(tmp_path / "local0", tmp_path / "ray0")
    same_runs(tmp_path / "local1", tmp_path / "ray1")


@pytest.mark.usefixtures("_mark")
def test_a_cluster_that_was_started_by_ray_start(tmp_path, launch):
    options = [
        "--head",
        "--port=0",
        "--num-cpus=1",
        "--include-dashboard=false",
        "--object-store-memory=200000000",
        "--block",
    ]
    head = launch(
        [sys.executable, "-m", "ray.scripts.scripts", "start", *options], tmp_path / "head"
    )
    try:
        wait_until(
            lambda: "block forever" in (tmp_path / "head").read_text() or head.poll() is not None,
            "the start",
        )
        command = [*TRAIN, "--engine", "ray:auto", "--out", str(tmp_path / "ray")]
        driver = launch([sys.executable, "-m", "esbas", *command], tmp_path / "log")
        assert driver.wait(WAIT) == 0, (tmp_path / "log").read_text()
    finally:
        head.terminate()  # ends the processes of this node alone, unlike `ray stop`
        head.wait(WAIT)
    assert main([*TRAIN, "--out", str(tmp_path / "local")]) == 0
    same_runs(tmp_path / "local", tmp_path / "ray")
