"""Default portfolios against those of version 0.7, at equal environment steps and paired seeds.

    python -m benchmarks portfolios                                  # everything that is missing
    python -m benchmarks.portfolios --tasks Taxi CartPole --seeds 3  # a part of it

A run that is finished is kept in `results/portfolios/`, so the command continues where it was
stopped, and only prints the tables if nothing is missing. A score is the mean over 50 equal parts
of the budget. The portfolios were chosen on the first fourteen environments; the others were kept
aside.
"""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import esbas
from esbas.experiments.control.cells import binned_means
from esbas.learner import Learner
from esbas.specs.portfolios.recipe import Recipe, default_recipe, read_recipe
from esbas.training import make_env

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "portfolios"
BEFORE = Path(__file__).parent / "portfolios_before"
BINS = 50
LATE = 0.8  # the last fifth of a run
LAST_EPISODES = 50
SOLVED = -160  # MountainCar
NOW = "now"
THEN = "before"
RANDOM = "random"
TABLES = "tables"
NETWORKS = "networks"


@dataclass(frozen=True)
class Task:
    """An environment with its budget.

    Attributes:
        env: as in `esbas train`.
        steps: of training.
        kind: which default portfolio it gets.
        seeds: how many runs.
        wrappers: as in `esbas train`.
        greedy_episodes: of the final policy without exploration.
        is_compared: whether it counts in the aggregate.
        is_aside: whether it was not used to choose the portfolios.
    """

    env: str
    steps: int
    kind: str
    seeds: int
    wrappers: tuple[str, ...] = ()
    greedy_episodes: int = 50
    is_compared: bool = True
    is_aside: bool = False


_EXPERIMENTS = "esbas.experiments.envs"
_GRID = ("minigrid.wrappers:ImgObsWrapper", "FlattenObservation")
_MINATAR = ("FlattenObservation", "TimeLimit(max_episode_steps=1000)")
TASKS = {
    "FrozenLake": Task("FrozenLake-v1", 20_000, TABLES, 10),
    "FrozenLake8x8": Task("FrozenLake8x8-v1", 20_000, TABLES, 10),
    "Taxi": Task("Taxi-v4", 20_000, TABLES, 10, greedy_episodes=1000),
    "CliffWalking": Task(
        "CliffWalking-v1", 20_000, TABLES, 10, ("TimeLimit(max_episode_steps=200)",)
    ),
    "RiverSwim": Task(f"{_EXPERIMENTS}:RiverSwim", 20_000, TABLES, 10),
    "FourRooms": Task(
        f"{_EXPERIMENTS}:FourRooms(slip=0.2, max_episode_steps=150)", 20_000, TABLES, 10
    ),
    "Inventory": Task(
        f"{_EXPERIMENTS}:Inventory(capacity=12, demand=4, max_episode_steps=50)", 20_000, TABLES, 10
    ),
    "CartPole": Task("CartPole-v1", 20_000, NETWORKS, 20),
    "Acrobot": Task("Acrobot-v1", 20_000, NETWORKS, 10),
    "MiniGrid-Empty": Task("minigrid:MiniGrid-Empty-Random-6x6-v0", 12_000, NETWORKS, 10, _GRID),
    "Breakout": Task(
        "minatar.gym:BaseEnv(game='breakout', use_minimal_action_set=True)",
        20_000,
        NETWORKS,
        10,
        _MINATAR,
    ),
    "LunarLander": Task("LunarLander-v3", 50_000, NETWORKS, 20, greedy_episodes=20),
    "LunarLander-long": Task(
        "LunarLander-v3", 100_000, NETWORKS, 20, greedy_episodes=20, is_compared=False
    ),
    "MountainCar": Task(
        "MountainCar-v0", 100_000, NETWORKS, 10, greedy_episodes=20, is_compared=False
    ),
    "Blackjack": Task(
        "Blackjack-v1", 20_000, TABLES, 10, ("DiscreteObservations",), 1000, is_aside=True
    ),
    "Lake-without-slipping": Task(
        "FrozenLake8x8-v1(is_slippery=False)", 20_000, TABLES, 10, is_aside=True
    ),
    "FruitGrid": Task(f"{_EXPERIMENTS}:FruitGrid(noise=0.3)", 20_000, TABLES, 10, is_aside=True),
    "SpaceInvaders": Task(
        "minatar.gym:BaseEnv(game='space_invaders', use_minimal_action_set=True)",
        20_000,
        NETWORKS,
        5,
        _MINATAR,
        is_aside=True,
    ),
    "Freeway": Task(
        "minatar.gym:BaseEnv(game='freeway', use_minimal_action_set=True)",
        20_000,
        NETWORKS,
        5,
        ("FlattenObservation", "TimeLimit(max_episode_steps=250)"),
        is_aside=True,
    ),
    "Swing": Task(
        "Pendulum-v1(max_episode_steps=100)",
        10_000,
        NETWORKS,
        10,
        ("DiscretizeAction(bins=5)",),
        is_aside=True,
    ),
}


def main() -> None:
    run_missing(list(TASKS), seeds=None)
    print_tables()


def run_missing(names: Sequence[str], *, seeds: int | None) -> None:
    """Run what is missing in the results: all methods with the first seed, then with the next."""
    most = max(TASKS[name].seeds for name in names)
    for seed in range(most if seeds is None else min(most, seeds)):
        for name in names:
            task = TASKS[name]
            if seed >= task.seeds:
                continue
            for method, recipe in methods_of(task).items():
                _run_if_missing(name, method, recipe, seed)


def methods_of(task: Task) -> dict[str, Recipe]:
    """Return the portfolios to run by name: before, now, chance, and tables each alone."""
    file = "tabular.toml" if task.kind == TABLES else "discrete.toml"
    before = read_recipe((BEFORE / file).read_text("utf-8"), source=file)
    env = _make(task)
    now = default_recipe(env)
    env.close()
    found = {
        THEN: before,
        NOW: now,
        RANDOM: read_recipe('[[learner]]\nalgorithm = "random"', source=RANDOM),
    }
    if task.kind == TABLES:
        for spec in now.learners:
            found[f"alone: {spec.name}"] = Recipe(now.text, (spec,), now.memory)
    return found


def _make(task: Task) -> Any:
    return make_env(task.env, wrappers=list(task.wrappers))


def _run_if_missing(name: str, method: str, recipe: Recipe, seed: int) -> None:
    task = TASKS[name]
    path = _path(name, method)
    stored = _read(path, recipe, task)
    if str(seed) in stored["runs"]:
        return
    stored["runs"][str(seed)] = run_one(task, recipe, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(stored, indent=1)
    path.write_text(text + "\n", "utf-8")
    score = stored["runs"][str(seed)]["score"]
    print(f"{name}, {method}, seed {seed}: {score:.4g}", flush=True)


def _path(name: str, method: str) -> Path:
    file = "".join(letter if letter.isalnum() else "-" for letter in method)
    return RESULTS / name / f"{file}.json"


def _read(path: Path, recipe: Recipe, task: Task) -> dict[str, Any]:
    """Return the stored runs of this portfolio and budget. Those of others do not count."""
    names = [spec.name for spec in recipe.learners]
    about = {
        "env": task.env,
        "steps": task.steps,
        "learners": names,
        "portfolio": hashlib.sha256(recipe.text.encode()).hexdigest(),
    }
    if path.exists():
        stored: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if {key: stored.get(key) for key in about} == about:
            return stored
    return about | {"runs": {}}


def run_one(task: Task, recipe: Recipe, seed: int) -> dict[str, Any]:
    """Train once with the recommended selector, and let the leader at the end play greedily."""
    env = _make(task)
    learners = recipe.build(env, steps=task.steps, seed=seed)
    starts = []
    values = []
    controlling = []
    steps = 0
    begin = time.process_time()
    run = esbas.run(env, learners, steps=task.steps, objective="return", seed=seed, keep_data=False)
    for record in run:
        starts.append(steps)
        values.append(record.value)
        controlling.append(record.learner)
        steps += record.length
    seconds = time.process_time() - begin
    curve = binned_means(np.array(starts), np.array(values), steps=task.steps, bins=BINS)
    late = [
        name
        for name, start in zip(controlling, starts, strict=True)
        if start >= LATE * task.steps or start == starts[-1]
    ]
    leader = max(sorted(set(late)), key=late.count)
    by_name = {learner.name: learner for learner in learners}
    greedy = _greedy_score(task, by_name[leader], seed)
    env.close()
    return {
        "score": float(curve.mean()),
        "last fifth": float(curve[int(LATE * BINS) :].mean()),
        f"last {LAST_EPISODES} episodes": float(np.mean(values[-LAST_EPISODES:])),
        "greedy": greedy,
        "leader": leader,
        "cpu seconds": round(seconds, 3),
    }


def _greedy_score(task: Task, learner: Learner, seed: int) -> float:
    """Return the mean return of a learner's policy without exploration, over fresh episodes."""
    env = _make(task)
    policy = getattr(learner, "greedy_policy", learner.policy)()
    rng = np.random.default_rng((seed, 10_000))
    returns = []
    for _ in range(task.greedy_episodes):
        episode_seed = int(rng.integers(2**31))
        trajectory = esbas.play(env, policy, rng=rng, seed=episode_seed)
        returns.append(float(trajectory.rewards.sum()))
    env.close()
    return float(np.mean(returns))


def scores_of(name: str, method: str, *, key: str = "score") -> dict[int, float]:
    """Return the stored numbers of a method on a task, by seed."""
    path = _path(name, method)
    if not path.exists():
        return {}
    runs = json.loads(path.read_text("utf-8"))["runs"]
    return {int(seed): run[key] for seed, run in runs.items()}


def _mean(scores: dict[int, float]) -> float:
    return float(np.mean(list(scores.values()))) if scores else math.nan


def _interval(differences: Sequence[float]) -> float:
    """Return half of the width of the 95 % interval of a mean."""
    if len(differences) < 2:
        return math.nan
    return float(1.96 * np.std(differences, ddof=1) / math.sqrt(len(differences)))


def rows(*, aside: bool = False) -> list[dict[str, Any]]:
    """Return a row for each task with results: scores, paired difference and relative gain.

    Args:
        aside: whether the tasks are those that were kept aside.
    """
    found = []
    for name, task in TASKS.items():
        if task.is_aside != aside:
            continue
        before = scores_of(name, THEN)
        now = scores_of(name, NOW)
        seeds = sorted(set(before) & set(now))
        if not seeds:
            continue
        differences = [now[seed] - before[seed] for seed in seeds]
        chance = _mean(scores_of(name, RANDOM))
        best = max(_mean(before), _mean(now), _best_alone(name))
        difference = float(np.mean(differences))
        then = _mean({seed: before[seed] for seed in seeds})
        found.append(
            {
                "task": name,
                "kind": task.kind,
                "seeds": len(seeds),
                "random": chance,
                "before": then,
                "now": then + difference,
                "difference": difference,
                "interval": _interval(differences),
                "best alone": _best_alone(name),
                "best": best,
                "gain": difference / (best - chance),
                "ratio": (then + difference - chance) / (then - chance),
                "greedy before": _mean(scores_of(name, THEN, key="greedy")),
                "greedy now": _mean(scores_of(name, NOW, key="greedy")),
                "cpu": _mean(scores_of(name, NOW, key="cpu seconds"))
                / _mean(scores_of(name, THEN, key="cpu seconds")),
            }
        )
    return found


def _best_alone(name: str) -> float:
    scores = [-math.inf]
    folder = RESULTS / name
    for path in sorted(folder.glob("alone-*.json")):
        runs = json.loads(path.read_text("utf-8"))["runs"]
        scores.append(_mean({int(seed): run["score"] for seed, run in runs.items()}))
    return max(scores)


def table(*, aside: bool = False) -> str:
    """Return the results as a Markdown table, see `rows`."""
    header = ["environment", "steps", "seeds", "random", "before", "now", "difference"]
    header += ["best learner alone", "greedy before", "greedy now"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows(aside=aside):
        cells = [row["task"], f"{TASKS[row['task']].steps:,}", str(row["seeds"])]
        cells += [_shown(row[key]) for key in ("random", "before", "now")]
        cells.append(f"{row['difference']:+.3g} ± {row['interval']:.2g}")
        cells += [_shown(row[key]) for key in ("best alone", "greedy before", "greedy now")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _shown(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def verdicts() -> list[str]:
    """Return what the portfolios were built for, what was measured, and whether it is reached."""
    found = rows()
    lines = []
    tables = [row for row in found if row["kind"] == TABLES]
    if tables:
        gain = float(np.mean([row["gain"] for row in tables]))
        lines.append(
            "Tables gain, on average, at least 0.15 of the way from random to the best score of "
            f"any portfolio or learner alone: {gain:.2f}, {_judged(gain >= 0.15)}."
        )
        below = [row["task"] for row in tables if row["difference"] + row["interval"] < 0]
        lines.append(
            "No interval of a difference between tables is below zero: "
            f"{_judged(not below)}{_listed(below)}."
        )
    taxi = _mean(scores_of("Taxi", NOW, key="greedy"))
    if math.isfinite(taxi):
        lines.append(
            f"The greedy policy on Taxi returns at least 7: {taxi:.2f}, {_judged(taxi >= 7)}."
        )
    networks = [row for row in found if TASKS[row["task"]].is_compared and row["kind"] == NETWORKS]
    if networks:
        ratio = math.exp(float(np.mean([math.log(row["ratio"]) for row in networks])))
        names = ", ".join(f"{row['task']} {row['ratio']:.2f}" for row in networks)
        lines.append(
            "Networks earn at least 1.2 times as much above random as before, as a geometric "
            f"mean: {ratio:.2f} ({names}), {_judged(ratio >= 1.2)}."
        )
        below = [
            row["task"]
            for row in found
            if row["kind"] == NETWORKS and row["difference"] + row["interval"] < 0
        ]
        lines.append(
            "No interval of a difference between networks is below zero: "
            f"{_judged(not below)}{_listed(below)}."
        )
    solved = scores_of("MountainCar", NOW, key=f"last {LAST_EPISODES} episodes")
    if solved:
        count = sum(value > SOLVED for value in solved.values())
        lines.append(
            f"On MountainCar, the last {LAST_EPISODES} episodes return more than {SOLVED} in eight "
            f"of ten runs: in {count} of {len(solved)}, {_judged(10 * count >= 8 * len(solved))}."
        )
    return lines


def _judged(holds: bool) -> str:
    return "reached" if holds else "missed"


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def print_tables() -> None:
    print(table())
    for line in verdicts():
        print(line)
    print("Kept aside:")
    print(table(aside=True))
    for row in [*rows(), *rows(aside=True)]:
        print(f"{row['task']}: CPU time {row['cpu']:.2f} of before")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, help="how many, at most")
    given = parser.parse_args()
    run_missing(given.tasks, seeds=given.seeds)
    print_tables()
