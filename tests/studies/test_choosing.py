"""`with` blocks of studies in SQLite."""

import os
import signal
import time
from multiprocessing import get_context

import pytest

import esbas
from choosing_rules import ARMS, RULES, means, open_of
from esbas.errors import ChoiceError, InvalidValueError, StoreError, StudyError
from studies.study_rules import kinds


@pytest.fixture
def study(url):
    with esbas.open_study(
        url, "support", selector="esbas", arms=ARMS, options={"epochs": [2]}
    ) as opened:
        yield opened


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_blocks_keep_the_rules(rule, study):
    rule(study)


def test_log_probabilities_and_contexts_are_recorded(study):
    with study.choose(context=[1.0, 2.0], key="first") as choice:
        choice.value = 0.5
        choice.log_probs = {"rules": [-0.1], "small": [-2.0]}
    asked, told = study.events_of(choice.number).values()
    assert (asked.data, asked.key) == ({"context": [1.0, 2.0]}, "first")
    assert (told.data, told.value) == ({"log_probs": {"rules": [-0.1], "small": [-2.0]}}, 0.5)


def test_log_probabilities_that_are_refused_withdraw_the_choice(study):
    block = study.choose()
    message = "`log_probs` must have one number per action for every arm"
    with pytest.raises(InvalidValueError, match=message), block:  # noqa: PT012
        block.value = 0.5
        block.log_probs = {"rules": [-0.1], "small": []}
    assert kinds(study) == ["asked", "withdrawn"]


def test_a_key_that_was_told_returns_the_value(study):
    for attempt in range(3):
        with study.choose(key="conversation 17") as choice:
            assert choice.told == (0.7 if attempt else None)
            assert choice.value == choice.told
            if choice.told is None or attempt == 2:  # the same value again is fine
                choice.value = 0.7
    assert kinds(study) == ["asked", "told"]
    with pytest.raises(ZeroDivisionError), study.choose(key="conversation 17"):
        raise ZeroDivisionError
    with (
        pytest.raises(ChoiceError, match=r"has already been told 0\.7, but got 0\.8"),
        study.choose(key="conversation 17") as choice,
    ):
        choice.value = 0.8
    with (
        pytest.raises(ChoiceError, match="cannot be withdrawn, because it has already been told"),
        study.choose(key="conversation 17") as choice,
    ):
        choice.withdraw()
    assert kinds(study) == ["asked", "told"]


def test_a_key_that_is_open_continues_its_choice(study):
    lost = study.ask(key="conversation 17")  # by a process that crashed
    with study.choose(key="conversation 17") as choice:
        assert (choice.number, choice.arm, choice.told, choice.expired) == (
            lost.number,
            lost.arm,
            None,
            False,
        )
        choice.value = 1.0
    assert kinds(study) == ["asked", "told"]


def test_a_key_that_was_withdrawn_is_refused_before_the_work(study):
    with pytest.raises(ZeroDivisionError), study.choose(key="conversation 17"):
        raise ZeroDivisionError
    message = (
        r"^Choice 1 \('\w+'\) of the key 'conversation 17' was withdrawn: "
        r"use a new key for another attempt\.$"
    )
    with pytest.raises(ChoiceError, match=message), study.choose(key="conversation 17"):
        pytest.fail("not entered")


def test_a_key_of_another_request_is_refused(study):
    study.ask(key="a", context=[1.0])
    with (
        pytest.raises(StudyError, match="was used before for another request"),
        study.choose(key="a"),
    ):
        pytest.fail("not entered")


def test_two_workers_with_one_key_agree_on_one_value(study, url):
    with esbas.open_study(url, "support") as other, study.choose(key="a") as first:
        with other.choose(key="a") as second:
            assert first.number == second.number
            second.value = 1.0
        first.value = 1.0
    assert kinds(study) == ["asked", "told"]


def fail_late(study):
    time.sleep(0.06)
    study.expire()
    raise StudyError("mine")


def test_a_choice_that_expires_meanwhile_is_recorded_late(url):
    with esbas.open_study(url, "short", selector="ucb1", arms=ARMS, expire_after=0.05) as study:
        with study.choose(key="slow") as choice:
            time.sleep(0.06)
            choice.value = 1.0
        assert kinds(study) == ["asked", "expired", "told"]
        assert means(study) == {}
        with pytest.raises(StudyError), study.choose():
            fail_late(study)
        assert kinds(study)[-2:] == ["asked", "expired"]
        study.ask(key="crashed")
        time.sleep(0.06)
        with study.choose(key="crashed") as choice:
            assert (choice.expired, choice.told) == (True, None)
            choice.value = 1.0
        with study.choose(key="crashed") as choice:
            assert (choice.expired, choice.told) == (True, 1.0)


def test_a_store_that_cannot_be_reached_leaves_the_choice_open(study, monkeypatch):
    def fails(*arguments, **options):
        raise StoreError("gone")

    choice, other = study.choose(key="a"), study.choose(key="b")
    with monkeypatch.context() as broken:
        broken.setattr(type(study), "tell", fails)
        broken.setattr(type(study), "withdraw", fails)
        with pytest.raises(StoreError, match="gone") as caught, choice:
            choice.value = 1 / 3
        assert caught.value.__notes__ == [
            f"Choice 1 ({choice.arm!r}) may still be open: tell its value 0.3333333333333333 again."
        ]
        with pytest.raises(ZeroDivisionError) as caught, other:
            raise ZeroDivisionError
        note = (
            f"Choice 2 ({other.arm!r}) could not be withdrawn and may still be open: "
            "StoreError: gone"
        )
        assert caught.value.__notes__ == [note]
    assert open_of(study) == 2
    with study.choose(key="a") as choice:
        choice.value = 0.5
    assert open_of(study) == 1


def test_a_claimant_has_a_name(study):
    with study.retraining(claimant="trainer") as epoch:
        assert epoch == 0
        assert study.claim.claimant == "trainer"
    assert study.claim is None


def test_a_claim_that_expired_is_an_error(url):
    with (
        esbas.open_study(url, "short", selector="esbas", arms=ARMS, claim_expires=0.05) as study,
        esbas.open_study(url, "short") as other,
    ):
        block = study.retraining()
        assert block.__enter__() == 0
        time.sleep(0.06)
        assert other.claim_epoch() == 0
        with pytest.raises(StudyError, match="is claimed by"):
            block.__exit__(None, None, None)
        assert kinds(study) == ["epoch_claimed", "epoch_released", "epoch_claimed"]


def hold(url):
    with esbas.open_study(url, "support") as study, study.choose(key="conversation 17") as choice:
        os.kill(os.getpid(), signal.SIGKILL)
        choice.value = 1.0


def test_a_killed_process_can_be_repeated(study, url):
    process = get_context("spawn").Process(target=hold, args=(url,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with study.choose(key="conversation 17") as choice:
        assert choice.number == 1
        choice.value = 1.0
    assert kinds(study) == ["asked", "told"]


def test_a_study_describes_itself_without_a_query(study, url):
    expected = f"<Study 'support' in {url.removeprefix('sqlite:///')}, 3 arms>"
    assert repr(study) == expected
    study.add_arm("new")
    assert repr(study) == expected.replace("3 arms", "4 arms")
    study.close()
    assert repr(study) == expected.replace("3 arms", "4 arms")
