import subprocess
import sys
from pathlib import Path

import pytest

import esbas

SOURCES = Path(esbas.__file__).parent
HEAVY = {"gymnasium", "numba", "torch", "matplotlib", "ray", "pandas", "scipy", "rich", "tyro"} | {
    "sqlite3",
    "psycopg",
    "fastapi",
    "uvicorn",
}


@pytest.mark.parametrize("module", ["esbas", "esbas.testing", "esbas.learners"])
def test_importing_the_core_loads_only_numpy(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "numpy" in loaded
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded)


def test_the_client_needs_no_extra():
    code = "import sys, esbas.studies.client; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert (HEAVY - {"sqlite3"}).isdisjoint(name.split(".")[0] for name in loaded)


def test_learners_with_extras_are_imported_on_demand():
    from esbas import learners
    from esbas.learners import DQN, FittedQ, SB3Learner

    assert [each.__name__ for each in (DQN, FittedQ, SB3Learner)] == [
        "DQN",
        "FittedQ",
        "SB3Learner",
    ]
    with pytest.raises(AttributeError, match="has no attribute 'DQM'"):
        _ = learners.DQM


def test_all_public_names_exist():
    assert all(hasattr(esbas, name) for name in esbas.__all__)
