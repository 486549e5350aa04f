"""`with` blocks of studies of a service."""

import pytest

from choosing_rules import ARMS, RULES
from esbas.errors import ChoiceError, InvalidValueError, ServiceError
from esbas.studies.client import Client
from studies.server.serving import serving


@pytest.fixture
def study(client, request):
    return client.study(
        request.node.name, selector="esbas", arms=ARMS, options={"epochs": [2]}, expire_after=3600
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_blocks_keep_the_rules(rule, study):
    rule(study)


def test_keys_are_those_of_a_study(study):
    for attempt in range(2):
        with study.choose(key="a") as choice:
            assert (choice.number, choice.told) == (1, 0.7 if attempt else None)
            if choice.told is None:
                choice.value = 0.7
                choice.log_probs = {"rules": [-0.5]}
    assert study.events_of(1)["told"].data == {"log_probs": {"rules": [-0.5]}}
    with pytest.raises(ZeroDivisionError), study.choose(key="b"):
        raise ZeroDivisionError
    with pytest.raises(ChoiceError, match="of the key 'b' was withdrawn"), study.choose(key="b"):
        pytest.fail("not entered")
    assert study.counts() == {"asked": 2, "told": 1, "withdrawn": 1}
    with study.retraining(claimant="trainer"):
        assert study.describe()["claim"]["claimant"] == "trainer"


def test_a_service_that_is_gone_leaves_the_choice_open(store):
    with serving(store) as url:
        client = Client(url, patience=0.0)
        study = client.study("support", selector="ucb1", arms=ARMS)
        told = study.choose(key="a")
        failed = study.choose(key="b")
        told.__enter__()
        failed.__enter__()
    told.value = 0.5
    with pytest.raises(ServiceError) as caught:
        told.__exit__(None, None, None)
    assert "may still be open: tell its value 0.5 again." in caught.value.__notes__[0]
    error = ZeroDivisionError()
    failed.__exit__(ZeroDivisionError, error, None)
    assert "could not be withdrawn and may still be open: ServiceError" in error.__notes__[0]
    assert (repr(client), repr(study)) == (
        f"<Client of {url}>",
        f"<RemoteStudy 'support' at {url}>",
    )
    client.close()


def test_reprs_have_no_passwords():
    with pytest.raises(InvalidValueError, match="`url` must be http://host:port"):
        Client("http://:secret@localhost:8000")
    with Client("http://localhost:8000", token="secret-secret-secret") as client:
        assert repr(client) == "<Client of http://localhost:8000>"
