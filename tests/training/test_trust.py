"""A folder that names modules is opened only if it is trusted: an imported module runs code."""

import json
import sys
from importlib import import_module

import pytest

from esbas import cli
from esbas.errors import TrustError
from esbas.training import open_folder
from training.programs import words

TRAP = "import pathlib; pathlib.Path(__file__).with_suffix('.ran').touch()"


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a file when it is imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "trapped.py").write_text(TRAP)
    yield tmp_path / "trapped.ran"
    sys.modules.pop("trapped", None)


@pytest.fixture
def folder(tmp_path):
    out = tmp_path / "it"
    assert cli.main(words(out, "--no-tensorboard", learners=["random"], steps=50)) == 0
    return out


def rewrite(folder, kind):
    """Let the folder name the module `trapped`."""
    path = folder / "config.json"
    about = json.loads(path.read_text())
    if kind == "env":
        about["config"]["env"] = "trapped:CartPole-v1"
    elif kind == "learner":
        (folder / "portfolio.toml").write_text('[[learner]]\nalgorithm = "trapped:Learner"\n')
    elif kind == "wrapper":
        about["config"]["wrappers"] = [
            "TimeLimit(max_episode_steps=9)",
            "trapped:Wrapper(option=1)",
        ]
    else:
        about["config"][kind] = "trapped:Thing"
    path.write_text(json.dumps(about))


TASKS = [
    "trapped.py",
    "trapped.py:Thing(a=1)",
    "esbas./../trapped.py",
    "esbas:trapped:CartPole-v1",
    "esbas._internal.registry:import_object(path='trapped:thing')",
    "CartPole-v1(env_id='trapped:thing')",
]
SELECTORS = ["trapped.py:Thing", "trapped:Thing(a=1)", "ssbas(bandit='trapped:Thing')"]


def test_files_and_what_would_be_called_need_trust(folder, trap, monkeypatch):
    monkeypatch.chdir(folder.parent)
    path = folder / "config.json"
    about = json.loads(path.read_text())
    changes = [("env", {"env": task}) for task in TASKS] + [
        ("selector", {"selector": each}) for each in SELECTORS
    ]
    changes += [
        ("learner", {"learners": ["trapped:maker"]}),
        ("wrapper", {"wrappers": ["trapped:Wrapper"]}),
    ]
    for kind, change in changes:
        path.write_text(json.dumps(about | {"config": about["config"] | change}))
        with pytest.raises(TrustError, match=rf"would import .*\({kind}( option)? '"):
            open_folder(folder)
    assert not trap.exists()


@pytest.mark.parametrize("kind", ["env", "learner", "wrapper", "selector", "objective"])
@pytest.mark.parametrize("command", ["resume", "evaluate", "compare"])
def test_nothing_is_imported_without_trust(folder, trap, capsys, monkeypatch, command, kind):
    monkeypatch.chdir(folder.parent)
    rewrite(folder, kind)
    assert cli.main([command, str(folder)]) == 2
    error = capsys.readouterr().err
    assert f"The folder {str(folder)!r} would import 'trapped' ({kind} 'trapped:" in error
    assert "add --trust (in Python: trust=True)" in error
    assert not trap.exists()
    import_module("trapped")
    assert trap.exists()  # the trap works


def test_a_trusted_folder_works(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learners = ["training.plugins:Steady(name='zero')", "random"]
    more = ["--wrappers", "gymnasium.wrappers:TimeLimit(max_episode_steps=20)", "--no-tensorboard"]
    # these words are the user's own
    assert cli.main(words("it", *more, learners=learners, steps=100)) == 0
    assert cli.main(["compare", "it"]) == 2
    error = capsys.readouterr().err
    assert (
        "'gymnasium.wrappers' (wrapper 'gymnasium.wrappers:TimeLimit'), 'training.plugins' (learner"
        in error
    )
    assert cli.main(["compare", "it", "--trust"]) == 0
    assert cli.main(["evaluate", "it", "--trust", "--episodes", "1"]) == 0
    assert cli.main(["resume", "it", "--trust", "--no-tensorboard"]) == 0


def test_names_of_the_library_need_no_trust(folder):
    path = folder / "config.json"
    about = json.loads(path.read_text())
    about["config"] |= {
        "env": "gymnasium:CartPole-v1",
        "selector": "fixed:random",
        "objective": "longest",
        "wrappers": ["TimeLimit(max_episode_steps=9)"],
    }
    path.write_text(json.dumps(about))
    assert open_folder(folder).plan.config.env == "gymnasium:CartPole-v1"


def test_a_function_of_the_library_cannot_import_for_the_folder(folder, trap):
    """`import_object` as the algorithm, and the module to import as the name of the learner."""
    text = '[[learner]]\nalgorithm = "esbas._internal.registry:import_object"\n'
    text += 'name = "trapped:thing"\n'
    (folder / "portfolio.toml").write_text(text)
    with pytest.raises(TrustError, match="would import 'esbas"):
        open_folder(folder)
    assert not trap.exists()
