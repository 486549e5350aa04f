"""Learners that start from what learners of an earlier training have learnt."""

import shutil

import numpy as np
import pytest

from esbas import cli
from esbas._internal import archive
from esbas.errors import EsbasError
from esbas.training import Plan, TrainingConfig, read_recipe, recipe_of

LEARNERS = (
    "tabular_q(learning_rate=0.1)",
    "tabular_q(learning_rate=0.5)",
    "random",
    "training.observed:Counting",
)


@pytest.fixture(scope="module", autouse=True)
def no_report():
    """Skip the report, which takes longer than these trainings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esbas.training.train.write_report", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    out = tmp_path_factory.mktemp("warm") / "source"
    words = [
        "train",
        "CliffWalking-v1",
        "--learners",
        *LEARNERS,
        "--episodes",
        "20",
        "--seeds",
        "2",
        "--max-episode-steps",
        "100000",
    ]
    assert cli.main([*words, "--out", str(out), "--no-tensorboard"]) == 0
    return out


def started(recipe, *, folder=None, seed=0):
    """The learners of a new run, by name."""
    run = Plan(TrainingConfig("CliffWalking-v1", episodes=5, start_from=folder), recipe).start(seed)
    return {learner.name: learner for learner in run.learners}


def saved(source, name):
    return archive.read(source / "runs" / "seed-2" / "checkpoint.npz", "run")["roster"][name][
        "learner"
    ]


def table(text):
    return read_recipe(text, source="the portfolio")


def test_learners_with_the_same_name_and_algorithm_start_from_what_was_learnt(source):
    learners = started(
        recipe_of([*LEARNERS[:2], "tabular_q(learning_rate=0.9)", LEARNERS[3]]), folder=source
    )
    for name in ("tabular Q learning_rate 0.1", "tabular Q learning_rate 0.5"):
        table = saved(source, name)["table"]
        assert table.any()
        np.testing.assert_array_equal(learners[name].table, table)
    assert not learners["tabular Q learning_rate 0.9"].table.any()
    counting = learners["Counting"]
    np.testing.assert_array_equal(counting.weights, saved(source, "Counting")["weights"])
    assert counting.weights.any()
    assert counting.seen == 0  # everything but the policy starts anew


def test_one_learner_starts_from_another(source):
    text = f"""
    [[learner]]
    algorithm = "tabular_q"
    name = "new"
    learning_rate = 0.3
    start_from = "{source}"
    start_learner = "tabular Q learning_rate 0.5"
    [[learner]]
    algorithm = "tabular_q"
    name = "tabular Q learning_rate 0.1"
    """
    new, other = started(table(text)).values()
    np.testing.assert_array_equal(new.table, saved(source, "tabular Q learning_rate 0.5")["table"])
    assert not other.table.any()


def test_a_warm_training_from_end_to_end(source, tmp_path, monkeypatch):
    out = tmp_path / "it"
    words = [
        "train",
        "CliffWalking-v1",
        "--learners",
        *LEARNERS,
        "--episodes",
        "3",
        "--start-from",
        str(source),
    ]
    assert cli.main([*words, "--out", str(out), "--no-tensorboard"]) == 0
    assert f"--start-from {source}" in (out / "config.json").read_text()
    monkeypatch.setattr(
        "esbas.training.warm_start.start_from",
        lambda *_, **__: pytest.fail("a resumed run starts anew"),
    )
    assert cli.main(["resume", str(out), "--trust", "--episodes", "5", "--no-tensorboard"]) == 0


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        (
            lambda source: recipe_of(["tabular_q(learning_rate=0.9)"]),
            (
                "No learner of .* has the name and the algorithm of one of the learners .*: "
                "name it with start_from"
            ),
        ),
        (
            lambda source: recipe_of(
                [f"tabular_q(start_from='{source}', start_learner='tabular')"]
            ),
            "did you mean 'tabular Q",
        ),
        (
            lambda source: recipe_of([f"random(start_from='{source}', start_learner='Counting')"]),
            "must have the algorithm 'random'",
        ),
        (lambda source: recipe_of(["tabular_q(start_learner='Counting')"]), "add `start_from`"),
        (
            lambda source: recipe_of(
                [f"training.observed:Counting(width=2, start_from='{source}')"]
            ),
            (
                "must start from what 'Counting' learnt in .* "
                "but ValueError: the weights have the shape"
            ),
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(source, recipe, sentence):
    with pytest.raises(EsbasError, match=sentence) as raised:
        started(recipe(source), folder=source)
    assert "\n" not in str(raised.value)


def test_folders_without_a_checkpoint_and_damaged_folders(source, tmp_path):
    with pytest.raises(EsbasError, match=r"has no checkpoint: check the path"):
        started(recipe_of(LEARNERS), folder=tmp_path / "nowhere")
    broken = shutil.copytree(source, tmp_path / "broken")
    bomb = "[[learner]]\nalgorithm = 'dqn'\n[learner.grid]\n" + "".join(
        f"a{k} = {list(range(100))}\n" for k in range(20)
    )
    for content in (
        bomb,
        "[[learner]]\nalgorithm = 3\ngrid = 4",
        "learner = 3",
        "replay = 1\n[[learner]]",
        "",
        "[",
    ):
        (broken / "portfolio.toml").write_text(content)
        with pytest.raises(EsbasError, match=r"portfolio\.toml"):
            started(recipe_of(LEARNERS), folder=broken)
    (broken / "portfolio.toml").unlink()
    with pytest.raises(EsbasError, match=r"portfolio\.toml"):
        started(recipe_of(LEARNERS), folder=broken)
    path = broken / "runs" / "seed-2" / "checkpoint.npz"
    archive.write(path, "run", {"roster": {"a": {"learner": 3}}})
    with pytest.raises(EsbasError, match="the keys learner, fault"):
        started(recipe_of(LEARNERS), folder=broken)


def test_dqn_starts_from_a_dqn(tmp_path):
    out = tmp_path / "it"
    small = "dqn(hidden=[8], batch_size=8, learning_starts=20)"
    assert (
        cli.main(
            [
                "train",
                "CartPole-v1",
                "--learners",
                small,
                "--steps",
                "60",
                "--out",
                str(out),
                "--no-tensorboard",
            ]
        )
        == 0
    )
    config = TrainingConfig("CartPole-v1", steps=60, start_from=out)
    observation = np.array([0.1, -0.2, 0.03, 0.4], np.float32)
    warm = Plan(config, recipe_of([small])).start(1).learners[0]
    (old,) = (
        Plan(config, recipe_of([small]))
        .resume(out / "runs" / "seed-0" / "checkpoint.npz", 0)
        .learners
    )
    cold = Plan(TrainingConfig("CartPole-v1", steps=60), recipe_of([small])).start(1).learners[0]
    np.testing.assert_array_equal(warm.values(observation), old.values(observation))
    assert not np.array_equal(cold.values(observation), old.values(observation))
    with pytest.raises(EsbasError, match="DQN"):
        Plan(config, recipe_of(["dqn(hidden=[9], batch_size=8, learning_starts=20)"])).start(1)
