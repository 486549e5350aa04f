"""The files of the board, and the state of trainings as JSON. tests/browser opens the board."""

import json
import re
from pathlib import Path

import pytest

from esbas import cli
from esbas.reporting import report
from esbas.studies.client import Client
from esbas.studies.server.pages import BOARD
from esbas.studies.server.tokens import TokenFile
from esbas.studies.server.training_files import watch
from esbas.studies.server.training_routes import create_training_app
from studies.server.serving import error_of, path_of, running_app, send, serving
from training.written_runs import write_run, write_training

TOKEN = "a-token-of-the-board"


def test_the_page_and_its_files_need_no_token_but_its_data_do(store, tmp_path):
    (tmp_path / "tokens.toml").write_text(
        f'[[token]]\nname = "board"\nscope = "read"\ntoken = "{TOKEN}"\n'
    )
    with serving(store, tokens=TokenFile(tmp_path / "tokens.toml")) as url:
        page = send(url, "GET", "/")[2].decode()
        paths = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        assert len(paths) == 5
        for path in paths:
            status, headers, _ = send(url, "GET", path)
            assert (status, headers["x-content-type-options"]) == (200, "nosniff")
            assert "default-src 'self'" in headers["content-security-policy"]
        assert error_of(send(url, "GET", "/v1/studies")) == (401, "Unauthorized")
        assert error_of(send(url, "GET", path_of("support", "/overview"))) == (401, "Unauthorized")
        assert (
            send(url, "GET", "/v1/studies", headers={"authorization": f"Bearer {TOKEN}"})[0] == 200
        )


@pytest.mark.parametrize(
    "path",
    ["/static/nothing.js", "/static/", "/static/..%2Fapp.py", "/static/../app.py", "/static/%00"],
)
def test_other_files_are_not_served(path, url):
    assert send(url, "GET", path)[0] == 404


def test_all_files_of_the_board_are_small_and_name_no_other_site():
    own = [path for path in BOARD.iterdir() if path.suffix in (".js", ".css", ".html")]
    assert len(own) > 5
    for path in own:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) < 300, path
        # Neither http:// nor //host
        assert "//" not in re.sub(r"(^|[ {;])// .*", "", text, flags=re.MULTILINE), path


def test_colors_are_those_of_reports():
    light, dark = (
        dict(re.findall(r"(--[\w-]+): (#\w+)", part))
        for part in Path(report.__file__)
        .with_name("report.css")
        .read_text("utf-8")
        .split("* { box-sizing")[0]
        .split("@media")
    )
    found = re.findall(
        r"(--[\w-]+): light-dark\((#\w+), (#\w+)\)", (BOARD / "board.css").read_text("utf-8")
    )
    shared = {name: (one, two) for name, one, two in found if name in light}
    assert set(light) - set(shared) == {"--minor-grid"}
    assert shared == {name: (light[name], dark[name]) for name in shared}


def test_the_log_is_summed_up(url):
    with Client(url) as client:
        study = client.study("summed up", selector="fixed:a", arms=["a", "b"])
        for value in (1.0, 2.0, 4.0):
            study.tell(study.ask(), value)
    status, _, body = send(url, "GET", path_of("summed up", "/overview?parts=2"))
    totals = [{"part": 0, "arm": "a", "asked": 2, "told": 2, "sum": 1.0, "squares": 1.0}]
    totals += [{"part": 1, "arm": "a", "asked": 1, "told": 1, "sum": 3.0, "squares": 9.0}]
    assert status == 200
    assert json.loads(body) == {"last": 6, "width": 2, "origin": 1.0, "totals": totals}
    assert error_of(send(url, "GET", path_of("summed up", "/overview?parts=0"))) == (
        422,
        "InvalidValueError",
    )
    assert error_of(send(url, "GET", path_of("nobody", "/overview"))) == (404, "UnknownNameError")


def test_trainings_are_read_again_when_they_change(tmp_path, monkeypatch):
    monkeypatch.setattr("esbas.studies.server.training_files.PATIENCE", 0)  # at every request
    two = "random", "random(name='other')"
    folder = write_training(tmp_path / "t", [1.0, 3.0, 5.0], [1.0] * 6, learners=two)
    with running_app(create_training_app(watch([folder], trust=False))) as url:
        assert b'content="trainings"' in send(url, "GET", "/")[2]
        (listed,) = json.loads(send(url, "GET", "/v1/trainings")[2])["trainings"]
        assert listed == {"number": 1, "name": "t", "folder": str(folder)}
        first = json.loads(send(url, "GET", "/v1/trainings/1")[2])
        assert (first["env"], first["finished"], first["progress"]) == (
            "CartPole-v1",
            False,
            pytest.approx(0.075),
        )
        steps = first["values"]["steps"]
        mean = dict(zip(first["values"]["steps"], first["values"]["mean"], strict=True))
        assert (steps[0], steps[-1]) == (30, 60)  # half of the episodes of the longer run
        # After step 30, of the longer run alone
        assert (mean[30], mean[31]) == (2.0, 1.0)
        assert first["values"]["low"][-1] is None  # of one run
        assert first["control"]["now"] == {
            "random": pytest.approx((2 / 3 + 2 / 5) / 2),
            "other": pytest.approx((1 / 3 + 3 / 5) / 2),
        }
        own = first["own"]["means"]
        assert (len(own["random"]), max(filter(None, own["random"]))) == (len(steps), 9 / 5)
        assert [each for each in own["other"] if each is not None] == [6 / 4]
        assert [row["steps"] for row in first["last"]] == [60, 50, 40, 30, 30, 20, 20, 10, 10]
        write_run(folder, 0, [1.0, 3.0, 5.0, 7.0], learners=["random", "other"])
        second = json.loads(send(url, "GET", "/v1/trainings/1")[2])
        assert second["version"] > first["version"]
        assert [run["episodes"] for run in second["runs"]] == [4, 6]
        assert error_of(send(url, "GET", "/v1/trainings/2")) == (404, "UnknownNameError")
        assert error_of(send(url, "GET", "/v1/trainings/x")) == (422, "InvalidValueError")
        assert error_of(send(url, "GET", "/v1/trainings/1", headers={"host": "elsewhere"})) == (
            403,
            "Forbidden",
        )
        (folder / "runs" / "seed-0" / "episodes.csv").write_text("garbage\n")
        assert error_of(send(url, "GET", "/v1/trainings/1")) == (503, "SaveFileError")


def test_a_training_without_episodes_is_shown(tmp_path):
    folder = write_training(tmp_path / "t", [])
    (watched,) = watch([folder], trust=False)
    data = watched.data()
    assert (data["runs"], data["arms"], data["progress"], data["best"]) == (
        [],
        {"random": []},
        0,
        None,
    )


def test_the_command_prints_the_address_and_opens_it(tmp_path, monkeypatch, capsys):
    folder = write_training(tmp_path / "t", [1.0])
    served = []
    visited = []
    monkeypatch.setattr(
        "esbas.studies.server.running.run",
        lambda app, listener: served.append((app, listener.getsockname())),
    )
    monkeypatch.setattr("webbrowser.open", visited.append)
    assert cli.main(["board", str(folder), "--port", "0", "--open"]) == 0
    ((app, (host, port)),) = served
    assert (
        capsys.readouterr().out
        == f"Trainings at http://127.0.0.1:{port}, for every program on this machine.\n"
    )
    assert (host, visited) == ("127.0.0.1", [f"http://127.0.0.1:{port}"])
    assert [each.name for each in app.state.trainings] == ["t"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "has no config.json"),
        ([], "No folder is given: name one"),
        (["t", "t/../t"], "Folders must be different, but got 't', 't/../t'"),
        (["t", "--port", "99999"], "`port` must be between 0 and 65535"),
        (["own"], "add --trust"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_training(tmp_path / "t", [1.0])
    write_training(tmp_path / "own", [1.0])
    (tmp_path / "own" / "portfolio.toml").write_text(
        '[[learner]]\nalgorithm = "training.plugins:Steady"\n'
    )
    assert cli.main(["board", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
