"""What the page of default portfolios says is what was measured, with the portfolios of today."""

import hashlib
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "portfolios.md").read_text("utf-8")
RESULTS = ROOT / "results" / "portfolios"
NOW = sorted(RESULTS.glob("*/now.json"))


@pytest.fixture
def script(monkeypatch):
    """The script that writes the generated parts of the page."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.syspath_prepend(ROOT)
    spec = importlib.util.spec_from_file_location("docs_portfolios", ROOT / "docs/portfolios.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    yield loaded
    sys.modules.pop("benchmarks", None)


def test_the_page_has_the_results(script):
    for name, content in script.parts().items():
        written = re.split(f"<!-- (?:end of )?{name} -->", PAGE)[1].strip()
        assert written == content, "run `python docs/portfolios.py`"


@pytest.mark.parametrize("path", NOW, ids=lambda path: path.parent.name)
def test_the_results_are_those_of_the_default_portfolios(path):
    stored = json.loads(path.read_text("utf-8"))
    texts = (ROOT / "src/esbas/specs/portfolios").glob("*.toml")
    digests = [hashlib.sha256(text.read_bytes()).hexdigest() for text in texts]
    assert stored["portfolio"] in digests, "run `python -m benchmarks portfolios`"
    assert len(stored["runs"]) >= 5
