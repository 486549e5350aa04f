"""What every study keeps, in any store: functions of the URL of an empty store."""

import math
import sqlite3
import time

import numpy as np
import pytest

import esbas
from esbas.errors import ChoiceError, InvalidValueError, StudyError, UnknownNameError
from esbas.studies import replay

ARMS = ["rules", "small", "large"]


def value_of(choice):
    return math.sin(choice.number) + ARMS.index(choice.arm)


def kinds(study):
    return [event.kind for event in study.history()]


def change(url, statement, *parameters):
    """Change a file of SQLite behind the back of esbas."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(statement, parameters)
    connection.close()


def several_processes_choose_as_one_selector_would(url):
    first = esbas.open_study(url, "study", selector="ssbas", arms=ARMS, options={"xi": 0.5})
    second = esbas.open_study(url, "study")
    alone = esbas.SSBAS(ARMS, xi=0.5)
    for number in range(40):
        own = (first, second)[number % 2]
        other = (first, second)[number % 3 == 0]
        choice = own.ask()
        expected = alone.ask()
        assert choice == expected
        other.tell(choice.number, value_of(choice))
        alone.tell(expected, value_of(choice))
    assert first.explain() == second.explain() == alone.explain()
    assert replay(second).choices == 40
    for study in (first, second):
        study.close()


def a_key_stands_for_one_request(url):
    with esbas.open_study(url, "study", selector="exp3", arms=ARMS) as study:
        choice = study.ask(among=["rules", "large"], context=[1.0, math.nan], key="ask")
        assert study.ask(among=["rules", "large"], context=[1.0, math.nan], key="ask") == choice
        for other in ({"among": ["rules"]}, {"context": [2.0]}, {}):
            with pytest.raises(
                StudyError,
                match=r"^Key 'ask' was used before for another request",
            ):
                study.ask(key="ask", **other)
        for _ in range(2):
            study.tell(choice, 0.5, log_probs={"rules": [-1.0]}, key="tell")
            study.add_arm("new", key="add")
            study.remove_arm("new", key="remove")
            study.withdraw(study.ask(key="ask again"), key="withdraw")
        with pytest.raises(StudyError, match="Key 'tell' was used before for another request"):
            study.tell(choice, 0.5, key="tell")
        with pytest.raises(StudyError, match="Key 'tell' was used before for another request"):
            study.withdraw(choice, key="tell")
        assert kinds(study) == ["asked", "told", "arm_added", "arm_removed", "asked", "withdrawn"]


def a_choice_is_closed_once(url):
    with esbas.open_study(url, "study", selector="ucb1", arms=ARMS) as study:
        told, withdrawn, still_open = (study.ask() for _ in range(3))
        for _ in range(2):
            study.tell(told, np.float64(0.5))
            study.withdraw(withdrawn)
        with pytest.raises(ChoiceError, match=r"has already been told 0\.5, but got 0\.25"):
            study.tell(told, 0.25)
        with pytest.raises(
            ChoiceError, match=r"^Choice 1 cannot be withdrawn, because it has already been told"
        ):
            study.withdraw(told)
        with pytest.raises(ChoiceError, match=r"^Choice 2 has already been withdrawn"):
            study.tell(withdrawn, 0.5)
        for number in (0, 4, -1, 2**70):
            with pytest.raises(ChoiceError, match="is not from this study: call ask"):
                study.tell(number, 0.5)
        with pytest.raises(ChoiceError, match="A choice must be what ask"):
            study.tell("rules", 0.5)
        with pytest.raises(ChoiceError, match="has the arm"):
            study.tell(esbas.Choice(number=3, arm="other", epoch=0), 0.5)
        for value in (math.nan, math.inf, "many", None):
            with pytest.raises(InvalidValueError, match="A value must be finite"):
                study.tell(still_open, value)
        assert study.open_choices == (still_open,)
        assert kinds(study) == ["asked", "asked", "asked", "told", "withdrawn"]


def arms_come_and_go(url):
    with (
        esbas.open_study(url, "study", selector="esbas", arms=ARMS) as study,
        esbas.open_study(url, "study") as other,
    ):
        late = study.ask(among=["small"])
        other.add_arm("huge", stationary=True)
        study.remove_arm("small")
        assert other.arms == ("rules", "large", "huge")
        assert study.ask(among=["huge"]).arm == "huge"
        other.tell(late, 3.0)  # recorded
        for refused, error in (
            ("huge", InvalidValueError),
            ("", InvalidValueError),
            (7, InvalidValueError),
        ):
            with pytest.raises(error):
                study.add_arm(refused)
        with pytest.raises(UnknownNameError, match="There is no arm named 'small'"):
            study.remove_arm("small")
        with pytest.raises(UnknownNameError, match="There is no arm named 'small'"):
            study.ask(among=["small"])
        assert repr(study.explain()) == repr(other.explain())  # with NaN
        assert replay(study).difference is None


def one_caller_is_asked_to_retrain(url):
    study = esbas.open_study(url, "study", selector="esbas", arms=ARMS, options={"epochs": [2]})
    other = esbas.open_study(url, "study")
    assert [each.claim_epoch() for each in (study, other, study)] == [0, None, None]
    assert study.ask().epoch == 0  # the old epoch continues
    with pytest.raises(StudyError, match="Epoch 0 must be claimed by"):
        other.epoch_ready(0)
    study.release_epoch(0)
    assert [each.claim_epoch() for each in (study, other)] == [0, None]
    study.epoch_ready(0)
    assert [study.claim_epoch(), study.ask().epoch, study.ask().epoch] == [None, 0, 0]
    assert [other.claim_epoch(claimant="trainer", key="claim") for _ in range(2)] == [1, 1]
    for _ in range(2):
        study.epoch_ready(1, claimant="trainer", key="ready")
    assert (study.epoch, other.epoch, other.ask().epoch) == (1, 1, 1)
    assert replay(study).difference is None
    for each in (study, other):
        each.close()


def a_claim_ends_if_its_claimant_is_gone(url):
    study = esbas.open_study(url, "study", selector="esbas", arms=ARMS, claim_expires=0.05)
    other = esbas.open_study(url, "study")
    assert study.claim_epoch() == 0
    time.sleep(0.06)
    assert other.claim_epoch() == 0
    with pytest.raises(StudyError, match="is claimed by"):
        study.epoch_ready(0)
    other.epoch_ready(0)
    assert kinds(study) == ["epoch_claimed", "epoch_released", "epoch_claimed", "epoch_ready"]
    assert replay(study).difference is None
    for each in (study, other):
        each.close()


def epochs_start_by_themselves_unless_somebody_claims_them(url):
    with esbas.open_study(url, "study", selector="esbas", arms=ARMS) as study:
        assert [study.ask().epoch for _ in range(6)] == [0, 1, 1, 2, 2, 2]
        assert [study.claim_epoch(), study.claim_epoch()] == [None, None]
        assert [study.ask().epoch, study.ask().epoch] == [2, 2]
        assert [event.epoch for event in study.history() if event.kind == "epoch_claimed"] == [None]
        assert study.claim_epoch() == 3
        assert study.ask().epoch == 2
        assert replay(study).difference is None


def choices_that_nobody_told_expire(url):
    with esbas.open_study(url, "study", selector="ucb1", arms=ARMS, expire_after=0.05) as study:
        gone = study.ask()
        told = study.ask()
        study.tell(told, 1.0)
        time.sleep(0.06)
        assert study.ask().number == 3
        assert kinds(study) == ["asked", "asked", "told", "expired", "asked"]
        before = study.explain()
        study.tell(gone, 7.0)
        study.tell(gone, 7.0)
        study.withdraw(study.open_choices[0])
        with pytest.raises(ChoiceError, match=r"has already been told 7\.0"):
            study.tell(gone, 8.0)
        late = study.events_of(gone)["told"]
        assert (late.value, late.data) == (7.0, {"late": True})
        assert study.explain()[gone.arm]["mean"] == pytest.approx(
            before[gone.arm]["mean"], nan_ok=True
        )
        assert study.expire() == []
        assert study.counts() == {"asked": 3, "told": 2, "expired": 1, "withdrawn": 1}
        assert replay(study).difference is None


def contexts_and_propensities_are_recorded(url):
    with esbas.open_study(url, "study", selector="linear-thompson", arms=ARMS) as study:
        with pytest.raises(InvalidValueError, match="chooses by context"):
            study.ask()
        choice = study.ask(context=np.array([[0.5, 2.0]]), key="one")
        assert choice.context == (0.5, 2.0)
        assert study.ask(context=[0.5, 2.0], key="one") == choice
        study.tell(choice, 1.0)
        (asked, _) = study.history()
        assert (asked.data, asked.propensity) == ({"context": [0.5, 2.0]}, None)
        with pytest.raises(InvalidValueError, match="at most 10,000 numbers"):
            study.ask(context=np.zeros(10_001))
    with esbas.open_study(url, "even", selector="uniform", arms=ARMS) as study:
        study.ask(context=[1.0], among=["rules", "small"])
        (asked,) = study.history()
        assert (asked.propensity, asked.data) == (
            0.5,
            {"among": ["rules", "small"], "context": [1.0]},
        )


def old_choices_can_be_explained(url):
    with esbas.open_study(url, "study", selector="ssbas", arms=ARMS) as study:
        explained = []
        for _ in range(12):
            explained.append(repr(study.explain()))
            choice = study.ask()
            study.tell(choice, value_of(choice))
        assert [repr(study.explain(number)) for number in range(1, 13)] == explained
        with pytest.raises(ChoiceError, match="Choice 13 is not from this study"):
            study.explain(13)


def names_are_data(url):
    names = [
        "'; DROP TABLE esbas_event; --",
        "<b>&amp;</b>",
        "名前 🎲 \n\t\x7f",
        "%s ? {} $1",
        "x" * 200,
    ]
    for name in names:
        with esbas.open_study(url, name, selector="uniform", arms=names) as study:
            study.tell(study.ask(among=[name], key=name), 1.0)
            assert (study.events_of(1)["asked"].arm, study.events_of(1)["asked"].key) == (
                name,
                name,
            )
    for name in ("", "x" * 201, "a\0b", "\ud800", 7, None):
        with pytest.raises(InvalidValueError, match="The name of a study must be"):
            esbas.open_study(url, name, selector="uniform", arms=ARMS)


def a_study_keeps_its_selector(url):
    esbas.open_study(
        url, "study", selector="ssbas", arms=ARMS, options={"xi": 1}, expire_after=60
    ).close()
    same = esbas.open_study(url, "study", selector="ssbas", arms=ARMS, options={"xi": 1})
    assert (same.arms, same.expire_after) == (tuple(ARMS), 60.0)
    esbas.open_study(url, "study", selector=same.description["selector"]).close()
    same.close()
    for different in (
        {"selector": "esbas", "arms": ARMS},
        {"selector": "ssbas", "arms": ARMS},
        {"selector": "ssbas", "arms": ARMS[:2], "options": {"xi": 1}},
        {"selector": "ssbas", "arms": ARMS, "options": {"xi": 1}, "seed": 1},
        {"expire_after": 30},
    ):
        with pytest.raises(
            StudyError, match="A study keeps the selector and the settings that it was created with"
        ):
            esbas.open_study(url, "study", **different)
    with pytest.raises(
        UnknownNameError, match="There is no study named 'studi': did you mean 'study'"
    ):
        esbas.open_study(url, "studi")


RULES = [
    several_processes_choose_as_one_selector_would,
    a_key_stands_for_one_request,
    a_choice_is_closed_once,
    arms_come_and_go,
    one_caller_is_asked_to_retrain,
    a_claim_ends_if_its_claimant_is_gone,
    epochs_start_by_themselves_unless_somebody_claims_them,
    choices_that_nobody_told_expire,
    contexts_and_propensities_are_recorded,
    old_choices_can_be_explained,
    names_are_data,
    a_study_keeps_its_selector,
]
