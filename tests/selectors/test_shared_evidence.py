"""Shared evidence: by hand, against brute force, across epochs, and in runs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas import Evidence, SharedEvidence, Trajectory, resume, run
from esbas.errors import InvalidValueError
from esbas.learners import Constant, TabularQ
from esbas.selectors.epoch_evidence import EpochEvidence
from esbas.testing import Corridor

UNKNOWN = -math.inf


class Draws:
    """A generator whose normal numbers are given."""

    def __init__(self, *normals):
        self.normals = normals

    def standard_normal(self, size):
        return np.array(self.normals[:size])


def trajectory(steps=1):
    return Trajectory(
        np.zeros(steps + 1), np.zeros(steps, int), np.zeros(steps), True, False, np.zeros(steps)
    )


def tell(selector, arm, value, **log_probs):
    """An episode of one step by this arm, with the log-probabilities of its action."""
    choice = selector.ask(among=[arm])
    of = {name: np.array([log_prob]) for name, log_prob in log_probs.items()}
    evidence = (
        Evidence(trajectory=trajectory(), value=value, arm=arm, log_probs_of=of) if of else None
    )
    selector.tell(choice, value, evidence=evidence)


def test_estimates_by_hand():
    # Two trajectories by a with the values 1 and 0, one by b with 0. p_a = 1/2, 1/2, 1/4 and p_b =
    # 1/2, 1/4, 1/2.
    # Mixtures (2 p_a + p_b) / 3 = 1/2, 5/12, 1/3. Weights of a: 1, 6/5, 3/4; of b: 1, 3/5, 3/2.
    # S_a = 59/20, V_a = 20/59; S_b = 31/10, V_b = 10/31. The values' mean is 1/3 and s² = 2/9.
    selector = SharedEvidence("ab", epochs=[100])
    tell(selector, "a", 1.0, a=math.log(1 / 2), b=math.log(1 / 2))
    tell(selector, "a", 0.0, a=math.log(1 / 2), b=math.log(1 / 4))
    tell(selector, "b", 0.0, a=math.log(1 / 4), b=math.log(1 / 2))
    report = selector.explain()
    va = 20 / 59
    vb = 10 / 31
    variance_a = ((1 - va) ** 2 + (6 / 5 * va) ** 2 + (3 / 4 * va) ** 2) / (59 / 20) ** 2 + 4 * (
        2 / 9
    ) / 4
    variance_b = ((1 - vb) ** 2 + (3 / 5 * vb) ** 2 + (3 / 2 * vb) ** 2) / (31 / 10) ** 2 + 4 * (
        2 / 9
    )
    assert report["a"] == pytest.approx(
        {
            "selections": 2,
            "open": 0,
            "late": 0,
            "pulls": 2,
            "unchanged": 0,
            "value": va,
            "spread": variance_a**0.5,
        }
        | {"effective": (59 / 20) ** 2 / (1 + 36 / 25 + 9 / 16)}
    )
    assert (report["b"]["value"], report["b"]["spread"]) == pytest.approx((vb, variance_b**0.5))
    assert report["b"]["effective"] == pytest.approx((31 / 10) ** 2 / (1 + 9 / 25 + 9 / 4))
    selector.rng = Draws(0.0, 1.0)  # the sample of b is V_b + L_bb, that of a is V_a
    assert selector.ask().arm == "b"
    selector.rng = Draws(0.0, -1.0)
    assert selector.ask().arm == "a"


def brute_force(history, arms):
    """Return V, C and effective sample sizes by the definition, in plain Python.

    Trajectories are (arm, value, log-probabilities).
    """
    t = len(history)
    values = [value for _, value, _ in history]
    n = [max(sum(arm == k for arm, _, _ in history), 1) for k in range(arms)]
    mean = sum(values) / t
    s2 = max(sum((value - mean) ** 2 for value in values) / t, (1e-12 * mean) ** 2, 1e-200)
    p = [[math.exp(each) for each in row] for _, _, row in history]
    w = [
        [p[i][k] / sum(n[j] / t * p[i][j] for j in range(arms)) for k in range(arms)]
        for i in range(t)
    ]
    s = [sum(w[i][k] for i in range(t)) for k in range(arms)]
    v = [sum(w[i][k] * values[i] for i in range(t)) / s[k] if s[k] else mean for k in range(arms)]
    c = [[0.0] * arms for _ in range(arms)]
    for k in range(arms):
        for m in range(arms):
            total = sum(
                w[i][k] * (values[i] - v[k]) * w[i][m] * (values[i] - v[m]) for i in range(t)
            )
            c[k][m] = total / max(s[k], 1) / max(s[m], 1) + (4 * s2 / n[k] ** 2 if k == m else 0)
    return (
        v,
        c,
        [s[k] ** 2 / sum(w[i][k] ** 2 for i in range(t)) if s[k] else 0.0 for k in range(arms)],
    )


LOG_PROBS = st.floats(-12, 2) | st.just(UNKNOWN)
HISTORY = st.lists(
    st.tuples(st.integers(0, 2), st.floats(-50, 50), st.tuples(LOG_PROBS, LOG_PROBS, LOG_PROBS)),
    min_size=1,
    max_size=12,
)


@given(HISTORY)
def test_fits_equal_the_definition(history):
    history = [
        (arm, value, [-1.0 if k == arm else row[k] for k in range(3)])
        for arm, value, row in history
    ]
    evidence = EpochEvidence(3)
    for arm, value, row in history:
        evidence.add(arm, value, row)
    # up to 12 trajectories, every one is followed by a fit
    v, c, effective = brute_force(history, 3)
    assert evidence.estimates.tolist() == pytest.approx(v, abs=1e-9)
    assert evidence.covariance.tolist() == [pytest.approx(row, rel=1e-9, abs=1e-9) for row in c]
    assert evidence.effective.tolist() == pytest.approx(effective)
    assert np.linalg.eigvalsh(evidence.covariance).min() > -1e-9


def test_without_overlap_it_is_thompson_sampling_on_own_values():
    rng = np.random.default_rng(0)
    evidence = EpochEvidence(2)
    values = {0: [], 1: []}
    for t in range(60):
        arm = int(t % 3 == 0)
        values[arm].append(float(rng.normal(arm)))
        evidence.add(arm, values[arm][-1], [UNKNOWN if k != arm else -700.0 for k in range(2)])
    evidence.fit()
    both = np.array(values[0] + values[1])
    for k, own in values.items():
        assert evidence.estimates[k] == pytest.approx(np.mean(own))
        assert evidence.covariance[k, k] == pytest.approx(
            np.var(own) / len(own) + 4 * both.var() / len(own) ** 2
        )
        assert evidence.effective[k] == pytest.approx(len(own))
    assert evidence.covariance[0, 1] == 0
    normals = np.array([0.3, -2.0])
    assert evidence.sample(normals) == pytest.approx(
        evidence.estimates + normals * np.sqrt(evidence.covariance.diagonal())
    )


def test_equal_policies_share_all_trajectories_and_long_episodes_are_safe():
    evidence = EpochEvidence(2)
    for t, value in enumerate([3.0, 1.0, 2.0, 2.0]):
        evidence.add(t % 2, value, [-1e6 * (t + 1)] * 2)  # probabilities that no float can hold
    assert evidence.estimates.tolist() == pytest.approx([2.0, 2.0])
    assert evidence.effective.tolist() == pytest.approx([4.0, 4.0])
    evidence.add(0, 2.0, [-1e6, -2e6])  # no overlap: it counts for the first alone
    assert evidence.estimates.tolist() == pytest.approx([2.0, 2.0])
    # w = 1, 1, 1, 1, 5 / 3
    assert evidence.effective.tolist() == pytest.approx([(4 + 5 / 3) ** 2 / (4 + 25 / 9), 4.0])


def test_values_of_any_size_are_safe():
    selector = SharedEvidence("ab", seed=1)
    for value in (1e308, -1e308, 0.0, 1e-308) * 10:
        selector.tell(selector.ask(), value)
    assert all(
        math.isfinite(number) for row in selector.explain().values() for number in row.values()
    )


def test_arms_with_equal_values_are_chosen_at_random():
    selector = SharedEvidence("abc", epochs=[300])
    for _ in range(300):
        selector.tell(selector.ask(), 5.0)
    assert min(row["selections"] for row in selector.explain().values()) > 50


def test_an_epoch_of_equal_values_does_not_decide_for_ever():
    """All values were 0 so far, so nothing is known about their variance.

    The constant must still be able to recover.
    """
    selector = SharedEvidence("ab", epochs=[4, 4, 400], stationary=["b"])
    for number in range(408):
        choice = selector.ask()
        selector.tell(choice, float(choice.arm == "b" and number > 8 and number % 2))
    assert selector.explain()["b"]["selections"] > 200


def test_fits_become_rare():
    evidence = EpochEvidence(1)
    fits = []
    for t in range(1, 101):
        evidence.add(0, float(t), [0.0])
        fits += [t] if evidence.fitted == t else []
    assert fits[:16] == [*range(1, 13), 14, 16, 18, 20]
    assert fits[-1] < 100


def test_an_unchanged_arm_keeps_its_evidence():
    """Two epochs of a constant, whose estimates are observations of its value in the third.

    They are weighted by inverse variance.
    """
    evidence = EpochEvidence(2)
    kept = []
    for values in ([1.0, 2.0, 4.0], [2.0, 2.5, 3.0]):
        for t, value in enumerate(values):
            evidence.add(t % 2, value, [-0.1, -0.2 * (t + 1)])
        estimates, covariance, _ = evidence._of_this_epoch()
        kept.append((estimates[1], 1 / covariance[1, 1]))
        evidence.start_epoch([False, True])
    precision = sum(weight for _, weight in kept)
    mean = sum(estimate * weight for estimate, weight in kept) / precision
    assert (evidence.means[1], evidence.precisions[1], evidence.pulls[1]) == pytest.approx(
        (mean, precision, 2)
    )
    # of the last epoch alone: its policy changed
    assert evidence.means[0] == pytest.approx(estimates[0])
    evidence.add(0, 3.0, [-0.1, -0.2])
    v, c, _ = evidence._of_this_epoch()
    gain = c[:, 1] / (c[1, 1] + max(1 / precision, 4 * evidence.s2 / 2**2))
    assert evidence.estimates.tolist() == pytest.approx((v + gain * (mean - v[1])).tolist())
    assert evidence.covariance.tolist() == [
        pytest.approx(row) for row in (c - np.outer(gain, c[1])).tolist()
    ]


def test_unchanged_arms_are_compared_by_an_upper_bound():
    selector = SharedEvidence("ab", epochs=[2], stationary=["b"])
    for arm, value in (("a", 1.0), ("b", 0.0)):
        tell(selector, arm, value, a=-0.5, b=-2.0)
    choice = selector.ask()
    # b is known, and goes without a pull
    assert (choice.arm, choice.epoch, choice.propensity) == ("a", 1, 1.0)
    selector.tell(choice, 1.0)
    report = selector.explain()
    assert (report["a"]["unchanged"], report["b"]["unchanged"]) == (0, 1)
    bounds = {
        arm: row["value"] + math.sqrt(math.log(4)) * row["spread"] for arm, row in report.items()
    }
    assert selector.ask().arm == max(bounds, key=bounds.get)


def test_an_arm_without_probabilities_is_judged_by_its_own_episodes_and_it_says_so_once():
    selector = SharedEvidence("abc", epochs=[100])
    with pytest.warns(
        UserWarning,
        match="No log-probabilities from 'c': they are judged by their own episodes only",
    ):
        tell(selector, "a", 1.0, a=-1.0, b=-1.0)
    # without another warning, which would be an error
    for arm, value in (("b", 2.0), ("c", 9.0), ("c", 7.0), ("a", 3.0)):
        tell(selector, arm, value, a=-1.0, b=-1.0)
    report = selector.explain()
    assert [report[arm]["value"] for arm in "abc"] == pytest.approx([2.0, 2.0, 8.0])
    assert [report[arm]["effective"] for arm in "abc"] == pytest.approx([3, 3, 2])


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_odd_log_probabilities_count_as_unknown(odd):
    selector = SharedEvidence("ab", epochs=[100])
    tell(selector, "a", 1.0, a=-1.0, b=odd)
    tell(selector, "b", 2.0, a=-1.0, b=odd)
    assert [row["value"] for row in selector.explain().values()] == pytest.approx([1.0, 2.0])
    SharedEvidence("ab", epochs=[100]).load_state_dict(
        json.loads(json.dumps(selector.state_dict()))
    )


def test_late_values_and_withdrawn_choices_are_not_evidence():
    selector = SharedEvidence("ab", epochs=[2, 4])
    late = selector.ask()
    lost = selector.ask()
    selector.withdraw(lost)
    assert selector.ask().arm == "a"  # a new epoch
    selector.tell(late, 100.0)
    report = selector.explain()
    assert (report["a"]["late"], report["a"]["effective"], report["b"]["pulls"]) == (1, 0, 0)
    second = selector.ask()
    selector.withdraw(second)
    assert (second.arm, selector.ask().arm) == ("b", "b")  # it has no pull again


def test_a_new_arm_is_judged_alone_until_the_next_epoch():
    selector = SharedEvidence("ab", epochs=[6, 6])
    tell(selector, "a", 1.0, a=-1.0, b=-1.0)
    selector.add_arm("c")
    for arm, value in (("c", 5.0), ("b", 3.0)):
        tell(selector, arm, value, a=-1.0, b=-1.0, c=-1.0)
    assert [row["value"] for row in selector.explain().values()] == pytest.approx([2.0, 2.0, 5.0])
    selector.remove_arm("b")  # and its trajectory
    assert [row["value"] for row in selector.explain().values()] == pytest.approx([1.0, 5.0])
    # two of them in the next epoch
    for arm, value in (("a", 0.0), ("a", 0.0), ("a", 0.0), ("a", 4.0), ("c", 8.0)):
        tell(selector, arm, value, a=-1.0, c=-1.0)
    assert [row["value"] for row in selector.explain().values()] == pytest.approx([6.0, 6.0])


def test_few_numbers_are_kept_to_compare_policies():
    selector = SharedEvidence("ab", epochs=[100])
    for steps, width in ((10, 3), (1, 5000), (2000, 2), (100, 3)):
        long = Trajectory(
            np.zeros((steps + 1, width)),
            np.zeros(steps),
            np.zeros(steps),
            True,
            False,
            np.zeros(steps),
        )
        choice = selector.ask(among=["a"])
        of = {arm: np.zeros(steps) for arm in "ab"}
        selector.tell(
            choice, 1.0, evidence=Evidence(trajectory=long, value=1.0, arm="a", log_probs_of=of)
        )
    kept = [each["actions"][1] for each in selector.state_dict()["probes"]["trajectories"]]
    # the first is too old by then, and one step of the second is too large
    assert [len(actions) for actions in kept] == [100]


def test_a_state_may_have_whole_numbers_of_any_size():
    selector = SharedEvidence("ab", epochs=[100])
    tell(selector, "a", 1.0, a=-1.0, b=-1.0)
    state = selector.state_dict()
    state["evidence"]["log_probs"][0] = [-(10**200), -(10**201)]
    selector.load_state_dict(state)
    assert selector.explain()["a"]["effective"] == 1


def learners():
    explore = {"states": 6, "actions": 2, "epsilon": lambda episode: 0.5**episode}
    return [
        TabularQ("slow", learning_rate=0.05, **explore),
        TabularQ("fast", learning_rate=0.5, **explore),
        Constant("wander", lambda place: int(place != 2)),
    ]


def corridor_run(selector, episodes):
    return run(
        Corridor(6, slip=0.2, max_episode_steps=30), learners(), selector, episodes=episodes, seed=1
    )


NAMES = "slow", "fast", "wander"


def test_policies_are_compared_across_epochs_and_a_resumed_run_ends_equally(tmp_path):
    """The constant is not declared as stationary, and is found.

    The run is saved between two epochs, when the comparison is still due.
    """
    epochs = [8, 8, 16]
    whole = corridor_run(SharedEvidence(NAMES, epochs=epochs), 30)
    records = list(whole)
    assert whole.selector.explain()["wander"]["unchanged"] == 1
    assert whole.selector.explain()["fast"]["unchanged"] == 0
    first = corridor_run(SharedEvidence(NAMES, epochs=epochs), 30)
    half = [next(first) for _ in range(16)]
    first.save(tmp_path / "run.npz")
    rest = resume(
        tmp_path / "run.npz",
        Corridor(6, slip=0.2, max_episode_steps=30),
        learners(),
        SharedEvidence(NAMES, epochs=epochs),
    )
    assert half + list(rest) == records
    assert rest.selector.state_dict() == whole.selector.state_dict()


def test_trajectories_of_similar_policies_count_for_each_other():
    going = corridor_run(SharedEvidence(NAMES, epochs=[60]), 60)
    for _ in going:
        pass
    report = going.selector.explain()  # in the first epoch both learners act at random
    for arm in ("slow", "fast"):
        assert report[arm]["effective"] > 0.9 * (report["slow"]["pulls"] + report["fast"]["pulls"])
    assert report["wander"]["effective"] < 60


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("evidence",), {}, "the keys"),
        (("evidence", "arms", 0), 7, "but has 3 arms and a trajectory of arm 7"),
        (("evidence", "values"), [], "a value and log-probabilities per trajectory, but got 0"),
        (("evidence", "values", 0), math.nan, "but got nan"),
        (("evidence", "log_probs", 0), [0.0], "must have one number per arm"),
        (("evidence", "precisions", 0), 0.0, "must have a precision where there were pulls"),
        (("evidence", "unchanged", 0), 1, "true or false"),
        (("pulls",), [], "pulls and evidence for each of its 3 arms, but got 0 and 3"),
        (("probes", "epoch"), -1, "a whole number >= 0"),
        (
            ("probes", "trajectories", 0, "observations", 0),
            "O",
            "The kept trajectories must have observations and actions",
        ),
        (
            ("probes", "trajectories", 0, "observations", 1, 0),
            [1, 2],
            "The kept trajectories must have observations and actions",
        ),
        (
            ("probes", "trajectories", 0, "log_probs", "slow"),
            [],
            "The kept trajectories must have a log-probability for each of",
        ),
    ],
)
def test_a_hostile_state_is_refused_and_changes_nothing(path, value, match):
    going = corridor_run(SharedEvidence(NAMES, epochs=[8, 8, 16]), 14)
    for _ in going:
        pass
    state = json.loads(json.dumps(going.selector.state_dict()))
    part = state
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    selector = SharedEvidence(NAMES, epochs=[8, 8, 16])
    before = selector.state_dict()
    with pytest.raises(InvalidValueError, match=match):
        selector.load_state_dict(state)
    assert selector.state_dict() == before
