"""Learners that need a missing extra name it; all other learners can be used."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("library", "module", "sentence"),
    [
        (
            "torch",
            "dqn.on_pytorch.batched",
            (
                "Convolutions and devices other than the CPU need PyTorch, "
                "but it is not installed: pip install 'esbas[deep]'."
            ),
        ),
        (
            "stable_baselines3",
            "sb3.learner",
            (
                "Learners of Stable-Baselines3 need it, but it is not installed: "
                "pip install 'esbas[sb3]'."
            ),
        ),
        (
            "sklearn",
            "fitted_q",
            (
                "Fitted Q iteration with any regressor needs scikit-learn, "
                "but it is not installed: pip install 'esbas[sklearn]'."
            ),
        ),
        (
            "d3rlpy",
            "d3rlpy.learner",
            "Learners of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'.",
        ),
    ],
)
def test_the_extra_is_named_where_it_is_missing(library: str, module: str, sentence: str) -> None:
    code = f"""
import sys
sys.modules["{library}"] = None
import esbas.learners
try:
    import esbas.learners.{module}
except ModuleNotFoundError as error:
    print(error)
"""
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == sentence


def test_dqns_are_trained_without_any_extra(tmp_path: Path) -> None:
    """As after `pip install esbas`."""
    code = f"""
import sys
from types import SimpleNamespace
hidden = {{"torch", "tensorboard", "stable_baselines3", "sb3_contrib", "sklearn"}}
def without(find):
    return lambda name, *rest: None if name.partition(".")[0] in hidden else find(name, *rest)
sys.meta_path = [SimpleNamespace(find_spec=without(finder.find_spec)) for finder in sys.meta_path]
from esbas import cli
assert cli.main(["train", "CartPole-v1", "--steps", "700", "--out", {str(tmp_path / "out")!r}]) == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (tmp_path / "out" / "report.html").is_file()
    assert not list((tmp_path / "out").rglob("tensorboard"))
