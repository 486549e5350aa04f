"""Copies and saved states of Kalman Thompson sampling."""

import copy
import json
import math
import pickle

import numpy as np
import pytest

from esbas import KalmanThompson
from esbas.errors import InvalidValueError


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda bandit: pickle.loads(pickle.dumps(bandit))]
)
def test_a_copy_continues_identically(copied):
    bandit = KalmanThompson(3, rng=np.random.default_rng(0))
    for t in range(30):
        bandit.update(bandit.choose(), math.sin(t))
    twin = copied(bandit)
    for t in range(60):
        arm = bandit.choose()
        assert twin.choose() == arm
        bandit.update(arm, math.cos(t) - arm)
        twin.update(arm, math.cos(t) - arm)
    assert twin.state_dict() == bandit.state_dict()


STATES = [
    ("rounds", -1, "at `rounds`"),
    ("origin", math.nan, "at `origin`"),
    ("unit", -1.0, "at `unit`"),
    ("seen", [], "A filter of 0 arms must have 0 means and 0 covariances, but got 3 and 6"),
    ("seen", [1, 2], "A filter of 2 arms must have 2 means and 3 covariances"),
    ("squares", [0.0] * 8, "a list of length 9 at `squares`"),
    ("squares", [-1.0] * 9, "at `squares"),
    ("log_weights", [math.inf] * 9, "at `log_weights"),
    ("means", [[0.0] * 3] * 8 + [[0.0] * 2], "but got 2 and 6: go back to an earlier copy"),
    ("covariances", [[1.0] * 5] * 9, "but got 3 and 5: go back to an earlier copy"),
    ("covariances", [[0.0] * 6] * 9, "The variances of a bandit's filters must be positive"),
    ("covariances", [[1e300] * 6] * 9, "at `covariances"),
]


@pytest.mark.parametrize(("name", "value", "match"), STATES)
def test_a_state_that_does_not_fit_is_refused(name, value, match):
    bandit = KalmanThompson(3)
    for t in range(20):
        bandit.update(t % 3, float(t % 4))
    before = json.dumps(bandit.state_dict())
    state = json.loads(before)
    state["filters"][name] = value
    with pytest.raises(InvalidValueError, match=match):
        bandit.load_state_dict(state)
    assert json.dumps(bandit.state_dict()) == before
    with pytest.raises(InvalidValueError, match=r"The filters in .* must have 3 arms, but have 2"):
        bandit.load_state_dict(json.loads(before) | {"filters": KalmanThompson(2).filters})
