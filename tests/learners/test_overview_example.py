"""The first Python example of the overview learns."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "overview.md"


def test_success_rises(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(compile(first[1], "overview.md", "exec"), {})
    rates = [int(percent) for percent in re.findall(r"(\d+)% successful", capsys.readouterr().out)]
    assert len(rates) == 4
    assert rates[0] < 20 < 40 < rates[-1]
