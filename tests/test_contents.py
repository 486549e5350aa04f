"""`dir(esbas)` is the table of contents, and every command is a thin layer over a function."""

import dataclasses
import inspect
import subprocess
import sys

import pytest

import esbas
from esbas.cli.compare import Compare
from esbas.cli.evaluate import Evaluate
from esbas.cli.export import Export
from esbas.cli.resume import Resume
from esbas.training.config import TrainingConfig


def test_the_table_of_contents_has_what_all_says_and_nothing_else():
    assert dir(esbas) == sorted(esbas.__all__)
    for name in dir(esbas):
        getattr(esbas, name)
    assert dir(esbas) == sorted(esbas.__all__)  # also after everything has been imported
    main = {
        "train",
        "load_training",
        "compare",
        "run",
        "resume",
        "open_study",
        "load_policy",
        "Training",
    }
    assert main <= set(dir(esbas))
    assert not {"training", "store", "bandits", "session"} & set(dir(esbas))


def test_a_fresh_process_shows_the_same():
    code = "import esbas; print(*dir(esbas)); esbas.train; esbas.training; print(*dir(esbas))"
    lines = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert lines[0] == lines[1] == " ".join(sorted(esbas.__all__))


def test_a_star_import_works():
    code = "from esbas import *; print(train, Training)"
    assert subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def parameters(function):
    return {
        name: each
        for name, each in inspect.signature(function).parameters.items()
        if name != "self"
    }


def options_of_help(*command):
    """The options that the help of a command shows."""
    done = subprocess.run(
        [sys.executable, "-m", "esbas", *command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    words = [word.strip("│,") for word in done.stdout.split()]
    return {word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}


def test_every_option_of_the_command_is_an_option_of_the_function_and_the_other_way_round():
    shown = options_of_help("train")
    given = set(parameters(esbas.train))
    assert {name for name in shown if not name.startswith("no_")} - {"help"} == given - {"env"}
    defaults = {field.name: field.default for field in dataclasses.fields(TrainingConfig)}
    assert {name: each.default for name, each in parameters(esbas.train).items()} == defaults


def test_the_function_describes_every_option():
    text = inspect.getdoc(esbas.train)
    for name in parameters(esbas.train):
        assert f"    {name}: " in text
    assert "\n\n" in text
    assert str(inspect.signature(esbas.train)).startswith("(env")


@pytest.mark.parametrize(
    ("command", "function", "of_folders", "only_words"),
    [
        (Resume, esbas.Training.extend, {"folder", "trust"}, set()),
        (Evaluate, esbas.Training.evaluate, {"folder", "trust"}, {"offline"}),
        (Export, esbas.Training.export, {"folder", "trust"}, set()),
        (Compare, esbas.compare, {"folders"}, set()),
    ],
)
def test_other_commands_have_the_options_of_their_functions(
    command, function, of_folders, only_words
):
    """`of_folders` say which training.

    `only_words` choose another method, such as `evaluate_offline`.
    """
    # what an option of a function is called on the command line
    own = {"path": "out", "trainings": "folders"}
    words = {field.name for field in dataclasses.fields(command)} - of_folders - only_words
    given = {own.get(name, name) for name in parameters(function)} - of_folders - {"progress"}
    assert words - {"progress"} == given


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        esbas.trian  # noqa: B018
