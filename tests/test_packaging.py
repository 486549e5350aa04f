"""What the wheel and the source distribution contain, and how the package describes itself."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILD = """
from setuptools import build_meta
build_meta.build_sdist("dist")
build_meta.build_wheel("dist")
"""
FOLDERS = "src/esbas", "docs", "examples", "benchmarks", "tests"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The names in the source distribution and in the wheel, and the metadata of the wheel."""
    tree = tmp_path_factory.mktemp("packaging") / "tree"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, tree)
    made = subprocess.run(
        [sys.executable, "-c", BUILD], cwd=tree, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (source,), (wheel,) = (list((tree / "dist").glob(f"*.{kind}")) for kind in ("tar.gz", "whl"))
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return (
            in_source,
            set(archive.namelist()),
            Parser().parsestr(archive.read(metadata).decode()),
        )


def files(*folders):
    """All files in these folders, without caches."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {
        path.relative_to(ROOT).as_posix() for path in found if not {"__pycache__"} & set(path.parts)
    }


def test_the_source_distribution_has_everything_that_is_needed_to_read_and_test_it(built):
    needed = files(*FOLDERS)
    needed |= {
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "constraints.txt",
        "pyproject.toml",
        "setup.py",
    }
    assert sorted(needed - built[0]) == []
    assert not [name for name in built[0] if name.endswith(".pyc")]


def test_the_wheel_has_the_package_with_its_data_and_nothing_else(built):
    needed = {name.removeprefix("src/") for name in files("src/esbas")}
    assert sorted(needed - built[1]) == []
    assert {
        "esbas/py.typed",
        "esbas/reporting/report.css",
        "esbas/specs/portfolios/discrete.toml",
    } <= built[1]
    assert [name for name in built[1] if not re.match(r"esbas(-[\d.]+\.dist-info)?/", name)] == []


def test_links_and_figures_of_the_description_are_absolute(built):
    metadata = built[2]
    text = metadata.get_payload()
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL"))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}
    readme = (ROOT / "README.md").read_text("utf-8")
    links, ours = (re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", each) for each in (text, readme))
    assert len(links) == len(ours) > 10
    for (image, target), (_, relative) in zip(links, ours, strict=True):
        assert target.startswith("https://")
        if not relative.startswith("https://"):
            kind = "raw" if image else "blob"
            assert target == f"{urls['Homepage']}/{kind}/v{metadata['Version']}/{relative}"
            assert (ROOT / relative.partition("#")[0]).is_file()
    assert metadata["License-Expression"] == "MIT"
    assert {"atari", "deep", "render", "sb3", "sklearn", "d3rlpy", "ray"} <= set(
        metadata.get_all("Provides-Extra")
    )
