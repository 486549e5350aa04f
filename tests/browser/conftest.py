"""One small report of every kind, and a browser that opens them.

`make test-browser` installs the browser.
"""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from esbas import cli

TRAIN = "train CartPole-v1 --no-tensorboard --jobs 1"
SHORT = "a-folder-with-a-long-name-and-a-short-training"
COMMANDS = {
    "stationary": "reproduce stationary --runs 2 --rounds 60",
    "small_grid": "reproduce small_grid --runs 2 --episodes 300",
    "gridworld": "reproduce gridworld --runs 2 --episodes 1000",
    "bounds": "reproduce bounds --runs 2 --horizon 256",
    "dialogue": "reproduce dialogue --runs 2",
    "qbert": "reproduce qbert --game klax --action-repeat 60 --steps 100 --memory 300 "
    "--no-tensorboard",
    "train": f"{TRAIN} --steps 1500 --seeds 0 1 2 --learners random "
    "\"random(name='a second learner with a rather long name')\" "
    "'training.plugins:Steady(action=7)'",  # it has faults: 7 is no action of the task
    SHORT: f"{TRAIN} --steps 300 --learners random --selector uniform",
    "compare": f"compare train {SHORT} --trust",
}
"""In this order: the comparison is of the two trainings."""


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the results of each command."""
    folder = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, command in COMMANDS.items():
            assert cli.main([*shlex.split(command), "--out", name]) == 0, command
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, (
        "these tests need chromium on PATH: run `make test-browser`, or install it"
    )
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()
