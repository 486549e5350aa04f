"""`esbas reproduce qbert` at sizes that take minutes.

It is interrupted, has several processes and runs, and uses a profile.
"""

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from esbas._internal import archive
from esbas.cli import main
from esbas.experiments.qbert.profiles import LAPTOP
from esbas.experiments.qbert.setup import LEARNERS
from processes import WAIT, wait_until

pytestmark = pytest.mark.slow
LOGS = "episodes.csv", "evaluations.csv", "faults.csv"


def words(out: Path, *more: str) -> list[str]:
    small = ["--game", "klax", "--action-repeat", "60", "--memory", "300", "--no-tensorboard"]
    return ["reproduce", "qbert", *small, *more, "--out", str(out)]


def logs(out: Path) -> dict[str, str]:
    found = {
        str(path.relative_to(out)): path.read_text()
        for path in out.rglob("*.csv")
        if path.name in LOGS
    }
    return {name: text for name, text in found.items() if "/runs/" in name}


def stored_episodes(out):
    with suppress(OSError):
        return json.loads((out / "SSBAS" / "runs" / "seed-0" / "clock.json").read_text())[
            "episodes"
        ]
    return 0


def test_a_killed_run_continues_with_the_same_scores_in_any_number_of_processes(launch, tmp_path):
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    log = tmp_path / "log"
    assert main(words(whole, "--steps", "150", "--processes", "1")) == 0
    command = [sys.executable, "-m", "esbas"]
    command += words(broken, "--steps", "150", "--checkpoint-every", "0", "--processes", "2")
    for count in (2, 5):
        process = launch(command, log)
        wait_until(
            lambda process=process, count=count: (
                process.poll() is not None or stored_episodes(broken) >= count
            ),
            f"episode {count}",
        )
        process.kill()
        assert process.wait() == -signal.SIGKILL, log.read_text()
    assert launch(command, log).wait(WAIT) == 0, log.read_text()
    assert logs(broken) == logs(whole)
    names = ("scores.csv", "selection.csv", "evaluations.csv")
    assert [(broken / name).read_text() for name in names] == [
        (whole / name).read_text() for name in names
    ]


def test_networks_alone_and_several_runs(tmp_path, capsys):
    first = words(tmp_path / "out", "--steps", "20", "--runs", "2", "--processes", "1")
    assert main(first) == 0
    selected = logs(tmp_path / "out")
    assert main([*first, "--alone"]) == 0
    assert "SSBAS: finished before." in capsys.readouterr().out
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert list(summary["methods"]) == ["SSBAS", *LEARNERS]
    assert all(
        method["score, last 100 episodes"]["runs"] == 2 for method in summary["methods"].values()
    )
    assert logs(tmp_path / "out").items() > selected.items()
    assert "Intervals and bands are over 2 runs" in (tmp_path / "out" / "report.html").read_text()


def test_the_laptop_profile_learns_from_the_start(tmp_path):
    out = tmp_path / "out"
    assert (
        main(["reproduce", "qbert", "--profile", "laptop", "--steps", "2000", "--out", str(out)])
        == 0
    )
    summary = json.loads((out / "summary.json").read_text())
    assert summary["methods"]["SSBAS"]["agent steps"] >= 2000
    directory = out / "SSBAS" / "runs" / "seed-0"
    assert (directory / "faults.csv").read_text().count("\n") == 1  # the header
    assert list((directory / "tensorboard").iterdir())
    run = archive.read(directory / "checkpoint.npz", "run")
    every = LAPTOP.update_every
    start = LAPTOP.with_options(
        steps=2000, memory=None, action_repeat=None, update_every=None
    ).replay_start
    assert [each["learner"]["network"]["updates"] for each in run["roster"].values()] == [
        run["steps"] // every - start // every
    ] * 6
    assert (out / "figure6.png").stat().st_size > 10_000


def test_the_estimate_of_memory_is_measured_with_a_process_that_trains(tmp_path):
    assert (
        main(
            [
                "reproduce",
                "qbert",
                "--profile",
                "paper",
                "--estimate",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    found = json.loads((tmp_path / "out" / "estimate.json").read_text())
    assert 1e8 < found["rates"]["process"] < 1e9  # bytes: PyTorch, and arrays of one update
    total = next(row["value"] for row in found["estimate"] if row["what"] == "memory in total")
    assert 7.5 < total < 9.5  # GB
