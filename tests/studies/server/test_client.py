"""The client does what a study on this machine does."""

import itertools
import json
import math
import os
import threading

import numpy as np
import pytest

import esbas
from esbas.errors import ChoiceError, InvalidValueError, ServiceError, StudyError, UnknownNameError
from esbas.studies.client import Client
from esbas.studies.server.settings import ServiceLimits
from studies.server.serving import ARMS, error_of, path_of, send, serving

HOSTILE = [
    "'; DROP TABLE esbas_event; --",
    "<script>alert(1)</script>",
    "a/b/../c?x=1#y",
    "100 %2F",
    "..",
    "ä😀 \n\t",
    '{"a": 1}',
]


def test_a_study_of_a_service_chooses_as_one_on_this_machine(client, tmp_path):
    settings = {
        "selector": "linear-thompson",
        "arms": ARMS,
        "stationary": ["rules"],
        "seed": 5,
        "options": {"ridge": 2.0},
    }
    there = client.study("the same", **settings)
    with esbas.open_study(tmp_path / "local.db", "the same", **settings) as here:
        for number in range(1, 30):
            context = np.array([[number / 7, 1.0]])
            among = None if number % 3 else ARMS[:2]
            choices = [
                study.ask(context=context, among=among, key=f"ask {number}")
                for study in (there, here)
            ]
            assert choices[0] == choices[1]
            for study in (there, here):
                if number % 5:
                    study.tell(
                        choices[0],
                        np.float32(number % 4),
                        log_probs={"small": [-1.5, -math.inf]},
                        key=f"tell {number}",
                    )
                else:
                    study.withdraw(choices[0].number, key=f"withdraw {number}")
        there.add_arm("new", stationary=True, key="add")
        here.add_arm("new", stationary=True, key="add")
        assert (
            there.remove_arm("rules", key="remove")
            is here.remove_arm("rules", key="remove")
            is None
        )
        assert there.arms == here.arms == ("small", "large", "new")
        assert there.counts() == here.counts()
        assert list(there.events_of(29)) == list(here.events_of(29)) == ["asked", "told"]
        for choice in (None, 7):
            found = there.explain(choice)
            wanted = here.explain(choice)
            assert json.dumps(found) == json.dumps(wanted).replace("Infinity", "NaN")
        logs = [
            [event._replace(at=0.0, data={}) for event in study.history()]
            for study in (there, here)
        ]
        assert logs[0] == logs[1]
        assert [event.data for event in there.history(limit=1)] == [
            event.data for event in here.history(limit=1)
        ]
        assert [event.seq for event in there.history(after=10, limit=3)] == [11, 12, 13]


def test_epochs_have_one_claimant(client, request):
    first = client.study(
        request.node.name, selector="esbas", arms=ARMS, options={"epochs": [2]}, claim_expires=60
    )
    second = client.existing_study(request.node.name)
    assert [
        first.claim_epoch(key="claim"),
        second.claim_epoch(),
        first.claim_epoch(key="claim"),
    ] == [0, None, 0]
    with pytest.raises(StudyError, match="must be claimed by"):
        second.epoch_ready(0)
    assert first.describe()["claim"]["claimant"] == first.claimant
    first.release_epoch(0)
    assert second.claim_epoch() == 0
    second.epoch_ready(0, key="ready")
    second.epoch_ready(0, key="ready")
    assert first.describe()["epoch"] == 0
    assert first.counts() == {"epoch_claimed": 2, "epoch_released": 1, "epoch_ready": 1}


def test_errors_are_those_of_a_study(client, study):
    choice = study.ask(key="first")
    assert study.ask(key="first") == choice
    study.tell(choice, 1.0)
    study.tell(choice, 1.0)
    with pytest.raises(ChoiceError, match="has already been told"):
        study.tell(choice, 2.0)
    with pytest.raises(ChoiceError, match="is not from this study"):
        study.tell(99, 2.0)
    with pytest.raises(ChoiceError, match="has the arm"):
        study.withdraw(esbas.Choice(number=1, arm="other", epoch=0))
    with pytest.raises(StudyError, match="was used before for another request"):
        study.ask(key="first", among=["rules"])
    with pytest.raises(InvalidValueError, match="A value must be finite"):
        study.tell(choice, math.nan)
    with pytest.raises(
        UnknownNameError, match="There is no arm named 'smal': did you mean 'small'"
    ):
        study.ask(among=["smal"])
    with pytest.raises(UnknownNameError, match="There is no arm named 'smal'"):
        study.remove_arm("smal")
    with pytest.raises(UnknownNameError, match="There is no study named"):
        client.existing_study("missing")
    with pytest.raises(StudyError, match="A study keeps the selector"):
        client.study(study.name, selector="esbas", arms=ARMS)
    with pytest.raises(InvalidValueError, match="belong to a selector, but none was given"):
        client.study("new", arms=ARMS)


@pytest.mark.parametrize("name", HOSTILE)
def test_any_text_is_data(name, client, url):
    study = client.study(name, selector="uniform", arms=[name, "b"])
    choice = study.ask(among=[name], key=name)
    study.tell(choice.number, 0.5)
    assert choice.arm == name
    assert name in [each["name"] for each in client.studies()]
    assert study.describe()["name"] == name
    assert [event.arm for event in study.history()] == [name, name]
    study.remove_arm(name)
    assert study.arms == ("b",)
    assert send(url, "GET", path_of(name))[1]["content-type"] == "application/json"


def test_choices_are_told_by_the_key_of_their_request(study, url):
    study.ask(key="conversation 17")
    told = send(
        url,
        "POST",
        path_of(study.name, "/tell"),
        {"ask_key": "conversation 17", "value": 0.5, "arm": "rules"},
    )
    assert (told[0], json.loads(told[2])) == (200, {"number": 1})
    assert study.counts() == {"asked": 1, "told": 1}
    for body in ({"value": 1.0}, {"value": 1.0, "choice": 1, "ask_key": "conversation 17"}):
        assert error_of(send(url, "POST", path_of(study.name, "/tell"), body)) == (
            422,
            "InvalidValueError",
        )
    other = send(url, "POST", path_of(study.name, "/tell"), {"ask_key": "other", "value": 0.5})
    assert error_of(other) == (409, "ChoiceError")


def test_open_and_expired_choices_are_listed(client, url, request):
    study = client.study(request.node.name, selector="uniform", arms=ARMS, expire_after=0.01)
    choice = study.ask()
    listed = json.loads(send(url, "GET", path_of(study.name, "/choices"))[2])
    assert listed["open"] == len(listed["choices"]) == 1
    assert listed["choices"][0].items() >= {"number": 1, "arm": choice.arm, "epoch": 0}.items()
    threading.Event().wait(0.02)
    assert study.expire() == [1]
    study.tell(choice, 1.0)
    assert study.events_of(1)["told"].data == {"late": True}


def test_events_are_followed_and_continued(study):
    for number in range(3):
        study.tell(study.ask(), float(number))
    followed = study.follow()
    assert [event.seq for event in itertools.islice(followed, 6)] == [1, 2, 3, 4, 5, 6]
    study.ask(key="while somebody follows")
    assert next(followed).key == "while somebody follows"
    followed.close()
    assert next(study.follow(after=4)).seq == 5


def test_a_stream_that_ends_is_continued(store):
    limits = ServiceLimits(stream_seconds=0.05, poll_seconds=0.01)
    with serving(store, limits=limits) as url, Client(url) as client:
        study = client.study("streamed", selector="uniform", arms=ARMS)
        followed = study.follow()
        seen = []
        for number in range(4):
            study.ask()
            threading.Event().wait(0.03 * number)
            seen.append(next(followed).seq)
        assert seen == [1, 2, 3, 4]


def test_threads_share_a_client(study):
    threads = [threading.Thread(target=lambda: [study.ask() for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(event.number for event in study.history()) == list(range(1, 21))


def test_a_service_that_is_not_there_is_one_sentence(client):
    with pytest.raises(
        ServiceError, match=r"The service at http://127\.0\.0\.1:9 cannot be reached"
    ) as caught:
        Client("http://127.0.0.1:9", patience=0.0).health()
    assert os.linesep not in str(caught.value)
    for wrong in ("127.0.0.1:8000", "ftp://a", "http://", "http://me:secret@a/"):
        with pytest.raises(InvalidValueError, match="http://host:port"):
            Client(wrong)
    with pytest.raises(InvalidValueError, match="A token must be printable"):
        Client("http://a", token="a\nb")
    assert client.health()["status"] == "ok"


def test_a_restarted_service_continues(store):
    with serving(store) as url, Client(url) as client:
        study = client.study("kept", selector="ssbas", arms=ARMS)
        choice = study.ask(key="before")
    with serving(store) as url, Client(url) as client:
        study = client.existing_study("kept")
        assert study.ask(key="before") == choice
        study.tell(choice, 1.0)
        assert study.counts() == {"asked": 1, "told": 1}


def test_a_selector_may_be_a_class_or_an_object(client):
    client.study("by name", selector="ssbas", arms=ARMS, seed=2)
    client.study("by name", selector=esbas.SSBAS, arms=ARMS, seed=2)
    client.study("by name", selector=esbas.SSBAS(ARMS, seed=2))
    with pytest.raises(StudyError, match="A study keeps the selector"):
        client.study("by name", selector=esbas.SSBAS(ARMS, seed=3))


@pytest.mark.parametrize(
    "settings",
    [{"selector": object(), "arms": ARMS}, {"selector": "ssbas", "arms": 3}, {"arms": ARMS}],
)
def test_wrong_settings_are_refused_before_they_are_sent(settings, client):
    with pytest.raises(InvalidValueError, match="selector"):
        client.study("new", **settings)
