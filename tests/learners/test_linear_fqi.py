import numpy as np
import pytest

import esbas
from esbas.errors import InvalidValueError
from esbas.experiments.envs import DialogueFeatures, NegotiationDialogue, negotiation_return
from esbas.learners import LinearFQI, linear_constant
from esbas.testing import Corridor, OneStep, check_learner


def random_data(rng, *, trajectories=60, size=4, actions=3, terminated=0.8):
    """Trajectories of random observations; in each, action 2 can only come last."""
    data = esbas.TrajectorySet()
    for _ in range(trajectories):
        steps = int(rng.integers(1, 7))
        chosen = rng.integers(0, actions - 1, steps)
        chosen[-1] = rng.integers(actions)
        ends = bool(chosen[-1] == actions - 1 or rng.random() < terminated)
        data.append(
            esbas.Trajectory(
                rng.normal(size=(steps + 1, size)), chosen, rng.normal(size=steps), ends, not ends
            )
        )
    return data


def plain_fqi(data, *, actions, gamma, ridge, iterations, features=lambda seen: seen):
    """Solve least squares for each action and iteration, with the ridge as additional rows."""
    steps = [step for trajectory in data.since(0) for step in trajectory.transitions()]
    phi = np.array([features(step.observation) for step in steps])
    following = np.array([features(step.next_observation) for step in steps])
    size = phi.shape[1]
    weights = np.zeros((actions, size))
    for _ in range(iterations):
        best = (following @ weights.T).max(axis=1)
        targets = np.array(
            [
                step.reward + (0 if step.terminated else gamma * value)
                for step, value in zip(steps, best, strict=True)
            ]
        )
        new = np.zeros_like(weights)
        for action in range(actions):
            chosen = np.array([step.action == action for step in steps])
            rows = np.vstack([phi[chosen], np.sqrt(ridge) * np.eye(size)])
            new[action] = np.linalg.lstsq(
                rows, np.concatenate([targets[chosen], np.zeros(size)]), rcond=None
            )[0]
        weights = new
    return weights


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ridge", [0.05, 1e-6, 10.0])
def test_equals_plain_least_squares(seed, ridge):
    data = random_data(np.random.default_rng(seed))
    for iterations in (1, 2, 7):
        learner = LinearFQI(
            "fqi",
            lambda seen: seen,
            actions=3,
            gamma=0.9,
            ridge=ridge,
            tolerance=0,
            max_iterations=iterations,
        )
        learner.learn(data)
        expected = plain_fqi(data, actions=3, gamma=0.9, ridge=ridge, iterations=iterations)
        assert learner.weights == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_equals_plain_least_squares_on_dialogues():
    env = NegotiationDialogue()
    features = DialogueFeatures("simple-2")
    learner = LinearFQI("simple-2", features, actions=5, gamma=0.9)
    run = esbas.run(
        env, [learner], esbas.ESBAS(["simple-2"], scale=None, epochs=[100, 100, 1]), episodes=201
    )
    list(run)
    first = esbas.TrajectorySet()
    for trajectory in run.data.since(0)[:200]:
        first.append(trajectory)
    expected = plain_fqi(first, actions=5, gamma=0.9, ridge=0.05, iterations=200, features=features)
    # it stops earlier, when the weights change by less than 0.001
    assert learner.weights == pytest.approx(expected, abs=2e-2)
    precise = LinearFQI("precise", features, actions=5, gamma=0.9, tolerance=0)
    precise.learn(first)
    assert precise.weights == pytest.approx(expected, rel=1e-6, abs=1e-6)


def chain(rng):
    """Sample every state and action of a small environment with random ends.

    Also return its rewards, successors and ends.
    """
    states = 6
    actions = 3
    rewards = rng.normal(size=(states, actions))
    successors = rng.integers(0, states, (states, actions))
    ends = rng.random((states, actions)) < 0.3
    data = esbas.TrajectorySet()
    one_hot = np.eye(states)
    for state in range(states):
        for action in range(actions):
            seen = one_hot[[state, successors[state, action]]]
            data.append(
                esbas.Trajectory(
                    seen,
                    np.array([action]),
                    rewards[state, [action]],
                    bool(ends[state, action]),
                    True,
                )
            )
    return data, rewards, successors, ends


@pytest.mark.parametrize("seed", range(4))
def test_converges_to_value_iteration_with_one_hot_features(seed):
    data, rewards, successors, ends = chain(np.random.default_rng(seed))
    values = np.zeros_like(rewards)
    for _ in range(500):
        values = rewards + 0.9 * ~ends * values[successors].max(axis=2)
    learner = LinearFQI(
        "fqi",
        lambda seen: seen,
        actions=3,
        gamma=0.9,
        ridge=1e-9,
        tolerance=1e-9,
        max_iterations=1000,
    )
    learner.learn(data)
    found = learner.weights.T  # (states, actions)
    assert found == pytest.approx(values, abs=1e-6)
    greedy = LinearFQI(
        "greedy", lambda seen: seen, actions=3, gamma=0.9, ridge=1e-9, epsilon=lambda _: 0.0
    )
    greedy.learn(data)
    rng = np.random.default_rng(0)
    assert [greedy.policy().act(seen, rng) for seen in np.eye(6)] == values.argmax(axis=1).tolist()


def test_stops_when_the_weights_move_by_no_more_than_the_tolerance():
    data = random_data(np.random.default_rng(0))

    def after(iterations, tolerance=0.0):
        learner = LinearFQI(
            "fqi",
            lambda seen: seen,
            actions=3,
            gamma=0.9,
            max_iterations=iterations,
            tolerance=tolerance,
        )
        learner.learn(data)
        return learner.weights

    # in the 2nd iteration, the 3rd, ...
    moves = [np.linalg.norm(after(k) - after(k - 1)) for k in range(2, 12)]
    assert moves[4] > moves[5]
    halfway = (moves[4] + moves[5]) / 2
    assert np.array_equal(after(100, tolerance=halfway), after(7))


def test_learning_in_parts_equals_learning_at_once():
    whole = random_data(np.random.default_rng(3))
    growing, learner = (
        esbas.TrajectorySet(),
        LinearFQI("parts", lambda seen: seen, actions=3, tolerance=1e-10),
    )
    for trajectory in whole.since(0):
        growing.append(trajectory)
        if len(growing) in (1, 2, 17, 60):
            learner.learn(growing)
    at_once = LinearFQI("at once", lambda seen: seen, actions=3, tolerance=1e-10)
    at_once.learn(whole)
    assert learner.weights == pytest.approx(at_once.weights, abs=1e-8)


def test_batch_of_a_feature_map_is_used_and_gives_the_same():
    class Squares:
        calls = 0

        def __call__(self, seen):
            return seen**2

        def batch(self, seen):
            self.calls += 1
            return seen**2

    data, squares = random_data(np.random.default_rng(4)), Squares()
    with_batch, without = (
        LinearFQI("fqi", features, actions=3) for features in (squares, lambda seen: seen**2)
    )
    with_batch.learn(data)
    without.learn(data)
    assert squares.calls == 2
    assert np.array_equal(with_batch.weights, without.weights)


def test_epsilon_follows_the_epochs_of_the_paper():
    learner = LinearFQI("fqi", lambda seen: seen, actions=3)
    seen = np.ones(4)
    for epoch in range(4):
        probabilities = sorted(
            np.exp(learner.policy().log_probs(np.array([seen] * 3), np.arange(3)))
        )
        epsilon = 0.6**epoch
        assert probabilities == pytest.approx([epsilon / 3, epsilon / 3, 1 - 2 * epsilon / 3])
        learner.learn(random_data(np.random.default_rng(5), trajectories=2 ** (epoch + 1) - 1))


def test_a_policy_does_not_change_when_its_learner_continues_to_learn():
    learner = LinearFQI("fqi", lambda seen: seen, actions=3, epsilon=lambda _: 0.0)
    learner.learn(random_data(np.random.default_rng(6)))
    policy, seen = learner.policy(), np.random.default_rng(7).normal(size=(50, 4))
    before = [policy.act(each, np.random.default_rng(0)) for each in seen]
    learner.learn(random_data(np.random.default_rng(8), trajectories=200))
    assert [policy.act(each, np.random.default_rng(0)) for each in seen] == before
    assert [learner.policy().act(each, np.random.default_rng(0)) for each in seen] != before


@pytest.mark.parametrize("name", ["simple", "n-2-fast-2"])
def test_keeps_the_contract_of_learners_in_dialogues(name):
    check_learner(
        lambda: LinearFQI(name, DialogueFeatures(name, seed=3), actions=5, gamma=0.9),
        NegotiationDialogue(),
    )


def test_keeps_the_contract_of_learners_in_other_tasks():
    check_learner(lambda: LinearFQI("one-hot", lambda seen: np.eye(5)[seen], actions=2), Corridor())
    # every step ends the episode
    check_learner(lambda: LinearFQI("bandit", lambda _: np.ones(1), actions=3), OneStep())


def test_learns_the_corridor():
    learner = LinearFQI(
        "one-hot",
        lambda seen: np.eye(5)[seen],
        actions=2,
        epsilon=lambda epoch: 0.0 if epoch else 1.0,
    )
    values = [
        r.length
        for r in esbas.run(
            Corridor(slip=0.0), [learner], esbas.ESBAS(["one-hot"], epochs=[50, 10]), episodes=60
        )
    ]
    assert values[50:] == [4] * 10


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    def parts():
        learners = [
            LinearFQI(name, DialogueFeatures(name), actions=5, gamma=0.9)
            for name in ("simple-2", "n-1-fast")
        ]
        return (
            NegotiationDialogue(),
            learners,
            esbas.ESBAS([each.name for each in learners], scale=None, epochs=[20, 20]),
        )

    whole = list(esbas.run(*parts(), episodes=200, objective=negotiation_return(), seed=1))
    run = esbas.run(*parts(), episodes=200, objective=negotiation_return(), seed=1)
    for _ in range(70):
        next(run)
    run.save(tmp_path / "run")
    rest = list(esbas.resume(tmp_path / "run", *parts(), objective=negotiation_return()))
    assert rest == whole[70:]


def test_learns_to_negotiate():
    learner = LinearFQI("simple-2", DialogueFeatures("simple-2"), actions=5, gamma=0.9)
    selector = esbas.ESBAS(["simple-2"], scale=None, epochs=[20, 20])
    records = list(
        esbas.run(
            NegotiationDialogue(),
            [learner],
            selector,
            episodes=1280,
            objective=negotiation_return(),
        )
    )
    # random acts have a mean of 0.55
    assert np.mean([record.value for record in records[640:]]) > 1.0
    assert np.mean([record.value for record in records[:20]]) < 0.9


def test_constant_always_acts_greedily_on_its_weights():
    features = DialogueFeatures("fast")
    weights = np.zeros((5, features.size))
    weights[3, 1], weights[1, 0] = 1.0, 0.6  # accept if the score is above 0.6, propose otherwise
    constant = linear_constant("constant", features, weights)
    weights[:] = 0  # the learner has its own copy
    assert constant.stationary
    seen = NegotiationDialogue().reset(seed=0, options={"user_starts": False})[0]
    rng = np.random.default_rng(0)
    assert constant.policy().act(seen, rng) == 1
    seen[1] = 0.7
    assert constant.policy().act(seen, rng) == 3
    check_learner(
        lambda: linear_constant("constant", features, np.eye(5, features.size)),
        NegotiationDialogue(),
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ridge": 0.0}, "`ridge` must be greater than 0, but got 0.0."),
        ({"gamma": 1.1}, "`gamma` must be between 0 and 1, but got 1.1."),
        ({"actions": 0}, "`actions` must be at least 1, but got 0."),
        ({"max_iterations": 0}, "`max_iterations` must be at least 1, but got 0."),
        ({"tolerance": -1.0}, "`tolerance` must be at least 0, but got -1.0."),
    ],
)
def test_bad_settings_raise_a_clear_error(settings, sentence):
    with pytest.raises(InvalidValueError) as caught:
        LinearFQI("fqi", lambda seen: seen, **{"actions": 2} | settings)
    assert str(caught.value) == sentence


def test_refuses_features_that_are_not_a_vector():
    with pytest.raises(InvalidValueError, match="`features` must return a vector for each obs"):
        LinearFQI("fqi", lambda seen: seen[0], actions=3).learn(
            random_data(np.random.default_rng(0))
        )


def test_broken_features_raise_and_leave_the_learner_unchanged():
    broken = False
    learner, other = (
        LinearFQI("fqi", lambda seen: seen * np.nan if broken else seen, actions=3)
        for _ in range(2)
    )
    few, more = (random_data(np.random.default_rng(0), trajectories=count) for count in (9, 12))
    for each in (learner, other):
        each.learn(few)
    broken = True
    with pytest.raises(InvalidValueError, match="`features` must return finite numbers, but"):
        learner.learn(more)
    assert np.array_equal(learner.weights, other.weights)
    broken = False
    for each in (learner, other):
        each.learn(more)
    assert np.array_equal(learner.weights, other.weights)


def test_refuses_data_that_have_shrunk():
    learner = LinearFQI("fqi", lambda seen: seen, actions=3)
    learner.learn(random_data(np.random.default_rng(0), trajectories=9))
    with pytest.raises(InvalidValueError, match="The data must only grow, but a learner that has"):
        learner.learn(random_data(np.random.default_rng(0), trajectories=8))
