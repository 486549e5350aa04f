"""Every Python block of the README and the docs runs as it stands, and its plug-ins keep their
contracts. Every example runs.
"""

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import esbas
from documentation.pages import MLFLOW, PAGES, ROOT, SHORTER, fences, programs
from esbas.bandits import BANDITS, Bandit
from esbas.engine import ENGINES, check_engine
from esbas.experiments.envs import NegotiationDialogue, write_dialogues
from esbas.experiments.options import SweepOptions
from esbas.objective import OBJECTIVES
from esbas.selectors import SELECTORS
from esbas.testing import Corridor, check_bandit, check_learner, check_objective, check_selector
from esbas.training import ALGORITHMS, Callback, recipe_of
from esbas.training.config import TrainingConfig, decisive_fields

pytestmark = pytest.mark.docs
WAIT = 600  # seconds for a program, on a busy machine

AT_LEAST = {
    "README.md": 1,
    "bandits.md": 4,
    "deep.md": 5,
    "dialogue-log.md": 2,
    "evaluation.md": 1,
    "faults.md": 3,
    "metrics.md": 1,
    "overview.md": 2,
    "plugins.md": 10,
    "policies.md": 3,
    "portfolios.md": 1,
    "python.md": 6,
    "selectors.md": 2,
    "service.md": 2,
    "studies.md": 1,
    "theory.md": 1,
    "environments.md": 1,
}
"""The number of blocks of each page that has some: a page whose blocks are no longer found
fails.
"""
EXTRAS = {
    "D3Learner": ("d3rlpy", "d3rlpy"),
    "FittedQ": ("sklearn", "sklearn"),
    "SB3Learner": ("stable_baselines3", "sb3"),
    "stable_baselines3": ("stable_baselines3", "sb3"),
}
"""What a block mentions if it needs an optional extra, the package that must be installed, and
the extra.
"""
OTHERS = {
    "Stubborn": "a user of the dialogue",
    "Corridor": "a task",
    "CostlyCorridor": "a task",
    "Levers": "a task",
}
"""Classes that are no plug-ins."""
ENVS = {("python.md", "Mine"): "Pendulum-v1"}
"""Environments in which learners are checked that do not suit `Corridor`."""


def marks(program):
    missing = [
        (package, extra)
        for word, (package, extra) in EXTRAS.items()
        if re.search(rf"\b{word}\b", program.code)
    ]
    yield from (
        pytest.mark.skip(
            reason=f"{program.page}:{program.line} needs {package}: pip install 'esbas[{extra}]'"
        )
        for package, extra in missing
        if importlib.util.find_spec(package) is None
    )


PROGRAMS = [
    pytest.param(each, id=f"{each.page}:{each.line}", marks=list(marks(each)))
    for each in programs()
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with its modules importable; names that a block registers are
    forgotten afterwards.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for registry in (ALGORITHMS, BANDITS, ENGINES, OBJECTIVES, SELECTORS):
        list(registry)  # complete
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_titles", dict(registry._titles))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


def write_log(folder):
    """The log of dialogues that docs/dialogue-log.md reads."""
    env = NegotiationDialogue()
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    dialogues = []
    for _ in range(100):
        env.reset()
        while not env.step(int(rng.integers(5)))[2]:
            pass
        dialogues.append(env.dialogue)
    write_dialogues(folder / "log.jsonl", dialogues)


def check_callback(callback, capfd):
    """A callback is called in a run without an error."""
    capfd.readouterr()
    options = {"learners": ("random",), "out": "observed", "tensorboard": False}
    training = esbas.train("CartPole-v1", steps=60, callbacks=[callback], **options)
    assert training.finished
    assert "the callback" not in capfd.readouterr().err  # a failed callback is reported there


def check_logger(callback):
    """A callback of MLflow is called from the start to the end of a run, and its names are valid
    in MLflow.
    """
    mlflow = importlib.import_module("mlflow")
    members = ("training.observed:Counting(name='a, b')", "random")
    esbas.train(
        "CartPole-v1",
        learners=members,
        steps=60,
        out=Path("logged"),
        tensorboard=False,
        callbacks=(callback,),
    )
    (first, _, named), *between, (last, ended, _) = mlflow.calls
    assert (first, named["run_name"], last, ended) == (
        "start_run",
        "CartPole-v1, seed 0",
        "end_run",
        ("FINISHED",),
    )
    assert {name for name, _, _ in between} == {"log_metrics"}
    _, (numbers,), options = between[-1]
    assert options["step"] >= 60
    assert {"value", "share/a- b", "loss/a- b", "share/random"} <= set(numbers)
    assert all(
        re.fullmatch(r"[\w./ -]+", name) and np.isfinite(number) for name, number in numbers.items()
    )


def test_all_blocks_are_found():
    counts = {
        page.name: sum(language == "python" for _, language, _ in fences(page)) for page in PAGES
    }
    assert {name: count for name, count in counts.items() if count} == {
        name: counts[name] for name in AT_LEAST
    }
    assert [name for name, least in AT_LEAST.items() if counts[name] < least] == []
    for page in PAGES:
        assert page.read_text("utf-8").count("```python") == counts[page.name], page.name


def test_every_budget_that_is_shortened_occurs():
    texts = {page.name: page.read_text("utf-8") for page in PAGES}
    assert [
        (page, long) for page, table in SHORTER.items() for long in table if long not in texts[page]
    ] == []


def test_the_python_page_says_which_options_decide_results():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    decisive, others = re.findall(
        r"^\| (?:decide results|do not);.*\| (.+) \|$", page, re.MULTILINE
    )
    names = [field.name for field in decisive_fields()]
    assert re.findall(r"`(\w+)`", decisive) == names
    assert re.findall(r"`(\w+)`", others) == [
        name for name in TrainingConfig.__dataclass_fields__ if name not in names
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_documented_code_runs(program, folder, capfd):
    path = program.write(folder)
    if '"log.jsonl"' in program.code:
        write_log(folder)
    if "import mlflow" in program.code:
        (folder / "mlflow.py").write_text(MLFLOW)
    if program.is_script:
        run_script(path, cwd=folder)
    module = importlib.import_module(program.module)
    for name, each in vars(module).items():
        if getattr(each, "__module__", None) == program.module or isinstance(each, esbas.Objective):
            check(name, each, program, capfd)


def check(name, each, program, capfd):
    """Check a class or function of a block by the contract of its kind; a class of no known kind
    is an error.
    """
    if isinstance(each, esbas.Objective) or (
        inspect.isfunction(each) and list(inspect.signature(each).parameters) == ["trajectory"]
    ):
        check_objective(each, Corridor())
    if not isinstance(each, type) or name in OTHERS:
        return
    if issubclass(each, Bandit):
        check_bandit(each)
    elif issubclass(each, esbas.Selector):
        check_selector(each)
    elif issubclass(each, Callback):
        if "import mlflow" in program.code:
            check_logger(each)
        else:
            check_callback(each, capfd)
    elif issubclass(each, SweepOptions):
        each(runs=2, jobs=1, out=Path("checked")).run()
        assert Path("checked", "summary.json").exists()
    elif hasattr(each, "map"):
        check_engine(each)
    elif hasattr(each, "stationary"):
        env = (
            gymnasium.make(ENVS[program.page, name]) if (program.page, name) in ENVS else Corridor()
        )
        check_learner(lambda: make_learner(each, env), env)
    elif hasattr(each, "act"):
        assert program.is_script, f"{name} is a policy: end its block with a check"
        assert "check_policy(" in program.code
    else:
        pytest.fail(f"{name} in {program.page} is of no known kind")


def make_learner(kind, env):
    """The learner as the documentation creates it: without arguments, or as `esbas train` does."""
    if not inspect.signature(kind).parameters:
        return kind()
    (learner,) = recipe_of([f"{kind.__module__}:{kind.__name__}"]).build(env, steps=100, seed=0)
    return learner


def test_the_documented_bandit_works_inside_esbas(folder):
    (program,) = [
        each for each in programs() if each.page == "plugins.md" and "class MOSS" in each.code
    ]
    program.write(folder)
    bandit = importlib.import_module(program.module).MOSS
    selector = esbas.ESBAS(["a", "b"], bandit=bandit, scale=None)
    for _ in range(255):
        choice = selector.ask()
        selector.tell(choice, {"a": 0.2, "b": 0.8}[choice.arm])
    report = selector.explain()
    assert report["b"]["selections"] > report["a"]["selections"]


# takes longer: see test_faults.py
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "faults")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    assert run_script(path, cwd=tmp_path).strip()


def run_script(path, *, cwd):
    result = subprocess.run(
        [sys.executable, str(path)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
