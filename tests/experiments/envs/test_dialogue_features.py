import numpy as np
import pytest

import esbas
from esbas.errors import InvalidValueError
from esbas.experiments.envs import DialogueFeatures, NegotiationDialogue
from esbas.experiments.envs.dialogue.features import scatter
from esbas.learners import LinearFQI

COSTS = [0.1, 0.3, 0.6, 0.9]
# act 3, score 0.7, heard rank 2, proposed rank 0, the next proposal is rank 1
SEEN = np.array([3, 0.7, 2, 0, 1, *COSTS])
ASR = 0.7
DIF = 0.6 - 0.3
TIME = 0.3 / 1.3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fast", [1, ASR, DIF]),
        ("simple", [1, ASR, DIF, TIME]),
        ("fast-2", [1, ASR, DIF, ASR**2, ASR * DIF, DIF**2]),
        (
            "simple-2",
            [1, ASR, DIF, TIME, ASR**2, ASR * DIF, ASR * TIME, DIF**2, DIF * TIME, TIME**2],
        ),
    ],
)
def test_features_by_hand(name, expected):
    features = DialogueFeatures(name)
    assert features(SEEN) == pytest.approx(expected)
    assert features.size == len(expected)


def test_features_by_hand_before_anything_was_heard():
    first = np.array([1, 0.5, -1, -1, 0, *COSTS])
    assert DialogueFeatures("simple")(first) == pytest.approx([1, 0.5, 1 - 0.1, 0.1 / 1.1])


@pytest.mark.parametrize(
    ("name", "size"), [("n-1-fast", 4), ("n-2-simple", 6), ("n-1-simple-2", 15), ("n-3-fast-2", 21)]
)
def test_noise_adds_base_features_and_with_2_their_products(name, size):
    assert DialogueFeatures(name).size == len(DialogueFeatures(name)(SEEN)) == size


def test_noise_comes_after_the_papers_features():
    plain = DialogueFeatures("simple")(SEEN)
    noisy = DialogueFeatures("n-1-simple-2")(SEEN)
    assert noisy[:4].tolist() == plain.tolist()
    assert 0 <= noisy[4] < 1
    assert noisy[14] == noisy[4] ** 2


def test_a_batch_equals_single_observations():
    seen = observations(dialogues=20)
    for name in ("simple", "fast-2", "n-2-simple-2"):
        features = DialogueFeatures(name, seed=5)
        assert np.array_equal(features.batch(seen), [features(each) for each in seen])


def observations(*, dialogues, acts=6):
    """(dialogues · acts, 9): a system that asks to repeat."""
    env = NegotiationDialogue()
    env.reset(seed=0)
    seen = []
    for _ in range(dialogues):
        seen.append(env.reset()[0])
        seen += [env.step(2)[0] for _ in range(acts - 1)]
    return np.array(seen)


def test_noise_looks_uniform_and_independent():
    dialogues = 4000
    acts = 5
    seen = observations(dialogues=dialogues, acts=acts)
    columns = [
        DialogueFeatures("n-2-fast", seed=seed).batch(seen)[:, 3:].reshape(dialogues, 2 * acts)
        for seed in (0, 1)
    ]
    noise = np.hstack(columns)  # (dialogues, 20): two instances, five turns, two features
    assert noise.min() >= 0
    assert noise.max() < 1
    margin = 5 / np.sqrt(dialogues)
    assert noise.mean(axis=0) == pytest.approx(np.full(20, 0.5), abs=margin * np.sqrt(1 / 12))
    assert (noise**2).mean(axis=0) == pytest.approx(np.full(20, 1 / 3), abs=margin * 0.3)
    correlation = np.corrcoef(noise.T) - np.eye(20)
    assert np.abs(correlation).max() < margin
    successive = [np.corrcoef(column[:-1], column[1:])[0, 1] for column in noise.T]
    assert np.abs(successive).max() < margin
    costs = np.sort(seen[::acts, 5:], axis=1)
    assert (
        max(abs(np.corrcoef(column, cost)[0, 1]) for column in noise.T for cost in costs.T) < margin
    )
    assert len(np.unique(noise)) > 0.999 * noise.size


def test_noise_is_the_same_for_acting_and_training():
    class Watched:
        """Records the features for acting and for training."""

        def __init__(self, name, *, seed):
            self.features = DialogueFeatures(name, seed=seed)
            self.acted = {}
            self.trained = {}

        def __call__(self, observation):
            features = self.features(observation)
            self.acted[observation.tobytes()] = features.tobytes()
            return features

        def batch(self, observations):
            rows = self.features.batch(observations)
            self.trained |= {
                seen.tobytes(): row.tobytes() for seen, row in zip(observations, rows, strict=True)
            }
            return rows

    maps = [Watched("n-1-simple-2", seed=seed) for seed in (0, 1)]
    learners = [
        LinearFQI(f"number {k}", features, actions=5, gamma=0.9) for k, features in enumerate(maps)
    ]
    selector = esbas.ESBAS(["number 0", "number 1"], scale=None, epochs=[60, 60, 120, 1])
    list(esbas.run(NegotiationDialogue(), learners, selector, episodes=241))
    for features in maps:
        both = features.acted.keys() & features.trained.keys()
        assert len(both) > 20
        assert len(features.trained) > len(features.acted)  # other algorithms acted too
        assert all(features.acted[seen] == features.trained[seen] for seen in both)
    shared = maps[0].trained.keys() & maps[1].trained.keys()
    assert len(shared) > 100
    assert all(maps[0].trained[seen] != maps[1].trained[seen] for seen in shared)


def test_scatter_is_the_same_for_numbers_and_columns_and_loses_nothing():
    values = np.concatenate([np.arange(70_000), 2**32 - 1 - np.arange(70_000)])
    column = scatter(0, values)
    assert column.min() >= 0
    assert column.max() < 2**32
    assert len(np.unique(column)) == len(values)
    assert [scatter(0, int(value)) for value in values[::997]] == column[::997].tolist()


@pytest.mark.parametrize(
    "name", ["simpel", "simple-3", "n-0-fast", "n--fast", "fast2", "n-1", "", "simple-2 "]
)
def test_refuses_names_that_the_paper_does_not_have(name):
    with pytest.raises(
        InvalidValueError, match="A feature set must have a name of the paper, but got"
    ):
        DialogueFeatures(name)


def test_refuses_a_seed_that_does_not_fit():
    with pytest.raises(InvalidValueError, match="seed"):
        DialogueFeatures("simple", seed=-1)
