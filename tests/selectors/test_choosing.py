"""`with` blocks of selectors in memory."""

import doctest

import numpy as np
import pytest

from choosing_rules import ARMS, RULES, open_of
from esbas import ESBAS, Evidence, LinearThompson, Pick, Selector, SharedEvidence, Trajectory
from esbas.errors import InvalidValueError
from esbas.selectors import choosing


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_blocks_keep_the_rules(rule):
    rule(ESBAS(ARMS, epochs=[2]))


def test_a_block_chooses_as_ask_does():
    asked = LinearThompson(ARMS, seed=3)
    blocks = LinearThompson(ARMS, seed=3)
    for number in range(20):
        context = [number % 2, 1.0]
        among = ARMS if number % 3 else ARMS[1:]
        expected = asked.ask(among=among, context=context)
        asked.tell(expected, len(expected.arm))
        with blocks.choose(among=among, context=context) as choice:
            choice.value = len(choice.arm)
        assert (choice.number, choice.arm, choice.context, choice.propensity) == (
            expected.number,
            expected.arm,
            expected.context,
            expected.propensity,
        )
    assert blocks.state_dict() == asked.state_dict()


def test_evidence_is_passed_on():
    columns = np.zeros(2, int), np.zeros(1, int), np.ones(1), np.zeros(1)
    trajectory = Trajectory(columns[0], columns[1], columns[2], True, False, columns[3])
    selector = SharedEvidence(ARMS)
    with selector.choose() as choice:
        choice.value = 1.0
        log_probs = {arm: np.zeros(1) for arm in ARMS}
        choice.evidence = Evidence(
            trajectory=trajectory, value=1.0, arm=choice.arm, log_probs_of=log_probs
        )
    assert [row["effective"] for row in selector.explain().values()] == [1.0, 1.0, 1.0]


def test_evidence_of_another_type_is_refused():
    selector = ESBAS(ARMS)
    block = selector.choose()
    message = r"`evidence` must be esbas.Evidence, but got 'much'"
    with pytest.raises(InvalidValueError, match=message), block:  # noqa: PT012
        block.value = 1.0
        block.evidence = "much"
    assert open_of(selector) == 0
    assert [row["pulls"] for row in selector.explain().values()] == [0, 0, 0]


class Broken(Selector):
    """Fails when a choice is closed."""

    def pick(self, among, context):
        return Pick(among[0])

    def observe(self, choice, value, *, note, evidence):
        raise RuntimeError("cannot observe")

    def forget(self, choice, *, note):
        raise RuntimeError("cannot forget")


def test_the_exception_of_the_block_wins():
    with pytest.raises(ZeroDivisionError, match="mine") as caught, Broken(ARMS).choose():
        raise ZeroDivisionError("mine")
    assert caught.value.__notes__ == [
        (
            "Choice 1 ('rules') could not be withdrawn and may still be open: "
            "RuntimeError: cannot forget"
        )
    ]
    with pytest.raises(RuntimeError, match="cannot observe"), Broken(ARMS).choose() as choice:
        choice.value = 1.0


def test_the_exception_of_a_retraining_wins(monkeypatch):
    def fails(self, epoch):
        raise OSError("disk full")

    monkeypatch.setattr(ESBAS, "release_epoch", fails)
    with pytest.raises(ZeroDivisionError) as caught, ESBAS(ARMS).retraining():
        raise ZeroDivisionError
    assert caught.value.__notes__ == ["Epoch 0 could not be released: OSError: disk full"]


def test_documented_blocks_work():
    assert doctest.testmod(choosing).failed == 0
