import os
import subprocess
import sys
from pathlib import Path

from esbas.compiling import compiled

KERNEL = """
import formula
from esbas.compiling import compiled
helper = compiled(formula.helper)

@compiled
def twice(x):
    return 2.0 * helper(x)
"""


def _twice_one(folder: Path) -> float:
    command = [sys.executable, "-B", "-c", "import kernel; print(kernel.twice(1.0))"]
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_a_change_of_a_called_function_reaches_the_cached_caller(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "formula.py").write_text("def helper(x):\n    return x + 1.0\n")
    assert _twice_one(tmp_path) == 4.0
    assert list(tmp_path.rglob("kernel.twice*.nbi")), "nothing was cached"
    (tmp_path / "formula.py").write_text("def helper(x):\n    return x + 5.5\n")
    assert _twice_one(tmp_path) == 13.0


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same() -> None:
    names: dict[str, float] = {}
    exec("def half(x): return x / 2", names)  # no file, so no place for a cache: as in a read-only installation
    assert compiled(names["half"])(3) == 1.5
