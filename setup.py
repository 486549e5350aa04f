"""The description on a package index: README.md with absolute links.

Everything else is in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def description() -> str:
    """README.md, whose relative links and images point to the files of this version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    home, version = project["urls"]["Homepage"], project["version"]

    def absolute(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        return f"{image}[{text}]({home}/{'raw' if image else 'blob'}/v{version}/{target})"

    return re.sub(
        r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)",
        absolute,
        (ROOT / "README.md").read_text("utf-8"),
    )


setup(long_description=description(), long_description_content_type="text/markdown")
