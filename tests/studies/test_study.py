"""Studies in SQLite."""

import json
import multiprocessing
import os
import signal
import sqlite3
import threading

import numpy as np
import pytest

import esbas
from esbas.errors import ChoiceError, InvalidValueError, StoreError, StudyError, TrustError
from esbas.selectors import SELECTORS
from esbas.studies import log, replay, store
from studies.study_rules import ARMS, RULES, change, kinds, value_of
from studies.working import kill_often


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_study_keeps_the_rules(rule, url):
    rule(url)


def test_kills_lose_and_double_nothing(url, tmp_path):
    kill_often(url, tmp_path, processes=3, kills=4)


@pytest.mark.parametrize(
    "selector",
    [
        "kalman-thompson",
        "betathompson",
        "exp3",
        "corral",
        "linear-thompson",
        "fixed:small",
    ],
)
def test_a_snapshot_continues_as_the_log_does(selector, url, monkeypatch):
    monkeypatch.setattr(log, "SNAPSHOT_EVERY", 10)
    with esbas.open_study(url, "study", selector=selector, arms=ARMS) as study:
        for number in range(17):
            choice = study.ask(context=[number / 3])
            if number % 5:
                study.tell(choice, value_of(choice))
        with esbas.open_study(url, "study") as other:
            assert repr(other.explain()) == repr(study.explain())
            assert other.open_choices == study.open_choices
            for _ in range(5):
                other.ask(context=[1.0])
            study.ask(context=[1.0])  # compares its own choices with those of the other
            assert replay(other).difference is None
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("SELECT seq FROM esbas_snapshot ORDER BY seq").fetchall() == [
            (10,),
            (20,),
            (30,),
        ]
    connection.close()


def test_large_snapshots_are_replaced_by_newer_ones(url, monkeypatch):
    monkeypatch.setattr(log, "SNAPSHOT_EVERY", 10)
    monkeypatch.setattr(store, "SMALL", 1)
    with esbas.open_study(url, "study", selector="ssbas", arms=ARMS) as study:
        for _ in range(12):
            study.tell(choice := study.ask(), value_of(choice))
        assert study.store.execute("SELECT seq FROM esbas_snapshot") == [(20,)]
        assert study.explain(3) != study.explain()


def test_a_claim_is_part_of_a_snapshot(url, monkeypatch):
    monkeypatch.setattr(log, "SNAPSHOT_EVERY", 4)
    with esbas.open_study(url, "study", selector="esbas", arms=ARMS) as study:
        assert study.claim_epoch() == 0
        for _ in range(4):
            study.ask()
        with esbas.open_study(url, "study") as other:
            assert other.claim_epoch() is None
        study.epoch_ready(0)
        assert replay(study).difference is None


@pytest.mark.parametrize("state", ["", "{}", "[" * 1000, '{"seq": 10}', "NaN"])
def test_the_log_is_enough_without_its_snapshots(state, url, monkeypatch):
    monkeypatch.setattr(log, "SNAPSHOT_EVERY", 10)
    with esbas.open_study(url, "study", selector="ssbas", arms=ARMS) as study:
        for _ in range(8):
            study.tell(choice := study.ask(), value_of(choice))
        change(url, "UPDATE esbas_snapshot SET state = ?", state)
        with esbas.open_study(url, "study") as other:
            assert other.explain() == study.explain()


def test_selectors_are_plain_data(url):
    with pytest.raises(InvalidValueError, match="must be plain data"):
        esbas.open_study(url, "study", selector="esbas", arms=ARMS, options={"bandit": esbas.UCB1})
    with pytest.raises(StudyError, match="wants trajectories"):
        esbas.open_study(url, "study", selector="studies.test_study:Watching", arms=ARMS)
    for wrong in (
        {"arms": "abc"},
        {"arms": []},
        {"arms": ["a", "a"]},
        {},
        {"arms": ARMS, "options": {"x": 1}},
    ):
        with pytest.raises(InvalidValueError):
            esbas.open_study(url, "study", selector="esbas", **wrong)
    options = {"bandit": "kl-ucb", "scale": [0, 5], "epochs": [3]}
    with esbas.open_study(
        url, "study", selector="esbas", arms=ARMS, stationary=["small"], options=options
    ) as study:
        assert study.ask().arm in ARMS


class Watching(esbas.Uniform):
    wants = frozenset({"trajectory"})


class Listening(esbas.Uniform):
    """Remembers the last log-probabilities that it was given."""

    wants = frozenset({"log_probs"})
    heard = None

    def observe(self, choice, value, *, note, evidence):
        self.heard = evidence and (
            evidence.log_probs("large").tolist(),
            evidence.behavior_log_probs.tolist(),
        )

    def explain(self):
        return super().explain() | {"heard": self.heard}


def test_modules_of_an_existing_study_need_trust(url):
    mine = {"selector": "studies.test_study:Listening", "arms": ARMS}
    with esbas.open_study(url, "study", **mine) as study:
        choice = study.ask(among=["small"])
        study.tell(
            choice, 1.0, log_probs={"small": np.array([-1.0, -2.0]), "large": [-0.5, -np.inf]}
        )
        assert study.explain()["heard"] == ([-0.5, -np.inf], [-1.0, -2.0])
    esbas.open_study(url, "study", **mine).close()
    with pytest.raises(TrustError, match=r"would import 'studies.test_study:Listening'"):
        esbas.open_study(url, "study")
    with esbas.open_study(url, "study", trust=True) as again:
        assert again.explain()["heard"] == ([-0.5, -np.inf], [-1.0, -2.0])
    with (
        pytest.raises(InvalidValueError, match="one number per action for every arm"),
        esbas.open_study(url, "study", trust=True) as study,
    ):
        study.tell(study.ask(), 1.0, log_probs={"small": [-1.0], "large": [-1.0, -2.0]})


def test_a_request_that_fails_leaves_no_trace(url, monkeypatch):
    with esbas.open_study(url, "study", selector="exp3", arms=ARMS) as study:
        for _ in range(5):
            study.tell(study.ask(), 1.0)
        with monkeypatch.context() as patch:
            patch.setattr(study.store, "append", fail)
            with pytest.raises(RuntimeError, match="the disk is gone"):
                study.ask(key="again")
        study.ask(key="again")
        assert replay(study).choices == 6


def test_a_snapshot_that_fails_does_not_fail_the_request(url, monkeypatch):
    monkeypatch.setattr(log, "SNAPSHOT_EVERY", 2)
    with esbas.open_study(url, "study", selector="exp3", arms=ARMS) as study:
        study.ask()
        with monkeypatch.context() as patch:
            patch.setattr(study.store, "insert_snapshot", refuse)
            assert study.ask().number == 2
        assert [study.ask().number, study.ask().number] == [3, 4]
        assert study.store.snapshot_seq(1) == 4


def refuse(*arguments):
    raise StoreError("the disk is full")


def fail(*arguments):
    raise RuntimeError("the disk is gone")


def test_threads_share_a_study(url):
    with esbas.open_study(url, "study", selector="ssbas", arms=ARMS) as study:
        threads = [
            threading.Thread(target=lambda: [study.tell(study.ask(), 1.0) for _ in range(10)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert study.counts() == {"asked": 40, "told": 40}
        assert replay(study).difference is None


def test_a_forked_process_uses_a_connection_of_its_own(url):
    with esbas.open_study(url, "study", selector="ssbas", arms=ARMS) as study:
        study.ask()
        process = multiprocessing.get_context("fork").Process(target=lambda: study.tell(1, 2.0))
        process.start()
        process.join()
        assert process.exitcode == 0
        study.ask()
        assert kinds(study) == ["asked", "told", "asked"]


def test_a_killed_writer_does_not_block_others(url):
    with esbas.open_study(url, "study", selector="ssbas", arms=ARMS) as study:
        reader, writer = os.pipe()

        def hold():
            with study.store.write(1):
                study.store.execute("DELETE FROM esbas_event")
                os.write(writer, b"!")
                signal.pause()

        study.ask()
        process = multiprocessing.get_context("fork").Process(
            target=lambda: (study._log.check_process(), hold())
        )
        process.start()
        os.read(reader, 1)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        study.tell(1, 1.0)
        assert kinds(study) == ["asked", "told"]
        for end in (reader, writer):
            os.close(end)


def test_a_closed_study_is_one_sentence(url):
    study = esbas.open_study(url, "study", selector="ssbas", arms=ARMS)
    study.close()
    study.close()
    with pytest.raises(StoreError, match="is closed"):
        study.ask()


def test_every_built_in_selector_can_be_described(url):
    names = [name for name in SELECTORS if ":" not in name]
    assert len(names) >= 4
    for name in names:
        with esbas.open_study(url, name, selector=name, arms=ARMS) as study:
            study.tell(study.ask(context=[1.0]), 1.0)
            assert json.loads(json.dumps(study.description)) == study.description


def test_the_state_of_a_study_can_be_read(url):
    with esbas.open_study(url, "study", selector="esbas", arms=ARMS) as study:
        assert (study.last(), study.claim, study.open_since) == (0, None, {})
        assert study.claim_epoch(claimant="me") == 0
        assert (study.claim.epoch, study.claim.claimant) == (0, "me")
        study.epoch_ready(0, claimant="me")
        choice = study.ask(key="conversation 17")
        assert study.find_choice("conversation 17") == choice
        assert list(study.open_since) == [1]
        study.tell(choice, 1.0, key="the end")
        assert (study.last(), study.claim, study.open_since) == (4, None, {})
        assert [
            [event.seq for event in study.history(after=after, limit=2)] for after in (0, 1, 3, 9)
        ] == [
            [1, 2],
            [2, 3],
            [4],
            [],
        ]
        for key in ("the end", "unknown"):
            with pytest.raises(ChoiceError, match=r"There was no ask\(\) with the key"):
                study.find_choice(key)
