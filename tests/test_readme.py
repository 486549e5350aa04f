"""Every Python block of the README and every example runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "faults")  # takes longer: see test_faults.py


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_readme_block_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_the_same_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "train.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert block.count("60_000") == 2
    exec(compile(block.replace("60_000", "60"), "train.md", "exec"), {"__name__": "train"})
    assert (tmp_path / "run.npz").exists()


def test_readme_bandit_works_inside_esbas() -> None:
    import esbas

    names: dict[str, type] = {"__name__": "readme"}  # type: ignore[dict-item]  # a namespace for exec
    exec(next(block for block in BLOCKS if "class MOSS" in block), names)
    selector = esbas.ESBAS(["a", "b"], bandit=names["MOSS"], scale=None)
    for _ in range(255):
        choice = selector.ask()
        selector.tell(choice, {"a": 0.2, "b": 0.8}[choice.arm])
    report = selector.explain()
    assert report["b"]["selections"] > report["a"]["selections"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path) -> None:
    result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
