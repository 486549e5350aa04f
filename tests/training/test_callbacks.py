"""Callbacks and metrics of learners."""

import json

import pytest

import esbas
from esbas import cli
from esbas.errors import EsbasError
from esbas.training import Callback, Evaluation, RunInfo
from esbas.training.callbacks import find_callback
from esbas.training.display.tensorboard import TensorBoardWriter
from training.observed import Logger

QUIET = "--no-tensorboard"
LEARNERS = ["--learners", "training.observed:Counting", "training.observed:Boastful", "random"]


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Skip the report, which takes longer than these trainings."""
    monkeypatch.setattr("esbas.training.train.write_report", lambda *_: None)


def words(out, *more, episodes=8):
    return [
        "train",
        "CartPole-v1",
        *LEARNERS,
        "--episodes",
        str(episodes),
        "--out",
        str(out),
        *more,
    ]


def logged(out):
    return [
        json.loads(line)
        for line in (out / "runs" / "seed-0" / "log.jsonl").read_text().splitlines()
    ]


def test_a_callback_is_told_what_happens_in_a_run(tmp_path, capsys):
    out = tmp_path / "it"
    assert cli.main(words(out, QUIET, "--callbacks", "training.observed:Logger")) == 0
    log = logged(out)
    assert log[0] == {
        "kind": "start",
        "steps": 0,
        "learners": ["Counting", "Boastful", "random"],
        "seed": 0,
    }
    assert [each["number"] for each in log if each["kind"] == "episode"] == list(range(1, 9))
    assert log[-1] == {"kind": "end", "finished": True}
    status = [each for each in log if each["kind"] == "status"][-1]
    steps = [each["steps"] for each in log if each["kind"] == "episode"][-1]
    assert status["steps"] == steps
    assert status["metrics"] == {
        "Counting": {"loss": pytest.approx(1 / steps), "epsilon": 0.5},
        "Boastful": {},
        "random": {},
    }
    assert capsys.readouterr().err.count("the metrics of 'Boastful' are left out: ValueError") == 1
    assert (
        cli.main(
            [
                "resume",
                str(out),
                "--trust",
                "--episodes",
                "9",
                QUIET,
                "--callbacks",
                "training.observed:Logger",
            ]
        )
        == 0
    )
    assert logged(out)[len(log)]["steps"] == steps


def test_a_callback_with_options_in_another_process(tmp_path):
    out = tmp_path / "it"
    callbacks = ["--callbacks", "training.observed:Logger(only='end')"]
    assert cli.main(words(out, QUIET, *callbacks, "--engine", "processes", episodes=2)) == 0
    assert logged(out) == [{"kind": "end", "finished": True}]


def test_callbacks_in_python(tmp_path):
    learners = "training.observed:Counting", "random"
    esbas.train(
        "CartPole-v1",
        learners=learners,
        episodes=2,
        tensorboard=False,
        out=tmp_path / "it",
        callbacks=(Logger,),
    )
    assert logged(tmp_path / "it")[-1]["kind"] == "end"


@pytest.mark.parametrize("method", ["on_start", "on_episode", "on_status", "on_end"])
def test_a_callback_that_fails_is_dropped_and_the_run_continues(tmp_path, capsys, method):
    out = tmp_path / "it"
    call = f"training.observed:Failing(method='{method}')"
    assert cli.main(words(out, QUIET, "--callbacks", call, "training.observed:Logger")) == 0
    errors = capsys.readouterr().err
    assert (
        f"failed in {method} (RuntimeError: no connection) and is not called any more; "
        "the run continues" in errors
    )
    assert errors.count("is not called any more") == 1
    assert logged(out)[-1]["kind"] == "end"


def test_a_callback_that_cannot_be_created(tmp_path, capsys):
    class Broken(Callback):
        def __init__(self):
            raise OSError("no server")

    learners = ("random",)
    esbas.train(
        "CartPole-v1",
        learners=learners,
        episodes=2,
        tensorboard=False,
        out=tmp_path / "it",
        callbacks=(Broken,),
    )
    assert "failed in its creation (OSError: no server)" in capsys.readouterr().err


def test_ctrl_c_in_a_callback_ends_the_training(tmp_path):
    class Stopping(Callback):
        def on_episode(self, record, *, steps):
            raise KeyboardInterrupt

    options = {
        "learners": ("random",),
        "episodes": 9,
        "tensorboard": False,
        "out": tmp_path / "it",
        "callbacks": (Stopping,),
    }
    with pytest.raises(KeyboardInterrupt):
        esbas.train("CartPole-v1", **options)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("training.observed:Loger", "did you mean 'Logger'"),
        ("training.observed:Logger(olny='end')", "did you mean 'only'"),
        ("training.observed:Failing", "`method` of training.observed:Failing is missing"),
        ("training.observed:json", "must be a class of callbacks or a function"),
        ("nowhere:Logger", "nowhere"),
        ("Logger", "'module:Class'"),
        (
            3,
            (
                "`callbacks` must be text, callbacks, or classes or functions without arguments "
                "that create them, but got 3"
            ),
        ),
    ],
)
def test_what_is_no_callback_is_refused_before_the_training_starts(tmp_path, source, sentence):
    with pytest.raises(EsbasError, match=sentence) as raised:
        find_callback(source)
    assert "\n" not in str(raised.value)
    with pytest.raises(EsbasError):
        esbas.train("CartPole-v1", learners=("random",), out=tmp_path / "it", callbacks=(source,))
    assert not (tmp_path / "it").exists()


def test_tensorboard_shows_metrics_and_evaluations(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = tmp_path / "it"
    assert cli.main(words(out)) == 0
    logs = EventAccumulator(str(out / "runs" / "seed-0" / "tensorboard"))
    logs.Reload()
    tags = logs.Tags()["scalars"]
    assert {"loss/Counting", "epsilon/Counting", "episode/value", "share of control/random"} <= set(
        tags
    )
    assert not {"mean Q/Counting", "loss/Boastful"} & set(tags)
    assert logs.Scalars("epsilon/Counting")[-1].value == 0.5
    writer = TensorBoardWriter()
    writer.on_start(
        RunInfo(env="t", selector="s", seed=0, folder=tmp_path, learners=("a/b",), steps=0)
    )
    writer.on_evaluation(Evaluation(learner="a/b", steps=70, values=(1.0, 2.0), played=30))
    writer.on_end(finished=True)
    logs = EventAccumulator(str(tmp_path / "tensorboard"))
    logs.Reload()
    assert [(event.step, event.value) for event in logs.Scalars("evaluation/a-b")] == [(70, 1.5)]
