"""Every command line under "One command line per environment" in docs/environments.md starts,
here with a small budget.
"""

import re
import shlex
import sys
import warnings
from pathlib import Path

import pytest

from esbas import cli
from esbas.training.runs.episode_log import read_episodes

# Box2D crashes if a warning during its import is an error
with warnings.catch_warnings(action="ignore"):
    import Box2D  # noqa: F401

PAGE = (Path(__file__).parent.parent.parent / "docs" / "environments.md").read_text("utf-8")
SECTION = PAGE.partition("## One command line per environment\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)[0].splitlines()
SHORT = [
    "--env-kwargs",
    "max_episode_steps=8",
    "--steps",
    "10",
    "--no-tensorboard",
    "--out",
    "here",
]
TASKS = [
    *(
        "Acrobot-v1",
        "LunarLander-v3",
        "Taxi-v",
        "FrozenLake-v1",
        "MiniGrid-Empty-5x5",
        "Blackjack-v1",
        "CliffWalking-v",
    ),
    *(
        "Pendulum-v1",
        "MountainCarContinuous-v0",
        "Levers",
        "my_task.py",
        "ALE/Breakout-v5",
    ),
]


@pytest.fixture
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_task", raising=False)
    (code,) = re.findall(r"```python\n(# my_task.py\n.*?)```", SECTION, re.DOTALL)
    (tmp_path / "my_task.py").write_text(code)
    # figures are tested elsewhere
    monkeypatch.setattr("esbas.training.train.write_report", lambda *_: None)
    yield
    sys.modules.pop("my_task", None)


def test_all_kinds_of_tasks_are_documented():
    assert len(COMMANDS) >= len(TASKS)
    assert [task for task in TASKS if not any(task in command for command in COMMANDS)] == []


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_documented_command_starts(command, capsys):
    program, *words = shlex.split(command)
    assert program == "esbas"
    assert cli.main([*words, *SHORT]) == 0, capsys.readouterr().err
    assert read_episodes(Path("here", "runs", "seed-0")).lengths.sum() >= 10
