"""Learners that need an extra say which one where it is missing, and keep nobody from using the others."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("library", "module", "sentence"),
    [
        ("torch", "dqn", "deep learners need PyTorch, but it is not installed: pip install 'esbas[deep]'"),
        ("stable_baselines3", "sb3", "members of Stable-Baselines3 need it, but it is not installed: pip install 'esbas[sb3]'"),
        (
            "sklearn",
            "fqi",
            "fitted Q iteration with any regressor needs scikit-learn, but it is not installed: pip install 'esbas[sklearn]'",
        ),
        ("d3rlpy", "d3", "members of d3rlpy need it, but it is not installed: pip install 'esbas[d3rlpy]'"),
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
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == sentence
