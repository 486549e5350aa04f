"""Learners that need a missing extra name it; all other learners can be used."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("library", "module", "sentence"),
    [
        ("torch", "deep.dqn", "deep learners need PyTorch, but it is not installed: pip install 'esbas[deep]'"),
        (
            "stable_baselines3",
            "sb3.learner",
            "members of Stable-Baselines3 need it, but it is not installed: pip install 'esbas[sb3]'",
        ),
        (
            "sklearn",
            "fqi",
            "fitted Q iteration with any regressor needs scikit-learn, but it is not installed: pip install 'esbas[sklearn]'",
        ),
        ("d3rlpy", "d3.learner", "members of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'"),
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
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == sentence
