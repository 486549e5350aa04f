import itertools
import re
import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

import esbas
from esbas import cli, experiments
from esbas.bandits import BANDITS
from esbas.errors import InvalidValueError


@dataclass(frozen=True, kw_only=True)
class Config:
    """A command for tests."""

    runs: int = 3
    """How many."""


@pytest.fixture
def command(monkeypatch):
    """A command named `try`; the fixture is a function that sets its behavior."""
    module = ModuleType("command_for_tests")
    module.Config = Config
    module.main = lambda _: None
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "try", cli.Command(f"{module.__name__}:Config", "For tests."))

    def set_main(function):
        module.main = function

    return set_main


def test_the_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"esbas {esbas.__version__}\n"


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_commands_and_examples(words, capsys):
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    listed = {name: command.summary for name, command in cli.COMMANDS.items()}
    listed |= {f"reproduce {name}": summary for name, summary in experiments.summaries().items()}
    for name, summary in listed.items():
        assert f"\n  {name} " in text
        assert f" {name} {summary}" in " ".join(text.split())
    assert text.count("\n  esbas ") >= 3  # examples
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("words", [["reproduce"], ["reproduce", "--help"]])
def test_reproduce_lists_its_experiments(words, capsys):
    assert cli.main(words) == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    assert all(f" {name} {summary}" in words for name, summary in experiments.summaries().items())
    assert "module:Class" in text
    assert max(map(len, text.splitlines())) <= 80


def test_study_lists_its_commands(capsys):
    assert cli.main(["study"]) == 0
    text = capsys.readouterr().out
    for name, command in cli.COMMANDS.items():
        if name.startswith("study "):
            assert f"\n  {name.removeprefix('study ')} " in text
            assert command.summary in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["dmo"], "esbas: There is no command named 'dmo': did you mean 'demo'?\n"),
        (
            ["--versoin"],
            "esbas: There is no command named '--versoin': did you mean '--version'?\n",
        ),
        (
            ["reproduce", "bonds"],
            "esbas: There is no experiment named 'bonds': did you mean 'bounds'?\n",
        ),
    ],
)
def test_unknown_names_get_a_suggestion(words, sentence, capsys):
    assert cli.main(words) == 2
    output = capsys.readouterr()
    assert output.err == sentence
    assert output.out == ""


def test_options_become_the_configuration(command):
    got = []
    command(got.append)
    assert cli.main(["try", "--runs", "5"]) == 0
    assert got == [Config(runs=5)]


def test_wrong_options_are_refused(command, capsys):
    command(lambda _: pytest.fail("was called"))
    with pytest.raises(SystemExit) as stop:
        cli.main(["try", "--rnus", "5"])
    assert stop.value.code == 2
    assert "--runs" in capsys.readouterr().err


def test_wrong_numbers_are_refused_in_one_sentence(command, capsys):
    command(lambda _: pytest.fail("was called"))
    assert cli.main(["try", "--runs", "many"]) == 2
    assert capsys.readouterr().err.startswith("esbas: `runs` must be a whole number such as 100000")


def test_expected_errors_are_printed_in_one_line(command, capsys):
    def fail(_):
        raise InvalidValueError("`runs >= 1` must hold, but got runs=0")

    command(fail)
    assert cli.main(["try"]) == 2
    assert capsys.readouterr().err == "esbas: `runs >= 1` must hold, but got runs=0\n"


def test_an_interrupt_is_reported_in_one_line(command, capsys):
    def interrupt(_):
        raise KeyboardInterrupt

    command(interrupt)
    assert cli.main(["try"]) == 130
    assert capsys.readouterr().err.startswith("esbas: stopped; the same command continues")


def test_unexpected_errors_keep_their_traceback(command):
    def fail(_):
        raise ZeroDivisionError

    command(fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["try"])


@pytest.mark.parametrize(
    "words",
    [[name] for name in cli.COMMANDS] + [["reproduce", name] for name in experiments.summaries()],
)
def test_every_command_has_help_with_real_defaults(words, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*words, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"esbas {' '.join(words)}" in text
    assert [wrong for wrong in ("None", "(default: )", "(default: '')") if wrong in text] == []
    usage, _, *after = text.splitlines()
    description = list(itertools.takewhile(lambda line: line[:1] not in ("╭", "+"), after))
    assert usage.startswith("usage: ")
    assert description[0]
    assert max(map(len, description)) <= 80


def test_every_option_of_a_training_says_its_default(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    text = capsys.readouterr().out.replace("│", " ").replace("|", " ")
    words = " ".join(text.split()).partition("--help")[2]
    options = [
        text
        for text in re.split(r" --(?=[a-z][a-z-]* [A-Z]+)", words)[1:]
        if not text.startswith("no-")
    ]
    assert len(options) >= 18
    assert [text for text in options if "default" not in text.lower()] == []


def test_help_of_train_loads_nothing_that_only_a_training_needs():
    program = """
import sys
from esbas.cli import main
try:
    main(["train", "--help"])
except SystemExit:
    print(*sys.modules)
"""
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tyro" in loaded
    assert {"gymnasium", "matplotlib", "scipy", "numba", "rich", "torch"}.isdisjoint(loaded)


def test_bandits_are_listed_and_described(capsys):
    assert cli.main(["bandits"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in BANDITS)
    assert "For learning arms:" in text
    assert cli.main(["bandits", "kl-ucb"]) == 0
    text = capsys.readouterr().out
    assert "The largest q with n_k kl(x_k, q)" in text
    assert "Options: c=0.0." in text
    assert cli.main(["bandits", "ucb"]) == 2
    assert "did you mean 'ucb1'?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["reproduce", "--help"]])
def test_version_and_help_load_nothing_heavy(words):
    program = f"""
import sys
from esbas.cli import main
main({words})
print(*sys.modules)
"""
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"tyro", "rich", "matplotlib", "scipy", "numba", "gymnasium"}.isdisjoint(loaded)


def test_python_dash_m():
    done = subprocess.run(
        [sys.executable, "-m", "esbas", "reproduce", "gridword"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert (
        done.stderr == "esbas: There is no experiment named 'gridword': did you mean 'gridworld'?\n"
    )


def test_output_that_nobody_reads_any_more_is_no_error():
    command = (
        f"{sys.executable} -m esbas bandits | {sys.executable} -c 'import sys; sys.stdin.close()'"
    )
    for _ in range(2):
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        assert result.stderr == ""
