"""Folders of trainings and sweeps: settings, portfolios, logs, clocks and parts."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import esbas
from esbas import cli
from esbas._internal import archive
from esbas.reporting import Results
from esbas.training import open_folder, read_recipe, recipe_of
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import RunLog, read_episodes, read_evaluations, read_faults
from fuzz.files import folder
from fuzz.harness import target, unguarded
from fuzz.mutations import mutated, mutated_bytes

TOML = """
[[learner]]
algorithm = "tabular_q"
name = "rate {learning_rate}"
grid = { learning_rate = [0.1, 0.5] }
learn_timeout = 10.0

[[learner]]
algorithm = "random"
isolate = false

[replay]
buffer_size = 1000
"""
CALLS = (
    "tabular_q",
    "tabular_q(learning_rate=0.1, gamma=0.9)",
    "dqn(hidden=[64, 64], epsilon=(1.0, 0.1, 100))",
    "no.module:Class(x={'k': None})",
)


@cache
def trained() -> Path:
    """The folder of a small training."""
    path = folder() / "trained"
    words = "train FrozenLake-v1 --learners tabular_q random --episodes 9 --no-tensorboard --out"
    with unguarded(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert cli.main([*words.split(), str(path)]) == 0
    return path


def variant(name: str, rng: np.random.Generator) -> Path:
    """A copy of the training's files in which one file is damaged."""
    source = trained()
    copied = folder() / "copied"
    run = copied / "runs" / "seed-0"
    run.mkdir(parents=True, exist_ok=True)
    for each in ("config.json", "portfolio.toml", "spaces.json"):
        (copied / each).write_bytes((source / each).read_bytes())
    for each in ("episodes.csv", "faults.csv", "clock.json", "evaluations.csv", "best.npz"):
        (run / each).write_bytes((source / "runs" / "seed-0" / each).read_bytes())
    path = next(copied.rglob(name))
    data = path.read_bytes()
    if name.endswith(".json") and rng.random() < 0.7:
        path.write_text(
            json.dumps(mutated(json.loads(data), rng, odd=False)), "utf-8", errors="surrogatepass"
        )
    else:
        path.write_bytes(mutated_bytes(data, rng))
    return copied


@target("portfolios in TOML")
def toml(rng: np.random.Generator) -> None:
    text = mutated_bytes(TOML.encode(), rng).decode(errors="replace")
    read_recipe(text, source="p.toml")


@target("learners as calls")
def calls(rng: np.random.Generator) -> None:
    text = mutated_bytes(str(rng.choice(CALLS)).encode(), rng).decode(errors="replace")
    recipe_of([text])


@target("settings and portfolios of folders")
def settings(rng: np.random.Generator) -> None:
    open_folder(variant(str(rng.choice(["config.json", "portfolio.toml"])), rng))


@target("logs and clocks")
def logs(rng: np.random.Generator) -> None:
    name = str(rng.choice(["episodes.csv", "episodes.csv", "faults.csv", "clock.json"]))
    run = variant(name, rng) / "runs" / "seed-0"
    clock = read_clock(run)
    episodes = read_episodes(run)
    assert len(episodes) >= (clock.episodes if clock else 0), (
        "a log that lacks episodes was accepted"
    )
    read_faults(run)
    with RunLog(run, upto=4, steps=int(episodes.steps[3])):
        pass


@target("policies and evaluations")
def policies(rng: np.random.Generator) -> None:
    name = str(rng.choice(["spaces.json", "evaluations.csv", "best.npz"]))
    copied = variant(name, rng)
    run = copied / "runs" / "seed-0"
    if name == "best.npz" and rng.random() < 0.7:
        content = archive.read(trained() / "runs" / "seed-0" / "best.npz", "policy")
        archive.write(run / "best.npz", "policy", mutated(content, rng, odd=False))
    read_evaluations(run)
    policy = esbas.load_policy(copied)
    policy.act(policy.observation_space.sample())


@cache
def part() -> bytes:
    with unguarded():
        results = Results(folder() / "sweep", command="esbas fuzz", config={})
        results.store_part("a", {"values": np.arange(12.0), "counts": np.arange(6)})
    return (folder() / "sweep" / "parts" / "a.npz").read_bytes()


@target("parts of sweeps")
def parts(rng: np.random.Generator) -> None:
    data = part()
    results = Results(folder() / "sweep", command="esbas fuzz", config={})
    (folder() / "sweep" / "parts" / "a.npz").write_bytes(mutated_bytes(data, rng))
    found: Any = results.part("a")
    if found is not None and not all(isinstance(each, np.ndarray) for each in found.values()):
        raise AssertionError("a damaged part was accepted")


@target("settings of sweeps")
def sweeps(rng: np.random.Generator) -> None:
    part()
    path = folder() / "sweep" / "config.json"
    before = path.read_bytes()
    try:
        path.write_text(
            json.dumps(mutated(json.loads(before), rng, odd=False)), "utf-8", errors="surrogatepass"
        )
        Results(folder() / "sweep", command="esbas fuzz", config={})
    finally:
        path.write_bytes(before)
