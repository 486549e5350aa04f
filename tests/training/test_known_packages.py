"""Ids of well-known environments need no package: it is imported if it is installed."""

import json
import os
import subprocess
import sys

import gymnasium
import pytest

import esbas
from esbas.errors import TrustError
from esbas.specs import known_packages
from esbas.training import make_env, open_folder
from training.programs import SMALL
from training.programs import train_without_report as train

ALONE = """
import sys
from esbas.training import make_env
env = make_env(sys.argv[1])
print(env.reset(seed=0)[0].__class__.__name__)
"""


def output_of(*words, folder):
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("package", "env_id", "observation"),
    [("minigrid", "MiniGrid-Empty-6x6-v0", "dict"), ("minatar", "MinAtar/Breakout-v1", "ndarray")],
)
def test_an_id_is_enough(tmp_path, package, env_id, observation):
    pytest.importorskip(package)
    assert output_of("-c", ALONE, env_id, folder=tmp_path).splitlines()[-1] == observation


def test_minigrid_is_trained_and_loaded_without_its_mission(tmp_path, capsys):
    pytest.importorskip("minigrid")
    out = tmp_path / "it"
    name = "MiniGrid-Empty-6x6-v0"
    train(name, learners=[SMALL.format(0.001)], steps=200, out=out, tensorboard=False)
    notes = [line for line in capsys.readouterr().err.splitlines() if "'mission'" in line]
    assert len(notes) == 1
    assert "converted by FlattenObservation without 'mission', which is text" in notes[0]
    policy = esbas.load_policy(out)  # nothing has to be trusted
    observation, _ = gymnasium.make(name).reset(seed=0)
    assert isinstance(observation["mission"], str)
    assert policy.action_space.contains(policy.act(observation))
    assert open_folder(out).plan.env().observation_space.shape == (151,)


def test_a_module_of_this_name_in_another_place_is_not_imported(tmp_path):
    """A folder that somebody sends can have files with any name."""
    (tmp_path / "highway_env.py").write_text("print('imported')")
    if known_packages.is_installed("highway_env"):
        pytest.skip("highway_env is installed")
    for words in (["-c", ALONE, "highway-v0"], ["-m", "esbas", "train", "highway-v0"]):
        shown = output_of(*words, folder=tmp_path)
        assert "imported" not in shown.replace("has not been imported", "")
        assert "The environment 'highway-v0' is in the package highway_env" in shown


def test_folders_may_name_known_packages_and_no_others(tmp_path, monkeypatch):
    out = tmp_path / "it"
    train("CartPole-v1", learners=["random"], steps=20, out=out, tensorboard=False)
    path = out / "config.json"
    about = json.loads(path.read_text())

    def named(env):
        path.write_text(json.dumps(about | {"config": about["config"] | {"env": env}}))
        return open_folder(out)

    named("MiniGrid-Empty-6x6-v0")
    if known_packages.is_installed("minigrid"):
        named("minigrid:MiniGrid-Empty-6x6-v0")
    monkeypatch.setattr(known_packages, "is_installed", lambda module: module == "minigrid")
    for env in (
        "highway_env:highway-v0",
        "minigrid.wrappers:MiniGrid-Empty-6x6-v0",
        "minigrid:Class",
        "minigrid.py:X-v0",
        "trapped:MiniGrid-Empty-6x6-v0",
    ):
        with pytest.raises(TrustError):
            named(env)


def test_other_names_import_nothing(monkeypatch):
    monkeypatch.setattr(known_packages, "is_installed", lambda _: pytest.fail("was asked"))
    make_env("CartPole-v1").close()
    assert not known_packages.package_of("CartPole-v1")
