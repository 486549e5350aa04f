"""Epochs in a custom loop: one caller retrains, the others continue with the old policies."""

import json
import sys
import threading
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest

from esbas import ESBAS, SSBAS, Choice, Evidence, LinearThompson, Trajectory, Uniform
from esbas.errors import InvalidValueError


@pytest.fixture
def short_switches():
    """Python switches between threads as often as possible."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(former)


def in_threads(count, work):
    """Run `work` in several threads at the same time, and raise the first error."""
    errors = []

    def guarded():
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_the_epochs_of_the_paper():
    selector = ESBAS("ab")
    retrained = []
    for number in range(1, 32):
        epoch = selector.claim_epoch()
        if epoch is not None:
            retrained.append((number, epoch))
            selector.epoch_ready(epoch)
        selector.tell(selector.ask(), 0.5)
    assert retrained == [(1, 0), (2, 1), (4, 2), (8, 3), (16, 4)]


def test_others_continue_with_the_old_policies_until_the_new_ones_are_ready():
    selector = ESBAS("ab", epochs=[2, 4])
    selector.epoch_ready(selector.claim_epoch())
    first = [selector.ask(), selector.ask()]
    assert selector.claim_epoch() == 1  # this caller starts to retrain
    waiting = [selector.ask() for _ in range(3)]
    assert [choice.epoch for choice in (*first, *waiting)] == [0] * 5
    assert selector.claim_epoch() is None
    selector.epoch_ready(1)
    assert selector.explain()["a"]["pulls"] == selector.explain()["b"]["pulls"] == 0
    for choice in (*first, *waiting):
        selector.tell(choice, 100.0)  # a late value, from the old policies
    assert sum(row["late"] for row in selector.explain().values()) == 5
    assert sum(row["pulls"] for row in selector.explain().values()) == 0
    assert [selector.ask().epoch for _ in range(4)] == [1] * 4  # the new epoch has its full length
    assert selector.claim_epoch() == 2


def test_an_epoch_can_be_released_and_claimed_again():
    selector = ESBAS("ab")
    assert (selector.claim_epoch(), selector.claim_epoch()) == (0, None)
    selector.release_epoch(0)
    assert selector.claim_epoch() == 0
    selector.epoch_ready(0)
    for wrong in (0, 1, None):
        with pytest.raises(InvalidValueError, match="must be claimed before it is ready"):
            selector.epoch_ready(wrong)
        with pytest.raises(InvalidValueError, match="must be claimed before it is released"):
            selector.release_epoch(wrong)


def test_a_claim_does_not_survive_a_restart():
    selector = ESBAS("ab")
    twin = ESBAS("ab")
    assert selector.claim_epoch() == 0
    twin.load_state_dict(json.loads(json.dumps(selector.state_dict())))
    assert twin.claim_epoch() == 0  # the process that claimed it has ended


def test_epochs_start_automatically_if_none_is_ever_claimed():
    selector = ESBAS("ab")
    assert [selector.ask().epoch for _ in range(15)] == [0] + [1] * 2 + [2] * 4 + [3] * 8
    twin = ESBAS("ab")
    twin.load_state_dict(selector.state_dict())
    assert twin.ask().epoch == 4


def test_exactly_one_of_many_threads_retrains_each_epoch(short_switches):
    selector = ESBAS("abc", epochs=[5, 5, 10])
    retrained = []
    lock = threading.Lock()

    def work():
        for _ in range(400):
            epoch = selector.claim_epoch()
            if epoch is not None:
                with lock:
                    retrained.append(epoch)
                selector.epoch_ready(epoch)
            selector.tell(selector.ask(), 1.0)

    in_threads(8, work)
    assert selector.number == 3200
    assert retrained == list(range(len(retrained)))
    assert len(retrained) >= 8


@pytest.mark.parametrize("kind", [ESBAS, SSBAS, Uniform, LinearThompson])
def test_threads_can_share_a_selector(kind, short_switches):
    selector = kind("abc")
    asked = Counter()
    lock = threading.Lock()

    def work():
        for number in range(250):
            choice = selector.ask(context=(1.0, number % 2))
            if number % 10 == 3:
                selector.withdraw(choice)
            else:
                selector.tell(choice, float(number % 7))
            with lock:
                asked[choice.arm] += 1

    in_threads(8, work)
    report = selector.explain()
    assert {arm: row["selections"] for arm, row in report.items()} == dict(asked)
    assert selector.number == 2000
    assert selector.open_choices == ()


def test_choices_survive_json_with_their_context_and_propensity():
    selector = LinearThompson("ab")
    choice = selector.ask(context=np.array([[0.5, -2.0]]))
    assert choice.context == (0.5, -2.0)
    selector.tell(Choice(**json.loads(json.dumps(asdict(choice)))), 1.0)
    assert selector.open_choices == ()
    assert Uniform("abcd").ask(among=["a", "c"]).propensity == 0.5
    # it does not use contexts, so it does not keep them
    assert SSBAS("ab").ask(context=(1.0,)).context is None


def test_a_live_system_passes_evidence_by_keyword():
    class Curious(Uniform):
        wants = frozenset({"trajectory", "log_probs"})

        def observe(self, choice, value, *, note, evidence):
            self.seen = evidence

    trajectory = Trajectory(
        np.zeros(3), np.array([0, 1]), np.ones(2), True, False, np.log([0.5, 0.25])
    )
    selector = Curious("ab")
    choice = selector.ask()
    evidence = Evidence(
        trajectory=trajectory, value=2.0, arm=choice.arm, log_probs_of={"a": np.log([0.9, 0.1])}
    )
    selector.tell(choice, 2.0, evidence=evidence)
    assert selector.seen.behavior_log_probs.tolist() == np.log([0.5, 0.25]).tolist()
    assert selector.seen.log_probs("a").tolist() == np.log([0.9, 0.1]).tolist()
    assert selector.seen.log_probs("b") is None
