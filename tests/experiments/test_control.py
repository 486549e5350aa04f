"""`esbas reproduce control` with a tiny protocol: results, continuation, extension, any jobs."""

import csv
import json
import warnings

import numpy as np
import pytest

from esbas import cli
from esbas.experiments.control import Control
from esbas.experiments.control.protocol import CONFIRMATORY, KINDS, read_protocol
from esbas.experiments.control.setup import check_methods, methods_of
from esbas.training import make_env
from experiments.tiny_protocol import TEXT


@pytest.fixture
def protocol(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(TEXT)
    return path


def reproduce(protocol, out, *words):
    folders = ["--protocol-file", str(protocol), "--out", str(out)]
    return cli.main(["reproduce", "control", *folders, "--jobs", "1", *words])


def parts(folder):
    """Return all stored arrays except CPU times."""
    found = {}
    for path in sorted((folder / "parts").iterdir()):
        found[path.name] = dict(np.load(path))
        found[path.name].pop("cpu", None)
    return found


def test_the_whole_command_and_its_continuation(tmp_path, protocol, capsys, monkeypatch):
    out = tmp_path / "out"
    assert reproduce(protocol, out) == 0
    printed = capsys.readouterr().out
    assert "kalman-thompson, above chance on most tasks" in printed
    assert {path.name for path in out.iterdir()} >= {
        "summary.json",
        "scores.csv",
        "tasks.csv",
        "aggregate.csv",
        "cost.csv",
        "learners.csv",
        "report.html",
        "parts",
        "aggregate.png",
        "cost.png",
        "curves-confirmatory.png",
        "curves-development.svg",
    }
    summary = json.loads((out / "summary.json").read_text())
    rooms = summary["tasks"]["Rooms"]
    assert rooms["kind"] == "confirmatory"
    assert set(rooms["methods"]) >= {
        "kalman-thompson",
        "uniform",
        "ssbas",
        "uniform-without-bad",
        "successive-halving",
        "uniform-then-commit",
        "alone:rate 0.5",
        "fixed:rate 0.5",
        "majority-vote",
        "mean-q",
        "best learner alone",
    }
    score = rooms["methods"]["kalman-thompson"]["score"]
    assert set(score) == {"iqm", "low", "high", "seeds"}
    assert score["low"] <= score["iqm"] <= score["high"]
    assert score["seeds"] == 3
    assert rooms["methods"]["best learner alone"]["score"]["iqm"] == pytest.approx(1)
    assert rooms["methods"][f"alone:{rooms['best_member']}"]["score"]["iqm"] == pytest.approx(1)
    assert rooms["methods"]["majority-vote"]["score"] is None
    assert rooms["methods"]["majority-vote"]["final"]["seeds"] == 3
    assert 0 <= rooms["methods"]["kalman-thompson"]["probability_of_improvement"]["uniform"] <= 1
    assert len(summary["verdicts"]) == 4
    rows = list(csv.DictReader((out / "scores.csv").read_text().splitlines()))
    assert {row["task"] for row in rows} == {"Rooms", "Shop"}

    before = (out / "summary.json").read_bytes()
    stamps = {path: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    lost = next(path for path in stamps if path.name.startswith("Rooms-ssbas-2-2"))
    lost.unlink()
    # They take time.
    for figure in ("aggregate_figure", "cost_figure", "curve_figure", "passive_figure"):
        monkeypatch.setattr(f"esbas.experiments.control.report.{figure}", lambda *_: None)
    assert reproduce(protocol, out) == 0
    assert {path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp} == {lost}
    assert (out / "summary.json").read_bytes() == before


def test_verdicts_can_be_about_another_selector(tmp_path, protocol, capsys):
    out = tmp_path / "out"
    words = ("--tasks", "Rooms", "--methods", "kalman-thompson", "--seeds", "2")
    assert reproduce(protocol, out, *words) == 0
    assert reproduce(protocol, out, *words, "--about", "ssbas") == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["recommended"] == "ssbas"
    assert {"kalman-thompson", "ssbas"} <= set(summary["tasks"]["Rooms"]["methods"])
    assert "ssbas, above chance on most tasks" in capsys.readouterr().out
    assert reproduce(protocol, tmp_path / "no", "--about", "sbas") == 2
    assert "There is no selector named 'sbas'" in capsys.readouterr().err


def test_cells_are_added_to_a_folder_and_do_not_depend_on_jobs(tmp_path, protocol, monkeypatch):
    # Figures take time.
    monkeypatch.setattr("esbas.experiments.control.report.publish", lambda *_: None)
    first = tmp_path / "first"
    both = tmp_path / "both"
    words = ["--seeds", "2", "--tasks", "Rooms", "--methods", "kalman-thompson"]
    assert reproduce(protocol, first, *words) == 0
    small = parts(first)
    assert {name.rpartition("-")[0] for name in small} == {
        "Rooms-random",
        "Rooms-kalman_thompson-0-1",
        "Rooms-uniform-0-1",
        "Rooms-alone_rate_0.5-0-1",
        "Rooms-alone_rate_0.1-0-1",
        "Rooms-alone_rate_0.001-0-1",
    }
    words = ["--seeds", "2", "--tasks", "Rooms", "Shop", "--methods", "ssbas"]
    assert reproduce(protocol, first, *words) == 0
    assert "earlier" in json.loads((first / "config.json").read_text())
    words = ["--seeds", "2", "--tasks", "Shop", "Rooms", "--methods", "kalman-thompson", "ssbas"]
    words += ["--jobs", "2", "--engine", "processes"]
    assert reproduce(protocol, both, *words) == 0
    extended = parts(first)
    together = parts(both)
    assert small.keys() < extended.keys()
    np.testing.assert_equal({name: together[name] for name in extended}, extended)


def test_another_seed_or_protocol_is_not_mixed_in(tmp_path, protocol, capsys, monkeypatch):
    monkeypatch.setattr("esbas.experiments.control.report.publish", lambda *_: None)
    out = tmp_path / "out"
    words = ("--tasks", "Shop", "--methods", "uniform", "--seeds", "1")
    assert reproduce(protocol, out, *words) == 0
    names = {path.name for path in (out / "parts").iterdir()}
    assert reproduce(protocol, out, *words, "--seed", "1") == 2
    assert "seed=0, but this is seed=1" in capsys.readouterr().err
    protocol.write_text(TEXT.replace("steps = 600", "steps = 500"))
    assert reproduce(protocol, out, *words) == 0
    assert names.isdisjoint({path.name for path in (out / "parts").iterdir()} - names)
    assert len({path.name for path in (out / "parts").iterdir()}) == 2 * len(names)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tasks", "Room"], "There is no task named 'Room': did you mean 'Rooms'?"),
        (["--methods", "ssbs"], "There is no method named 'ssbs': did you mean 'ssbas'?"),
        (["--tasks", "Missing"], "the task Missing"),
        (["--runs", "-1"], "`runs` must be at least 0, but got -1."),
    ],
)
def test_wrong_options_are_refused_before_a_folder_is_created(
    tmp_path, protocol, capsys, words, message
):
    assert reproduce(protocol, tmp_path / "out", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'portfolio = "network"',
            'portfolio = "networks"',
            "There is no portfolio named 'networks'",
        ),
        ('kind = "ablation"', 'kind = "other"', "There is no kind of task named 'other'"),
        ('bad = "rate 0.001"', 'bad = "rate 1"', "named 'rate 1'"),
        (
            'recommended = "kalman-thompson"',
            'recommended = "kalman"',
            "There is no selector named 'kalman'",
        ),
        ("bins = 10", "bins = 0", "bins"),
        ("steps = 600", "steps = 'many'", "steps"),
        ('name = "Shop"', 'name = "Rooms"', "Tasks must have different names"),
        ('name = "Shop"', 'name = "../Shop"', "letters, digits and dashes"),
        ("[quick]", "[quick", "valid TOML"),
    ],
)
def test_a_wrong_protocol_is_one_sentence(tmp_path, protocol, capsys, old, new, message):
    assert old in TEXT
    protocol.write_text(TEXT.replace(old, new))
    assert reproduce(protocol, tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_quick_look_is_shorter(protocol):
    options = Control(quick=True, protocol_file=protocol)
    (task,) = options.chosen_tasks
    assert (task.name, task.steps, options.seeds_of(task)) == ("Rooms", 750, 2)
    assert set(options.chosen_methods(task)) == {
        "kalman-thompson",
        "uniform",
        "alone:rate 0.5",
        "alone:rate 0.1",
        "alone:rate 0.001",
    }


def test_the_protocol_of_the_package_is_balanced():
    protocol = read_protocol()
    assert protocol.bins == 50
    assert protocol.seeds >= 20
    assert {task.kind for task in protocol.tasks.values()} == set(KINDS)
    confirmatory = [protocol.tasks[name] for name in protocol.of_kind(CONFIRMATORY)]
    assert len(confirmatory) == 10
    for task in confirmatory:
        learners = task.portfolio.learners
        assert task.threshold is not None
        assert 4 <= len(learners) <= 6
        assert task.portfolio.bad in [learner["name"] for learner in learners]
        explorations = {str([each.get("epsilon"), each.get("action_noise")]) for each in learners}
        assert len(explorations) == 1
    methods = set(methods_of(protocol.tasks["LunarLander"], protocol))
    assert {
        "kalman-thompson",
        "uniform",
        "uniform-without-bad",
        "ssbas",
        "esbas",
        "window-thompson",
        "agent57",
    } < methods
    assert {
        "d3rb",
        "ed2rb",
        "successive-halving",
        "uniform-then-commit",
        "more-updates",
        "rl-zoo",
        "mean-q",
    } < methods
    assert set(protocol.quick["tasks"]) <= set(protocol.tasks)


@pytest.mark.parametrize("name", read_protocol().of_kind(*KINDS))
def test_the_tasks_of_the_package_exist(name):
    protocol = read_protocol()
    task = protocol.tasks[name]
    task.portfolio.check()
    check_methods(task.methods or (), methods_of(task, protocol))
    # MinAtar, MiniGrid and Box2D warn when they are imported.
    with warnings.catch_warnings(action="ignore"):
        env = make_env(task.env, wrappers=task.wrappers)
    env.reset(seed=0)
    assert len(env.step(env.action_space.sample())) == 5
    env.close()
