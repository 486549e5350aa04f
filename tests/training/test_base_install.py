"""What works without the extras, and what is said about a missing one."""

import subprocess
import sys

from esbas import cli
from esbas.training import TrainingConfig
from training.programs import plan_of_config

WAIT = 300.0  # seconds: the machine may be busy
EXTRAS = {"dqn(device='mps')": "deep", "sb3.dqn": "sb3", "fqi": "sklearn", "d3rlpy.dqn": "d3rlpy"}
WITHOUT_EXTRAS = """
import sys

BLOCKED = "torch", "tensorboard", "stable_baselines3", "sb3_contrib", "sklearn", "d3rlpy", "pygame"

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import esbas.cli
out, *learners = sys.argv[1:]
for env in ("FrozenLake-v1", "CartPole-v1"):  # tables, and DQNs with dense networks
    assert esbas.cli.main(["train", env, "--episodes", "20", "--out", f"{out}/{env}"]) == 0
for learner in learners:
    words = ["train", "CartPole-v1", "--learners", learner, "--out", f"{out}/{learner}"]
    assert esbas.cli.main(words) == 2
assert "torch" not in sys.modules
"""


def test_the_base_install_trains_the_default_portfolios_and_names_the_extras_of_others(tmp_path):
    command = [sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path), *EXTRAS]
    done = subprocess.run(command, timeout=WAIT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert folders == ["CartPole-v1", "FrozenLake-v1"]  # what cannot be trained leaves no folder
    for folder in folders:
        assert (tmp_path / folder / "report.html").exists()
        assert not (tmp_path / folder / "runs" / "seed-0" / "tensorboard").exists()
    note, same, *errors = [line for line in done.stderr.splitlines() if line.startswith("esbas: ")]
    assert note == same
    assert "note: " in note
    assert "it is not installed: pip install tensorboard (part of 'esbas[deep]'), or turn" in note
    for error, extra in zip(errors, EXTRAS.values(), strict=True):
        assert error.endswith(f"pip install 'esbas[{extra}]'.")


def test_the_device_is_that_of_members_that_have_one_and_do_not_set_it():
    members = "training.observed:Placed", "training.observed:Placed(device='mps')", "random"
    config = TrainingConfig("CartPole-v1", learners=members, steps=10, device="cpu")
    assert config.to_plain()["device"] == "cpu"
    learners = plan_of_config(config).start(0).learners
    assert [getattr(learner, "device", None) for learner in learners] == ["cpu", "mps", None]


def test_a_device_for_members_without_devices_is_refused(capsys, tmp_path):
    assert (
        cli.main(
            [
                "train",
                "CartPole-v1",
                "--learners",
                "random",
                "--device",
                "cuda",
                "--out",
                str(tmp_path / "it"),
            ]
        )
        == 2
    )
    assert "No learner has the option `device`" in capsys.readouterr().err
