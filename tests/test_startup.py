"""What a user sees first: a line before anything slow, and a notice before networks are compiled.

Nothing is timed here: `python -m benchmarks startup` does that.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from esbas._internal import compile_notice

SLOW = {"gymnasium", "llvmlite", "matplotlib", "numba", "pandas", "rich", "scipy", "torch"}

# Prints the first line of output, and below it the modules that were loaded before.
FIRST_LINE = """
import sys
from esbas import cli

class FirstLine:
    def write(self, text):
        print(text.splitlines()[0], *sys.modules, sep="\\n", file=sys.__stdout__)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        raise SystemExit

sys.stdout = sys.stderr = FirstLine()
cli.main(sys.argv[1:])
"""


def _environment(cache: Path) -> dict[str, str]:
    return os.environ | {"NUMBA_CACHE_DIR": str(cache)}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "CartPole-v1"], "Preparing the training on CartPole-v1."),
        (["train", "CartPole-v1", "--seeds", "0", "1"], "Preparing the training on CartPole-v1."),
        (["demo"], "Four DQNs learn to balance a pole, and a bandit chooses which of them acts."),
        (["resume", "folder"], "Preparing the training in folder."),
        (["evaluate", "folder"], "Loading the training in folder."),
        (["export", "folder"], "Loading the training in folder."),
        (["compare", "one", "other"], "Loading the trainings."),
        (["reproduce", "gridworld"], "Loading the experiment gridworld."),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_the_first_line_is_printed_before_slow_imports(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_LINE, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    line, *loaded = done.stdout.splitlines()
    assert line == sentence
    assert "numpy" in loaded
    assert SLOW.isdisjoint(loaded)
    assert not list(tmp_path.iterdir())


def test_mistakes_in_options_and_quiet_commands_have_no_opening(tmp_path: Path) -> None:
    for words in (["--stpes", "10"], ["--help"], ["--no-progress", "--selector", "ssbs"]):
        done = subprocess.run(
            [sys.executable, "-m", "esbas", "train", "CartPole-v1", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Preparing" not in done.stdout + done.stderr


def test_compilation_is_announced_if_nothing_is_cached(tmp_path: Path) -> None:
    outputs = []
    for out in ("cold", "warm"):
        command = [sys.executable, "-m", "esbas", "train", "CartPole-v1", "--steps", "50"]
        done = subprocess.run(
            [*command, "--out", out],
            cwd=tmp_path,
            env=_environment(tmp_path / "cache"),
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stderr)
    cold, warm = outputs
    assert cold.splitlines()[:2] == ["Preparing the training on CartPole-v1.", compile_notice.ONCE]
    assert cold.count(compile_notice.ONCE) == 1
    assert warm.splitlines()[0] == cold.splitlines()[0]
    assert "compiled" not in warm


def test_a_learner_is_compiled_before_workers_start(tmp_path: Path) -> None:
    # What acts is compiled with what learns, so that workers find both in the cache.
    code = """
import gymnasium
from esbas.learners import DQN, SharedReplay
from esbas.learners.dqn.compiled import dense_group

env = gymnasium.make("CartPole-v1")
learner = DQN("DQN", replay=SharedReplay(env, buffer_size=100))
print(len(dense_group.update.signatures), len(dense_group.values_of_one.signatures))
learner.policy().act(env.reset(seed=0)[0], env.np_random)
print(len(dense_group.update.signatures), len(dense_group.values_of_one.signatures))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1"] * 4


def test_the_notice_is_for_slow_functions_and_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with compile_notice.announcing_compilation():
        compile_notice.announce_compilation("esbas.fast", is_stored=True)
        compile_notice.announce_compilation(compile_notice.SLOW, is_stored=True)
        compile_notice.announce_compilation(compile_notice.SLOW, is_stored=True)
    compile_notice.announce_compilation(compile_notice.SLOW, is_stored=True)
    with compile_notice.announcing_compilation(enabled=False):
        compile_notice.announce_compilation(compile_notice.SLOW, is_stored=True)
    assert capsys.readouterr().err == f"{compile_notice.ONCE}\n"


def test_the_notice_says_if_the_result_can_not_be_stored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with compile_notice.announcing_compilation():
        compile_notice.announce_compilation(compile_notice.SLOW, is_stored=False)
    assert capsys.readouterr().err == f"{compile_notice.ALWAYS}\n"
