"""The policy and the metrics of a learner in a separate process."""

import numpy as np

import breakable
from esbas.isolation import Isolated
from esbas.trajectory import Transition


def test_a_new_process_continues_from_a_loaded_policy():
    learner = breakable.tabular()
    isolated = Isolated(breakable.tabular)
    learner.step(Transition(1, 0, 3.0, 0, True, False))
    isolated.load_policy_state(learner.policy_state())
    isolated.close()  # the next process starts from the last snapshot
    assert np.array_equal(isolated.policy_state()["table"], learner.table)
    isolated.step(Transition(1, 0, 3.0, 0, True, False))
    assert isolated.metrics() == {"epsilon": 0.3, "mean Q": 3.0, "TD error": 0.0}
    isolated.close()
