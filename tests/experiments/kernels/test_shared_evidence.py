"""The compiled dialogue with shared evidence against the ordinary objects.

They agree choice by choice when both draw the same numbers.
"""

from typing import Any

import numpy as np
import pytest

from esbas import SharedEvidence
from esbas.experiments.envs import DialogueFeatures
from esbas.experiments.kernels import counter
from esbas.experiments.kernels.dialogue.one_dialogue import Traits
from esbas.experiments.kernels.dialogue.whole_runs import learner_arrays, whole_run
from esbas.experiments.kernels.shared_evidence import (
    SharedMemory,
    choose_shared,
    new_memory,
    observe_shared,
    start_shared,
)
from esbas.learners.linear_fqi import linear_constant
from experiments.kernels.dialogues import EPOCHS, GAME, PROTOCOL, fqi, play_objects


class Normals:
    """The kernel's normal numbers as a generator."""

    def __init__(self, key: np.uint64) -> None:
        self._key = counter.word(key, -1)
        self._next = 0

    def standard_normal(self, size: int) -> Any:
        self._next += size
        return np.array(
            [
                counter.normal(np.uint64(self._key), 2 * i)
                for i in range(self._next - size, self._next)
            ]
        )


def constant_weights() -> Any:
    weights = np.random.default_rng(0).normal(size=(5, 10))
    weights[4] = -9.0  # never ends the dialogue
    return weights


@pytest.mark.parametrize("seed", [5, 8])
@pytest.mark.parametrize("declared", [False, True], ids=["compared", "declared"])
def test_all_kinds_of_learners_are_chosen_as_with_the_objects(declared: bool, seed: int) -> None:
    """The kernel knows that the constant does not change.

    The object compares policies to find this out, or the option `stationary` declares it. With
    seed 8, choices would differ if the kernel counted one more choice in ln(τ + 1).
    """
    key = counter.run_key(seed, "shared")
    constant = constant_weights()
    learners = [
        fqi("simple"),
        fqi("fast-2"),
        linear_constant("constant", DialogueFeatures("simple-2"), constant),
        fqi("n-2-fast", seed=7),
    ]
    selector = SharedEvidence(
        [one.name for one in learners], epochs=EPOCHS, stationary=["constant"] if declared else []
    )
    selector.rng = Normals(key)  # type: ignore[assignment]
    values, arms, acts = play_objects(key, learners, selector)
    kinds = [
        Traits(3),
        Traits(2, square=1),
        Traits(3, square=1, constant=1),
        Traits(2, noise=2, seed=7),
    ]
    portfolio = learner_arrays(kinds, [None, None, constant, None])
    got_values, got_arms, got_acts, _ = whole_run(
        key, GAME, portfolio, PROTOCOL._replace(shared=True)
    )
    np.testing.assert_array_equal(got_arms, arms)
    np.testing.assert_array_equal(got_acts, acts)
    np.testing.assert_allclose(got_values, values, rtol=1e-12)
    assert set(arms) == set(range(4))
    assert [row["unchanged"] for row in selector.explain().values()] == [0, 0, 1, 0]


def test_evidence_does_not_change_the_dialogues() -> None:
    """Common random numbers: with one learner, both selectors play the same run."""
    portfolio = learner_arrays([Traits(3)], [None])
    key = counter.run_key(0, "one")
    esbas, shared = (
        whole_run(key, GAME, portfolio, PROTOCOL._replace(shared=each)) for each in (False, True)
    )
    for got, expected in zip(shared, esbas, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("z", "chosen"), [(1.05, 0), (1.025, 1)])
def test_the_number_of_choices_before_this_one_decides(z: float, chosen: int) -> None:
    """Choose as `tests/selectors/test_optimism_by_hand.py` computes by hand.

    With ln 3 or ln 5 instead of ln(τ + 1) = ln 4, one of the two choices would be another.
    """
    first = np.array([0.0, -np.inf])
    second = np.array([-np.inf, 0.0])
    memory = SharedMemory(*new_memory(2, 100))
    start_shared(memory, np.array([0, 0]))
    observe_shared(memory, 0, 0.0, first)
    observe_shared(memory, 1, 2.0, second)
    start_shared(memory, np.array([0, 1]))
    observe_shared(memory, 0, z, first)
    assert choose_shared(memory, 3, counter.run_key(0)) == chosen
