"""Every shell block of the README and the docs runs as it stands, with smaller budgets.

Commands in the text can be parsed.
"""

import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import warnings

import pytest
import tyro

from documentation.pages import MLFLOW, PAGES, ROOT, fences, programs
from esbas import cli, experiments
from esbas.experiments.dialogue import constants

# Box2D crashes if a warning during its import is an error
with warnings.catch_warnings(action="ignore"):
    import Box2D  # noqa: F401

pytestmark = pytest.mark.docs
SHELL = "sh"
TEXT = "text"  # blocks that show files, output or a diagram
OTHER = {"python", "json", "toml"}
LIMITS = {"episodes": 4, "runs": 2, "rival-runs": 2, "horizon": 2048, "rounds": 60}
SWEEP_LIMITS = LIMITS | {"episodes": 1000}
CANDIDATES = 8


def blocks(page):
    """(line, commands) of every shell block of a page; a command is a list of words."""
    return [(line, commands(code)) for line, language, code in fences(page) if language == SHELL]


def commands(code):
    lines = code.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


SHELL_PAGES = [page for page in PAGES if blocks(page)]


def test_every_block_says_what_it_is():
    known = {SHELL, TEXT, *OTHER}
    assert [
        f"{page.name}:{line}"
        for page in PAGES
        for line, language, _ in fences(page)
        if language not in known
    ] == []
    assert {page.name for page in SHELL_PAGES} >= {
        "README.md",
        *("environments.md", "train.md", "plugins.md", "install.md", "metrics.md"),
        *("gridworld.md", "dialogue.md", "qbert.md", "theory.md"),
    }


@pytest.mark.parametrize("page", SHELL_PAGES, ids=lambda page: page.name)
def test_commands_run(page, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    for program in programs():  # what the commands of the page import
        if program.page == page.name and program.module != "documented":
            program.write(tmp_path)
            if "import mlflow" in program.code:
                (tmp_path / "mlflow.py").write_text(MLFLOW)
    for line, listed in blocks(page):
        for words in listed:
            where = f"{page.name}:{line}: {shlex.join(words)}"
            assert run(words, monkeypatch) == 0, f"{where}\n{capfd.readouterr().err}"
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def run(words, monkeypatch):
    """The exit code of a command of the documentation."""
    program, *rest = words
    if program == "esbas":
        return cli.main(shortened(rest))
    if program == "make":
        return subprocess.run(
            ["make", "--dry-run", *rest], cwd=ROOT, capture_output=True, check=False
        ).returncode
    if program == "pip":
        return check_pip(rest)
    assert words[:2] == ["python", "-m"], "no test knows how to run this command"
    monkeypatch.setattr(
        constants,
        "generate",
        lambda wanted, *, seed, candidates: generate(wanted, seed=seed, candidates=CANDIDATES),
    )
    monkeypatch.setattr(sys, "argv", words[2:])
    runpy.run_module(words[2], run_name="__main__")
    return 0


def shortened(words):
    """The words of an `esbas` command, with smaller budgets.

    Steps are divided, so that a longer training stays longer.
    """
    command, *_ = words
    limits = SWEEP_LIMITS if command == "reproduce" else LIMITS
    short = list(words)
    for place in range(1, len(words)):
        option = words[place - 1].removeprefix("--")
        word = words[place]
        if word.isdigit():
            short[place] = (
                str(max(1, int(word) // 1000))
                if option in ("steps", "eval-every")
                else str(min(int(word), limits.get(option, int(word))))
            )
    if {"--help", "--example"} & set(words):
        return short
    if command == "train" and not {"--steps", "--episodes"} & set(words):
        short += ["--steps", "60"]
    if command == "reproduce":
        options = experiments.find_experiment(words[1]).__dataclass_fields__
        for name in ("runs", "episodes"):
            short += (
                [f"--{name}", str(limits[name])]
                if name in options and f"--{name}" not in words
                else []
            )
        short += ["--steps", "60"] if "steps" in options and "--steps" not in words else []
    return short


generate = constants.generate


def check_pip(words):
    """Installation is not repeated here; what it names must exist."""
    assert words[0] == "install"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    for name in re.findall(r"\[([\w,-]+)\]", " ".join(words)):
        assert set(name.split(",")) <= set(extras), name
    return 0


def inline_commands():
    """Commands within the text, such as `esbas train CartPole-v1`, without those that name an
    experiment of the reader.
    """
    for page in PAGES:
        for span in re.findall(r"(?<!`)`(esbas [^`]+)`(?!`)", page.read_text("utf-8")):
            command = " ".join(span.replace("...", "").split())
            if not re.match(r"esbas reproduce (NAME|EXPERIMENT|\w+:)", command):
                yield page.name, command


@pytest.mark.parametrize(("page", "command"), sorted(set(inline_commands())))
def test_a_command_in_the_text_can_be_parsed(page, command, monkeypatch):
    def parse(program, config, execute, words, *, opening=""):
        placeholders = {"RIDGE": "0.1"}
        if words:
            assert (
                tyro.cli(config, args=[placeholders.get(word, word) for word in words]) is not None
            )
        return 0

    monkeypatch.setattr(cli, "_call", parse)
    assert cli.main(shlex.split(command)[1:]) == 0
