"""Methods that another program has measured, in the tables of `esbas reproduce control`."""

import json

import pytest

from esbas import cli
from esbas.experiments.control.external import facts, read_runs, write_runs
from esbas.experiments.control.figures import curve_figure
from esbas.experiments.control.protocol import read_protocol
from experiments.tiny_protocol import TEXT


@pytest.fixture
def protocol(tmp_path):
    path = tmp_path / "protocol.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def measured(tmp_path, protocol):
    """The file of a method on the task Rooms."""
    path = tmp_path / "rooms.json"
    own = read_protocol(protocol)
    runs = [
        {"curve": [float(number)] * 10, "final": 2.0, "steps": 1500, "episodes": 12, "cpu": 0.5}
        for number in range(3)
    ]
    write_runs(path, "other-program", facts(own.tasks["Rooms"], own, 0), runs)
    return path


def reproduce(protocol, out, *words):
    folders = ["--protocol-file", str(protocol), "--out", str(out)]
    chosen = ["--tasks", "Rooms", "--methods", "uniform", "--seeds", "2"]
    return cli.main(["reproduce", "control", *folders, *chosen, "--jobs", "1", *words])


def test_external_methods_are_added_to_a_folder(tmp_path, protocol, measured, capsys, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("esbas.experiments.control.report.publish", lambda *_: None)
        assert reproduce(protocol, out) == 0
    labels = []

    def labeled(*arguments):
        figure = curve_figure(*arguments)
        if figure is not None:
            for axes in figure.axes:
                labels.extend(line.get_label() for line in axes.lines)

    monkeypatch.setattr("esbas.experiments.control.report.curve_figure", labeled)
    for figure in ("aggregate_figure", "cost_figure"):  # they take time
        monkeypatch.setattr(f"esbas.experiments.control.report.{figure}", lambda *_: None)
    before = {path.name for path in (out / "parts").iterdir()}
    assert reproduce(protocol, out, "--external", str(measured)) == 0
    assert {path.name for path in (out / "parts").iterdir()} == before
    assert "other-program" in capsys.readouterr().out
    assert "other-program" in labels
    found = json.loads((out / "summary.json").read_text())["tasks"]["Rooms"]
    scale = found["best_member_return"] - found["random"]
    score = found["methods"]["other-program"]["score"]
    final = found["methods"]["other-program"]["final"]
    assert score["seeds"] == 2  # the third run is not used
    assert score["iqm"] == pytest.approx((0.5 - found["random"]) / scale)
    assert final["low"] == final["high"]
    assert "Rooms,confirmatory,True,other-program,external," in (out / "scores.csv").read_text()
    assert "Rooms,other-program,0.5," in (out / "cost.csv").read_text()
    assert "other-program" not in (out / "learners.csv").read_text()
    assert json.loads((out / "config.json").read_text())["config"]["external"] == [str(measured)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content["task"].update(steps=500),
            "must be 1500, as in the task of the protocol, but got 500: measure it again.",
        ),
        (
            lambda content: content["task"].update(env="Taxi-v4"),
            "FourRooms(max_episode_steps=50)', as in the task of the protocol, but got 'Taxi-v4':",
        ),
        (
            lambda content: content["task"].update(seed=7),
            "must be 0, as in the task of the protocol, but got 7: measure it again.",
        ),
        (
            lambda content: content["task"].update(name="Room"),
            "There is no chosen task named 'Room': did you mean 'Rooms'?",
        ),
        (lambda content: content["task"].update(name="Shop"), "add it to --tasks, or leave out"),
        (
            lambda content: content["runs"].__delitem__(slice(1, None)),
            "must have at least 2 runs, but got 1: finish it, or use fewer `--seeds`.",
        ),
        (
            lambda content: content["runs"][1]["curve"].pop(),
            "must have 10 values, one for each bin, but got 9: measure it again.",
        ),
        (lambda content: content["runs"][0].update(final=None), "at `runs[0].final`, but got None"),
        (
            lambda content: content.update(method="ssbas"),
            "a name that no other method has, of letters, digits and dashes, but got 'ssbas'",
        ),
        (
            lambda content: content.update(method="[b]$x$"),
            "of letters, digits and dashes, but got '[b]$x$'",
        ),
        (lambda content: content["runs"][0].update(steps=0), "at `runs[0].steps`, but got 0"),
        (
            lambda content: content["runs"][0]["curve"].__setitem__(3, 1e300),
            "at `runs[0].curve[3]`, but got 1e+300",
        ),
        (lambda content: content.clear(), "must have the keys method, task, runs"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence(
    tmp_path, protocol, measured, capsys, change, message
):
    content = json.loads(measured.read_text())
    change(content)
    measured.write_text(json.dumps(content))
    assert reproduce(protocol, tmp_path / "out", "--external", str(measured)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_one_method_has_one_file_for_each_task(tmp_path, protocol, measured, capsys):
    assert reproduce(protocol, tmp_path / "out", "--external", str(measured), str(measured)) == 2
    assert "digits and dashes, but got 'other-program'" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 5000])
def test_a_file_that_is_not_json_is_one_sentence(tmp_path, protocol, capsys, content):
    path = tmp_path / "runs.json"
    path.write_bytes(content)
    assert reproduce(protocol, tmp_path / "out", "--external", str(path)) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_runs_are_read_back_and_a_new_file_has_none(tmp_path, protocol, measured):
    own = read_protocol(protocol)
    expected = facts(own.tasks["Rooms"], own, 0)
    assert [run["curve"][0] for run in read_runs(measured, expected)] == [0, 1, 2]
    assert read_runs(tmp_path / "new.json", expected, missing_ok=True) == []
