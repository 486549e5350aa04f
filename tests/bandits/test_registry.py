"""Bandits by name, a new bandit in one file, and the page that lists them all."""

import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import esbas
import esbas.bandits
from esbas.bandits import BANDITS, KLUCB, Exp3S, SWUCBSharp, make_bandit
from esbas.errors import UnknownNameError
from esbas.testing import check_bandit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bandits.md").read_text("utf-8")
EXAMPLES = [
    textwrap.dedent(block) for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
]
(NEW_BANDIT,) = [example for example in EXAMPLES if "class MOSS" in example]


@pytest.mark.parametrize("name", ["KL-UCB", "kl_ucb", "klucb", "Kl UCB", "esbas.bandits:KLUCB"])
def test_a_bandit_is_found_by_name_or_class(name):
    assert make_bandit(name) is KLUCB
    assert name in BANDITS


def test_names_may_contain_signs():
    assert make_bandit("SW-UCB#") is SWUCBSharp
    assert make_bandit("Exp3.S") is Exp3S


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(
        UnknownNameError, match="There is no bandit named 'klucd': did you mean 'klucb'"
    ):
        make_bandit("klucd")
    with pytest.raises(AttributeError, match=r"module 'esbas.bandits' has no attribute 'KLUCD'"):
        _ = esbas.bandits.KLUCD


def test_a_bandit_in_another_module_is_found_as_module_and_class(tmp_path, monkeypatch):
    (tmp_path / "my_bandits.py").write_text(
        NEW_BANDIT.replace('@BANDITS.register("moss")\n', ""), "utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    moss = make_bandit("my_bandits:MOSS")
    check_bandit(moss)
    selector = esbas.BanditSelector(["a", "b"], bandit=moss)
    assert selector.bandit.horizon == 10_000
    assert "moss" not in BANDITS


USE_NEW_BANDIT = """
import esbas.bandits
from esbas.bandits import BANDITS, make_bandit
from esbas.testing import check_bandit
import bandits

assert "moss" in list(BANDITS)
assert make_bandit("MOSS") is esbas.bandits.MOSS
check_bandit(make_bandit("MOSS"))
(row,) = [line for line in bandits.bandits().splitlines() if "MOSS" in line]
print(row)
"""


def test_a_file_in_the_package_is_all_that_a_new_bandit_needs(tmp_path):
    shutil.copytree(
        ROOT / "src" / "esbas", tmp_path / "esbas", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(
        ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("figures", "*.md")
    )
    (tmp_path / "esbas" / "bandits" / "moss.py").write_text(NEW_BANDIT, "utf-8")
    paths = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(tmp_path / 'docs')!r}]\n"
    command = [sys.executable, "-c", paths + USE_NEW_BANDIT]
    result = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=600
    )
    assert result.returncode == 0, result.stderr
    assert (
        result.stdout.strip()
        == "| `MOSS` | fixed arms | a known horizon | O(√(K T)) | `horizon=10_000` |"
    )


@pytest.fixture
def page(monkeypatch):
    """The script that writes the tables of the page."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    spec = importlib.util.spec_from_file_location("docs_bandits", ROOT / "docs" / "bandits.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_contains_the_table_of_the_classes(page):
    written = re.split("<!-- (?:end of )?bandits -->", PAGE)[1].strip()
    assert written == page.bandits(), "run `python docs/bandits.py`"


@pytest.mark.parametrize("name", BANDITS)
def test_the_row_of_a_bandit_is_complete(page, name):
    kind = make_bandit(name)
    assert kind.use
    assert kind.guarantee
    assert kind.setting in page.SETTINGS
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.name not in ("n_arms", "memory", "rng", "spread"):
            assert f"`{parameter.name}" in page.parameters(kind)
            assert parameter.name == "horizon" or f"{parameter.name}=None" not in page.parameters(
                kind
            ), "say what None means"
