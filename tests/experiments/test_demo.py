import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from esbas import cli
from esbas.errors import InvalidValueError
from esbas.experiments.demo import Demo, account, command, main, task

FILES = ["config.json", "demo.png", "demo.svg", "methods.csv", "parts", "report.html", "summary.json"]


def test_the_demo_from_end_to_end(tmp_path, capsys, monkeypatch):
    out = tmp_path / "demo"
    words = ["demo", "--runs", "2", "--episodes", "40", "--jobs", "1", "--out", str(out)]
    assert cli.main(words) == 0
    output = capsys.readouterr()
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert "SSBAS" in output.out
    assert str(out / "report.html") in output.out.replace("\n", "")
    assert "demo: 16/16" in output.err
    assert "SSBAS chose fast" in output.err
    assert "\x1b" not in output.out + output.err
    summary = json.loads((out / "summary.json").read_text())
    assert set(summary["steps"]) == set(task.METHODS)
    assert sum(summary["shares"]["ESBAS"].values()) == pytest.approx(1)

    monkeypatch.setattr(command, "one_run", lambda *_, **__: pytest.fail("a finished run was run again"))
    before = {name: (out / name).read_bytes() for name in FILES if name != "parts"}
    assert cli.main(words) == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    assert cli.main([*words, "--seed", "1"]) == 2
    assert "seed=0, but this is seed=1: give another --out" in capsys.readouterr().err


def test_results_do_not_depend_on_jobs_but_on_the_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(account, "tell", lambda _, steps, arms: told.append(np.array([*steps.values(), *arms.values()])))
    told: list = []
    for number, options in enumerate([{"jobs": 1}, {"jobs": 2}, {"jobs": 1, "seed": 1}]):
        main(Demo(runs=1, episodes=20, out=tmp_path / str(number), **options))
    np.testing.assert_array_equal(told[0], told[1])
    assert (told[0] != told[2]).any()


def test_an_interrupted_demo_keeps_what_is_finished(tmp_path):
    words = [
        sys.executable,
        "-m",
        "esbas",
        "demo",
        "--runs",
        "500",
        "--episodes",
        "30",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "demo"),
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for _ in range(1200):
            if len(list(tmp_path.glob("demo/parts/*.npz"))) >= 2:
                break
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does: everyone gets it
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("esbas: stopped; the same command continues")
    assert "Traceback" not in err
    assert out == ""
    parts = list(tmp_path.glob("demo/parts/*.npz"))
    assert len(parts) >= 2
    assert all(set(np.load(path).files) == {"steps", "arms"} for path in parts)


@pytest.mark.parametrize("options", [{"runs": 0}, {"episodes": 5}, {"jobs": 0}, {"seed": -1}])
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options):
    with pytest.raises(InvalidValueError, match=next(iter(options))):
        main(Demo(out=tmp_path / "demo", **options))
    assert not (tmp_path / "demo").exists()


def test_the_grid():
    env = task.NoisyGrid(slip=0, noise=0)
    start, _ = env.reset(seed=1)
    assert start in range(8)
    steps = 0
    cell, reward, terminated = start, 0.0, False
    while not terminated:  # east to the border, then south to the goal
        assert reward == 0
        action = 1 if cell % 3 < 2 else 2
        cell, reward, terminated, truncated, _ = env.step(action)
        steps += 1
    assert (cell, reward, truncated) == (8, 1, False)
    assert steps == (2 - start // 3) + (2 - start % 3)
    assert env.reset(seed=1)[0] == start


def test_the_grid_ends_an_episode_in_time():
    env = task.NoisyGrid(slip=0, noise=0)
    while env.reset()[0] > 2:
        pass
    ended = [env.step(0)[2:4] for _ in range(task.TIME_LIMIT)]  # north, against the border
    assert ended[:-1] == [(False, False)] * (task.TIME_LIMIT - 1)
    assert ended[-1] == (False, True)


def test_rewards_are_noisy_and_moves_slip():
    env = task.NoisyGrid()
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(10)]
    assert 0.1 < np.std(rewards) < 1.5
    moves = set()
    for seed in range(200):
        start, _ = env.reset(seed=seed)
        if start == 4:
            moves.add(env.step(0)[0])
    assert moves > {1}
