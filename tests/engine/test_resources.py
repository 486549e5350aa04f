"""Resources of jobs, and engines for which an extra is missing."""

import sys

import pytest

from engine.plain import Plain
from engine.remote import Elsewhere
from esbas.cli import main
from esbas.engine import Outcome, Resources, find_engine, read_resources, run_parts
from esbas.engine.machine import describe_machine, differences
from esbas.errors import InvalidValueError, MissingExtraError, UnknownNameError, WorkerLostError


def test_resources_are_read():
    assert read_resources([], jobs=3, engine=find_engine("threads")) == Resources(jobs=3)
    words = ["cpus=2", "gpus=0.5", "memory=4"]
    assert read_resources(words, jobs=1, engine=Elsewhere()) == Resources(
        cpus=2, gpus=0.5, memory=4
    )


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("cpu=2", "There is no resource named 'cpu': did you mean 'cpus'"),
        ("cpus", "`resources` must be numbers such as cpus=2, but got 'cpus'"),
        ("gpus=nan", "`resources` must be numbers such as gpus=2, but got 'gpus=nan'"),
        ("cpus=0", "`cpus` must be greater than 0, but got 0"),
    ],
)
def test_wrong_resources_are_refused(word, sentence):
    with pytest.raises((InvalidValueError, UnknownNameError), match=sentence):
        read_resources([word], jobs=1, engine=Elsewhere())


@pytest.mark.parametrize("command", [["train", "CartPole-v1"], ["reproduce", "bounds"]])
def test_resources_need_a_cluster(command, tmp_path, capsys):
    assert main([*command, "--resources", "cpus=2", "--out", str(tmp_path / "out")]) == 2
    assert "`resources` are for jobs on a cluster, but got" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engine", ["ray", "auto", "ray:auto", "ray://10.0.0.1:10001"])
def test_a_missing_extra_is_named(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError,
        match=r"--engine ray needs ray, which is not installed: pip install 'esbas\[ray\]'",
    ):
        find_engine(engine)


def test_parts_get_their_resources():
    engine = Elsewhere()
    run_parts(
        {"a": dict},
        load=lambda _: None,
        store=print,
        jobs=2,
        description="x",
        engine=engine,
        resources=["cpus=3"],
    )
    assert engine.resources == Resources(jobs=2, cpus=3)


class Deadly(Plain):
    """Reports that the first job lost its worker."""

    def _outcomes(self, function, jobs, report, stop):
        yield Outcome(
            name=jobs[0].name, error=WorkerLostError("job 'a' must run to its end, but did not")
        )
        yield from super()._outcomes(function, jobs[1:], report, stop)


def test_a_lost_worker_is_reported_and_the_other_parts_run(capsys):
    stored = {}
    with pytest.raises(WorkerLostError, match="job 'a' must run"):
        run_parts(
            dict.fromkeys("abc", dict),
            load=stored.get,
            store=stored.__setitem__,
            jobs=1,
            description="x",
            engine=Deadly(),
        )
    assert set(stored) == {"b", "c"}
    assert "esbas: note: job 'a' must run" in capsys.readouterr().err


def test_machines_are_compared():
    here = describe_machine()
    assert {"Python", "CPU", "numpy", "source of esbas"} <= set(here)
    assert differences(here, here) == []
    assert differences(here | {"numpy": "1.0"}, here) == [f"numpy 1.0 (here {here['numpy']})"]
