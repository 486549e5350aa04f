"""Objectives that use infos in trainings: evaluations, the kept policy, interruptions, trust."""

import pytest

import esbas
from esbas._internal import archive
from esbas.errors import TrustError
from esbas.training import open_folder
from training.lane import Lane


class RiskyLane(Lane):
    """A lane that ends after 9 steps, and in which going left costs 1."""

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        cell, reward, over, _, info = super().step(action)
        info |= {"cost": int(action == 0), "right": int(action == 1), "is_success": over}
        return cell, reward, over, not over and self.steps == 9, info


CONSTRAINED = "constrained_return(cost='cost', limit=12, penalty=0.1)"
LEARNERS = ("training.plugins:Steady(action=0)", "training.plugins:Steady(action=1)", "random")


def trained(folder, objective, **options):
    settings = {"learners": LEARNERS, "episodes": 30, "tensorboard": False, "progress": False}
    esbas.train(
        "training.test_infos_in_training:RiskyLane",
        objective=objective,
        out=folder,
        **settings | options,
    )
    return folder


def test_trainings_and_evaluations_use_the_same_objective(tmp_path):
    folder = trained(tmp_path / "a", "success_rate", eval_every=60, eval_episodes=2)
    values = set(esbas.load_training(folder, trust=True).episodes()["value"])
    assert values == {0.0, 1.0}
    lines = (folder / "runs/seed-0/evaluations.csv").read_text().splitlines()[1:]
    means = {line.split(",")[1]: float(line.split(",")[3]) for line in lines}
    assert means["Steady action 0"] == 0.0
    assert means["Steady action 1"] == 1.0
    training = esbas.load_training(folder, trust=True)
    found = training.evaluate(episodes=3)
    assert found.values == (1.0, 1.0, 1.0)
    assert [row[0] for row in found.table().rows] == ["success rate", "return", "episode length"]


def test_an_evaluation_reports_the_cost(tmp_path):
    folder = trained(tmp_path / "a", "constrained_return(limit=1, penalty=2)")
    training = esbas.load_training(folder, trust=True)
    found = training.evaluate(learner="Steady action 0", episodes=2)
    rows = {row[0]: float(row[1]) for row in found.table().rows}
    # 9 steps to the left: a return of 0, and a cost of 9
    assert rows["return - 2 * max(0, cost - 1)"] == 0 - 2 * (9 - 1)
    assert rows["cost"] == 9
    header = (folder / "evaluation.csv").read_text().splitlines()[0]
    assert ",cost,return," in header


def with_return():
    details = (esbas.total_return(), esbas.total_return())
    return esbas.Objective(name="mine", function=len, details=details)


def test_measures_with_the_same_name_are_reported_once(tmp_path):
    folder = trained(tmp_path / "a", "training.test_infos_in_training:with_return")
    esbas.load_training(folder, trust=True).evaluate(episodes=2)
    header = (folder / "evaluation.csv").read_text().splitlines()[0]
    assert header == "episode,mine,return,episode length,terminated,truncated"


def test_the_kept_policy_is_the_best_one_of_the_objective(tmp_path):
    """The one to the right has the larger return; a cost for right steps reverses the order."""
    for folder, objective, best in (
        ("a", "return", "Steady action 1"),
        ("b", "constrained_return(cost='right', limit=1, penalty=9)", "Steady action 0"),
    ):
        trained(tmp_path / folder, objective, learners=LEARNERS[:2], eval_every=60)
        training = esbas.load_training(tmp_path / folder, trust=True)
        assert training.evaluate(episodes=1).learner == best


def test_an_interrupted_training_is_bit_identical(tmp_path):
    options = {"selector": "esbas", "learners": ("tabular_q", "random")}
    whole = trained(tmp_path / "whole", CONSTRAINED, **options)
    parts = trained(tmp_path / "parts", CONSTRAINED, **options | {"episodes": 13})
    esbas.load_training(parts, trust=True).extend(episodes=30)
    name = "runs/seed-0/episodes.csv"
    assert (whole / name).read_bytes() == (parts / name).read_bytes()
    saved = [
        archive.read(folder / "runs/seed-0/checkpoint.npz", "run")["data"]["infos"]["cost"]
        for folder in (whole, parts)
    ]
    assert saved[0]["values"].tobytes() == saved[1]["values"].tobytes()
    assert saved[0]["kept"].all()
    training = esbas.load_training(parts, trust=True)
    training.evaluate_offline()  # values of the saved trajectories


def test_options_of_objectives_need_no_trust(tmp_path):
    def start(objective, folder):
        esbas.train(
            "FrozenLake-v1",
            learners=("random",),
            episodes=2,
            objective=objective,
            out=folder,
            tensorboard=False,
            progress=False,
        )
        return folder

    plain_folder = start("discounted(gamma=0.5)", tmp_path / "a")
    assert open_folder(plain_folder).plan.objective.name == "discounted return, gamma=0.5"
    path = plain_folder / "config.json"
    path.write_text(path.read_text().replace("discounted(gamma=0.5)", "success_rate(key='a:b')"))
    assert open_folder(plain_folder).plan.objective.infos == ("a:b",)
    path.write_text(path.read_text().replace("success_rate(key", "test_infos:weighted(weight"))
    with pytest.raises(TrustError, match="'test_infos'"):
        open_folder(plain_folder)
