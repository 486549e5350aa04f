"""The compiled dialogue with shared evidence against the ordinary objects: choice by choice when both draw the same numbers."""

from typing import Any

import numpy as np
import pytest

from esbas import SharedEvidence
from esbas.envs import DialogueFeatures
from esbas.kernels import counter
from esbas.kernels.dialogue.one_dialogue import Traits
from esbas.kernels.dialogue.whole_runs import members, whole_run
from esbas.learners.linear_fqi import linear_constant
from kernels.dialogues import EPOCHS, GAME, PROTOCOL, fqi, play_objects


class Normals:
    """The kernel's normal numbers as a generator."""

    def __init__(self, key: np.uint64) -> None:
        self._key, self._next = counter.word(key, -1), 0

    def standard_normal(self, size: int) -> Any:
        self._next += size
        return np.array([counter.normal(np.uint64(self._key), 2 * i) for i in range(self._next - size, self._next)])


def constant_weights() -> Any:
    weights = np.random.default_rng(0).normal(size=(5, 10))
    weights[4] = -9.0  # never ends the dialogue
    return weights


@pytest.mark.parametrize("declared", [False, True], ids=["compared", "declared"])
def test_all_kinds_of_members_are_chosen_as_with_the_objects(declared: bool) -> None:
    """The object finds out by comparing policies, or is told, what the kernel knows: that the constant does not change."""
    key, constant = counter.run_key(5, "shared"), constant_weights()
    learners = [
        fqi("simple"),
        fqi("fast-2"),
        linear_constant("constant", DialogueFeatures("simple-2"), constant),
        fqi("n-2-fast", seed=7),
    ]
    selector = SharedEvidence([one.name for one in learners], epochs=EPOCHS, stationary=["constant"] if declared else [])
    selector.rng = Normals(key)  # type: ignore[assignment]
    values, arms, acts = play_objects(key, learners, selector)
    kinds = [Traits(3), Traits(2, square=1), Traits(3, square=1, constant=1), Traits(2, noise=2, seed=7)]
    portfolio = members(kinds, [None, None, constant, None])
    got_values, got_arms, got_acts, _ = whole_run(key, GAME, portfolio, PROTOCOL._replace(shared=True))
    np.testing.assert_array_equal(got_arms, arms)
    np.testing.assert_array_equal(got_acts, acts)
    np.testing.assert_allclose(got_values, values, rtol=1e-12)
    assert set(arms) == set(range(4))
    assert [row["unchanged"] for row in selector.explain().values()] == [0, 0, 1, 0]


def test_evidence_does_not_change_the_dialogues() -> None:
    """Common random numbers: with one member, both selectors play the same run."""
    portfolio, key = members([Traits(3)], [None]), counter.run_key(0, "one")
    esbas, shared = (whole_run(key, GAME, portfolio, PROTOCOL._replace(shared=each)) for each in (False, True))
    for got, expected in zip(shared, esbas, strict=True):
        np.testing.assert_array_equal(got, expected)
