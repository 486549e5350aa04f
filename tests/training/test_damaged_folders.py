"""Folders of trainings whose files were damaged: one sentence, and nothing is changed."""

import json
import os
import shutil

import numpy as np
import pytest

from esbas import cli
from esbas.errors import EsbasError, FileError, TrainingError
from esbas.loop import EpisodeRecord
from esbas.reporting import Results
from esbas.roster import Fault
from esbas.training import open_folder
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import RunLog, one_line, read_episodes, read_faults
from esbas.training.runs.lock import locked
from training.programs import assert_same, numbers, words

LEARNERS = ["random(name='one')", "random(name='two')"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished training."""
    out = tmp_path_factory.mktemp("training") / "whole"
    assert cli.main(words(out, "--no-tensorboard", learners=LEARNERS, steps=300)) == 0
    return out


@pytest.fixture
def folder(whole, tmp_path):
    """A copy of it, in which the last clock was not written."""
    out = tmp_path / "it"
    shutil.copytree(whole, out)
    path = out / "runs" / "seed-0" / "clock.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"finished": False}))
    return out


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def with_cell(line, column, text):
    cells = line.split(",")
    return ",".join([*cells[:column], text, *cells[column + 1 :]])


DAMAGES = {
    "a row is missing": lambda lines: lines[:3] + lines[4:],
    "the first row is missing": lambda lines: lines[:1] + lines[2:],
    "the last row is missing": lambda lines: lines[:-1],
    "a row is doubled": lambda lines: lines[:3] + lines[2:],
    "rows have changed places": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "the header is missing": lambda lines: lines[1:],
    "a length is wrong": lambda lines: [*lines[:2], with_cell(lines[2], 4, "1"), *lines[3:]],
    "a value is no number": lambda lines: [*lines[:2], with_cell(lines[2], 3, "x"), *lines[3:]],
    "a number has 5,000 digits": lambda lines: [*lines[:-1], "9" * 5000 + lines[-1]],
    "a number is negative": lambda lines: [*lines[:-1], "-" + lines[-1]],
    "a cell is too long": lambda lines: [
        *lines[:2],
        lines[2].replace("one", "x" * 200_000).replace("two", "x" * 200_000),
    ],
    "there is nothing": lambda lines: [],
    "it is no text": lambda lines: ["\x00\udcff\n"],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_is_refused_by_every_command(folder, capsys, damage):
    path = folder / "runs" / "seed-0" / "episodes.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(DAMAGES[damage](lines)), errors="surrogateescape")
    before = content(folder)
    for command in (
        ["resume", "--no-tensorboard"],
        ["evaluate"],
        ["compare", "--out", str(folder.parent / "compared")],
    ):
        assert cli.main([command[0], str(folder), *command[1:]]) == 2
        # after the progress of `resume`
        error = capsys.readouterr().err.splitlines(keepends=True)[-1]
        assert error.startswith(f"esbas: {str(path)!r} must be a complete log of the run, but ")
        assert error.endswith(": restore an earlier copy of the whole folder.\n")
    assert content(folder) == before


def test_a_deleted_log_is_refused(folder, capsys):
    path = folder / "runs" / "seed-0" / "episodes.csv"
    path.unlink()
    assert cli.main(["resume", str(folder), "--no-tensorboard"]) == 2
    assert "it has 0 episodes, and the checkpoint has" in capsys.readouterr().err
    assert not path.exists()


def test_a_log_of_other_learners_is_refused(folder, capsys):
    path = folder / "runs" / "seed-0" / "episodes.csv"
    path.write_text(path.read_text().replace(",one,", ",three,"))
    before = content(folder / "runs")
    assert cli.main(["resume", str(folder), "--no-tensorboard"]) == 2
    assert "the learner 'three', which is not in the portfolio" in capsys.readouterr().err
    assert content(folder / "runs") == before


def test_a_repaired_folder_continues(folder, whole):
    path = folder / "runs" / "seed-0" / "episodes.csv"
    text = path.read_text()
    path.write_text("")
    assert cli.main(["resume", str(folder), "--no-tensorboard"]) == 2
    path.write_text(text)
    assert cli.main(["resume", str(folder), "--no-tensorboard"]) == 0
    assert_same(numbers(whole), numbers(folder))


HOSTILE = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a": ' * 100_000,
    b"1" * 5000,
    b'{"seconds": NaN, "episodes": 1, "steps": 1, "finished": true}',
    b'{"seconds": 1.0, "episodes": -1, "steps": 1, "finished": true}',
    b'{"seconds": 1.0, "episodes": "1", "steps": 1, "finished": true}',
    b'{"seconds": 1.0, "episodes": 1, "steps": 1}',
    b'{"seconds": 1.0, "episodes": 1, "steps": ' + b"9" * 5000 + b', "finished": true}',
]


@pytest.mark.parametrize(
    "name", ["config.json", "runs/seed-0/clock.json", "portfolio.toml", "runs/seed-0/faults.csv"]
)
@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_give_one_sentence(folder, capsys, name, data):
    (folder / name).write_bytes(data)
    before = content(folder)
    code = cli.main(["compare", str(folder), "--out", str(folder.parent / "compared")])
    error = capsys.readouterr().err
    if name.endswith("faults.csv") and b"\n" not in data:  # a torn first row
        assert code == 0
    else:
        assert code == 2
        assert error.startswith("esbas: ")
        assert error.count("\n") <= 2
        assert len(error) < 1500
    assert content(folder) == before


@pytest.mark.parametrize(
    "name", ["config.json", "portfolio.toml", "runs/seed-0/clock.json", "runs/seed-0/episodes.csv"]
)
def test_a_pipe_in_the_place_of_a_file_does_not_block(folder, capsys, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert cli.main(["compare", str(folder), "--out", str(folder.parent / "compared")]) == 2
    assert "esbas: " in capsys.readouterr().err


def changed(value, rng):
    """The value with one part replaced."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return (
            value | {key: changed(value[key], rng)}
            if rng.random() < 0.8
            else {k: v for k, v in value.items() if k != key}
        )
    strange = [
        None,
        -1,
        1.5,
        float("nan"),
        10**400,
        "",
        "x",
        [],
        [[]],
        {},
        {"a": 1},
        True,
        ["a:b"],
        "\x00",
        2**70,
        [0, 0],
        [-1],
    ]
    return strange[rng.integers(len(strange))]


def test_mutated_settings_open_or_give_one_sentence(folder):
    rng = np.random.default_rng(0)
    path = folder / "config.json"
    original = json.loads(path.read_text())
    original["config"] |= {
        "seeds": [0, 1],
        "selector": "esbas",
        "wrappers": [],
        "max_episode_steps": 9,
        "learn_timeout": 1.0,
    }
    opened = 0
    errors = []
    for _ in range(1000):
        path.write_text(json.dumps(changed(original, rng)))
        try:
            open_folder(folder)
            opened += 1
        except EsbasError as error:
            errors.append(str(error))
    assert max(map(len, errors)) < 1500
    assert 0 < opened < 900


def test_mutated_parts_are_whole_or_run_again(tmp_path):
    rng = np.random.default_rng(0)
    results = Results(tmp_path / "it", command="esbas test", config={})
    arrays = {"x": np.arange(50.0), "y": np.array(["a", "b"])}
    results.store_part("a", arrays)
    path = tmp_path / "it" / "parts" / "a.npz"
    data = path.read_bytes()
    for _ in range(1500):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 6)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        path.write_bytes(damaged[: rng.integers(len(damaged))] if rng.random() < 0.2 else damaged)
        found = results.part("a")
        assert found is None or all(isinstance(each, np.ndarray) for each in found.values())
    np.savez_compressed(path, x=np.zeros(10**7))
    assert results.part("a") is None


def test_a_lock_is_never_followed_nor_truncated(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / ".lock").symlink_to(secret)
    with (
        pytest.raises(FileError, match="it is a symbolic link: remove the link"),
        locked(directory),
    ):
        pass
    (directory / ".lock").unlink()
    (directory / ".lock").hardlink_to(secret)
    with (
        locked(directory),
        pytest.raises(TrainingError, match="one process at a time"),
        locked(directory),
    ):
        pass
    assert secret.read_text() == "mine"


def test_messages_of_any_kind_are_logged(tmp_path):
    messages = (
        "line\nbreak\x00\x1b[31m",
        "\udcff surrogate",
        "long " * 100_000,
        'quote " comma ,',
        "\u2028",
    )
    faults = tuple(
        Fault(learner="one", where="act", message=message, dismissed=1) for message in messages
    )
    record = EpisodeRecord(1, "one", 1.0, 5, 0, True, False, faults)
    for _ in range(2):  # the second time as after an interruption
        with RunLog(tmp_path, upto=0) as log:
            log.add(record, steps=5)
    with RunLog(tmp_path, upto=1, steps=5) as log:
        log.flush(to_disk=True)
    found = [message for *_, message in read_faults(tmp_path)]
    assert found[:2] == ["line break [31m", "surrogate"]
    assert len(found[2]) == 1000
    assert found[3:] == ['quote " comma ,', ""]
    assert one_line("x" * 2000) == "x" * 996 + " ..."
    assert len(read_episodes(tmp_path)) == 1
    assert read_clock(tmp_path) is None
