"""A slice of the fuzzers (`make fuzz` has more inputs), and the harness itself."""

import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from fuzz import harness
from fuzz.__main__ import run


@pytest.mark.parametrize("name", harness.find_targets())
def test_hostile_input_gets_one_sentence_and_changes_nothing(name):
    problems = {number: harness.try_input(name, 0, number) for number in range(50)}
    assert {number: problem for number, problem in problems.items() if problem} == {}


def raises(error):
    def target(rng):
        raise error

    return target


def nonsense(error):
    def target(rng):
        with harness.nonsense_allowed():
            raise error

    return target


def sleeps(rng):
    time.sleep(120)


def starts(rng):
    subprocess.run(["true"], check=True)


def writes(rng):
    (Path.home() / "written by the fuzzer").write_text("")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (lambda rng: None, None),
        (raises(InvalidValueError("one sentence")), None),
        (raises(InvalidValueError("two\nlines")), "not one sentence"),
        (raises(InvalidValueError("x" * 5_000)), "not one sentence"),
        (raises(KeyError("raw")), "KeyError: 'raw'"),
        (nonsense(KeyError("raw")), None),
        (nonsense(InvalidValueError("two\nlines")), "not one sentence"),
        (nonsense(TypeError("raw")), "TypeError: raw"),
        (raises(MemoryError()), "MemoryError"),
        (sleeps, "an input took longer than 0.2 s"),
        (starts, "Forbidden: subprocess.Popen"),
        (writes, "written by the fuzzer' was written"),
    ],
)
def test_the_harness_finds_raw_errors_and_hangs(monkeypatch, capsys, target, problem):
    monkeypatch.setitem(harness.TARGETS, "it", target)
    monkeypatch.setattr(harness, "SECONDS", 0.2)
    found = harness.try_input("it", 0, 0)
    assert (found is None) == (problem is None)
    assert problem is None or problem in found
    assert run("it", 3, 7, 1) == (problem is not None)
    assert ('--target "it" --seed 3 --first 7 --count 1' in capsys.readouterr().out) == (
        problem is not None
    )


def test_an_input_depends_on_its_seed_and_number_alone(monkeypatch):
    drawn = []
    monkeypatch.setitem(harness.TARGETS, "it", lambda rng: drawn.append(rng.integers(2**62)))
    for seed, number in ((0, 0), (0, 1), (1, 0), (0, 0)):
        harness.try_input("it", seed, number)
    assert drawn[0] == drawn[3]
    assert len(np.unique(drawn)) == 3
