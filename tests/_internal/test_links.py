"""Helps and messages name pages that exist, by addresses: an installed package has no `docs`."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from esbas import cli
from esbas._internal.links import DOCUMENTATION

DOCS = Path(__file__).parents[2] / "docs"
HELPS = [[*name.split(), "--help"] for name in cli.COMMANDS]
HELPS += [
    ["--help"],
    ["study", "--help"],
    ["reproduce", "--help"],
    ["reproduce", "qbert", "--help"],
]


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_pages_in_helps_are_addresses(words, capsys):
    with suppress(SystemExit):  # after the help of a command
        cli.main(words)
    shown = capsys.readouterr().out
    assert shown
    assert re.findall(r"(?<![\w/])docs/[\w-]+\.md", shown) == []
    for name in re.findall(re.escape(DOCUMENTATION) + r"/([\w.-]+\.md)", shown):
        assert (DOCS / name).is_file()
