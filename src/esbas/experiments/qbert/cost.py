"""What a profile would take, computed from rates that are measured on this machine."""

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import esbas
from esbas import seeding
from esbas.engine.progress import Progress
from esbas.experiments.qbert.profiles import NETWORKS, Network, Profile
from esbas.experiments.qbert.setup import COPIES, QbertSetup
from esbas.experiments.qbert.sweep import random_policy
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.reporting import Results, terminal
from esbas.reporting.files import write_json
from esbas.training.config import usable_cores
from esbas.trajectory import Transition

if TYPE_CHECKING:
    from esbas.experiments.qbert import Qbert

SECONDS = 1.5  # of processor time for each measurement
ROWS = 10_000  # of the memory that is measured: large enough to be written to separate files
FEWEST = 300  # transitions to measure with
FRAME = 84 * 84  # bytes of the image in a row of the replay memory
OTHERS = 26  # bytes of action, reward and bookkeeping in a row
ARRAYS = {"rmsprop": 5, "adam": 7}
"""Arrays of each network in memory: target, and two versions of the weights and each moment."""
STORED_ARRAYS = {"rmsprop": 4, "adam": 5}
"""Arrays of each network in a checkpoint."""
GIGABYTE = 1e9
HEADER = "what", "value", "unit"


@dataclass(frozen=True, kw_only=True)
class MeasuredRates:
    """Seconds and bytes, measured. Times are those of one core."""

    step: float  # seconds of the game and its preprocessing per agent step
    act: dict[str, float]  # seconds per action, by network
    update: dict[str, float]  # seconds per update, by network, with sampling
    gpu_update: dict[str, float] | None  # the same on a GPU; None if there is none
    weights: dict[str, int]  # by network
    process: float  # bytes of a process without the replay memory
    libraries: float  # bytes that all processes share
    disk_per_frame: float  # bytes


def publish(options: "Qbert") -> None:
    """Measure, print the estimate, and write estimate.json."""
    options.check()
    folder = options.out or Path("esbas-qbert-estimate")
    config = options.settings() | {"estimate": True}
    results = Results(folder, command=options.command, config=config)
    rates = measure(options.setup)
    rows = estimate(rates, options.values, cores=usable_cores())
    results.table("estimate", HEADER, rows)
    named = [dict(zip(HEADER, row, strict=True)) for row in rows]
    write_json(folder / "estimate.json", {"rates": vars(rates), "estimate": named})
    title = (
        f"Profile {options.profile}, {options.values.steps:,} agent steps on {options.setup.game}"
    )
    shown = [[what, _short(value), unit] for what, value, unit in rows]
    terminal.print_table(title, HEADER, shown)
    terminal.print_text(
        "Times are processor time. Hours on several cores assume that the work divides evenly. The "
        "games without exploration at the end of a run add at most a fifth to the acting.",
        f"Files: {folder / 'estimate.json'}, {folder / 'estimate.csv'}",
    )


def estimate(rates: MeasuredRates, profile: Profile, *, cores: int) -> list[list[object]]:
    """Return the costs as rows, see HEADER."""
    # Hours of one core.
    acting = profile.steps * (rates.step + sum(rates.act.values()) / len(rates.act)) / 3600
    updates = max(0, profile.steps - profile.replay_start) / profile.update_every
    training = updates * COPIES * sum(rates.update.values()) / 3600
    alone = len(NETWORKS) * COPIES * acting + training  # six runs, one network each
    on_gpu: str | float = "not measured here: no GPU"
    if rates.gpu_update is not None:
        on_gpu = updates * COPIES * sum(rates.gpu_update.values()) / 3600
    # Gigabytes.
    frames = (profile.memory + profile.history - 1) * (FRAME + OTHERS) / GIGABYTE
    array = COPIES * sum(rates.weights.values()) * 4 / GIGABYTE
    networks = ARRAYS[profile.optimizer] * array
    processes = ((1 + cores) * rates.process + rates.libraries) / GIGABYTE
    stored_frames = profile.memory * rates.disk_per_frame / GIGABYTE
    stored_networks = STORED_ARRAYS[profile.optimizer] * array
    rows: list[list[object]] = [["game and preprocessing", 1000 * rates.step, "ms per agent step"]]
    for name, seconds in rates.act.items():
        rows.append([f"network {name}: one action", 1000 * seconds, "ms"])
    for name, seconds in rates.update.items():
        rows.append([f"network {name}: one update, with sampling", 1000 * seconds, "ms"])
    rows += [
        ["updates of each network", round(updates), ""],
        ["acting", acting, "core-hours"],
        ["updates of six networks", training, "core-hours"],
        ["one run in total", acting + training, "core-hours"],
        [f"one run on {cores} cores", max(acting, (acting + training) / cores), "hours, at best"],
        ["the same with six networks alone", acting + training + alone, "core-hours"],
        ["updates of six networks on a GPU", on_gpu, "GPU-hours"],
        ["replay memory", frames, "GB of memory"],
        ["networks, targets and optimizers", networks, "GB of memory"],
        [f"{1 + cores} processes with PyTorch", processes, "GB of memory"],
        ["memory in total", frames + networks + processes, "GB of memory"],
        ["replay memory, compressed", stored_frames, "GB on disk"],
        ["networks in a checkpoint", stored_networks, "GB on disk"],
    ]
    return rows


def measure(setup: QbertSetup) -> MeasuredRates:
    """Play random games, then let each network act and learn."""
    env = setup.make_env()
    try:
        with Progress("measuring", total=2 + len(NETWORKS)) as progress:
            transitions, step = _random_games(env)
            progress.advance("the game")
            measured = {}
            for network in NETWORKS:
                found = _measure_network(setup, network, env, transitions, device="cpu")
                measured[network.name] = found
                progress.advance(f"network {network.name}")
            process, libraries = _measure_process(setup, env, transitions)
            progress.advance("a process")
        gpu_update = None
        if torch.cuda.is_available():
            gpu_update = {}
            for network in NETWORKS:
                found = _measure_network(setup, network, env, transitions, device="cuda")
                gpu_update[network.name] = found["update"]
    finally:
        env.close()
    return MeasuredRates(
        step=step,
        act={name: each["act"] for name, each in measured.items()},
        update={name: each["update"] for name, each in measured.items()},
        gpu_update=gpu_update,
        weights={name: int(each["weights"]) for name, each in measured.items()},
        process=process,
        libraries=libraries,
        disk_per_frame=max(each["disk"] for each in measured.values()),
    )


def _random_games(env: Any) -> tuple[list[Transition], float]:
    """Return transitions of whole games, and the seconds that each transition took."""
    found: list[Transition] = []
    start = time.process_time()
    game = 0
    while len(found) < FEWEST or time.process_time() - start < SECONDS:
        rng = seeding.generator(0, "measured games", game)
        esbas.play(env, random_policy(env), rng=rng, seed=game, see=found.append)
        game += 1
    return found, (time.process_time() - start) / len(found)


def _measure_network(
    setup: QbertSetup, network: Network, env: Any, transitions: list[Transition], *, device: str
) -> dict[str, float]:
    """Measure one network, while the two of its shape learn side by side.

    Returns:
        Seconds per action and per update, the number of weights, and bytes on disk per frame.
    """
    often = replace(setup.profile, memory=ROWS, update_every=1, replay_start=len(transitions))
    recipe = replace(setup, profile=often).recipe(_copies(network)).on_device(device)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        learners: list[Any] = recipe.build(env, steps=often.steps, seed=0, folder=folder)
        try:
            for transition in transitions:  # without learning, because of `replay_start`
                _learn(learners, transition)
            learners[0].state_dict()  # writes the frames
            disk = sum(path.stat().st_size for path in folder.iterdir()) / len(transitions)
            stream = cycle(transitions)
            # Processor time, because other programs may use the same cores. That of a GPU is not
            # processor time.
            clock = time.process_time if device == "cpu" else time.perf_counter
            update = _seconds_of(lambda: _learn(learners, next(stream)), clock) / len(learners)
            policy = learners[0].greedy_policy()
            rng = seeding.generator(0, "measured actions")
            act = _seconds_of(lambda: policy.act(next(stream).observation, rng), clock)
            weights = learners[0].policy_state()["weights"].size
        finally:
            for learner in learners:
                learner.close()
    return {"act": act, "update": update, "weights": weights, "disk": disk}


def _measure_process(
    setup: QbertSetup, env: Any, transitions: list[Transition]
) -> tuple[float, float]:
    """Return the bytes of a process that trains: its own, and those of libraries.

    The process that acts has as many, beside the frames.
    """
    profile = setup.profile
    often = replace(profile, memory=ROWS, update_every=1, replay_start=profile.batch_size)
    recipe = replace(setup, profile=often).recipe(_copies(NETWORKS[-1]))
    before = _children()
    learners = recipe.build(env, steps=often.steps, seed=0, processes=2)
    try:
        for transition in transitions[: often.replay_start + often.n_steps + 2]:  # some updates
            _learn(learners, transition)
        own = 0.0
        files = 0.0
        for process in _children() - before:
            own = max(own, _resident(process, "RssAnon"))
            files = max(files, _resident(process, "RssFile"))
    finally:
        for learner in learners:
            learner.close()  # type: ignore[attr-defined]  # all are DQNs
    return own, files


def _copies(network: Network) -> tuple[str, ...]:
    """Return the names of the learners with this network."""
    return tuple(f"{network.name} {copy}" for copy in range(1, COPIES + 1))


def _children() -> set[str]:
    """Return the numbers of the processes that this one has started."""
    numbers: set[str] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        numbers.update(path.read_text().split())
    return numbers


def _resident(process: str, kind: str) -> float:
    """Return the bytes of a process in memory, or 0 if the system does not report them.

    `kind` is "RssAnon", for its own, or "RssFile", for those of files.
    """
    path = Path(f"/proc/{process}/status")
    if not path.exists():
        return 0.0
    found = re.search(rf"{kind}:\s+(\d+) kB", path.read_text())
    return 0.0 if found is None else 1024.0 * int(found[1])


def _learn(learners: list[Any], transition: Transition) -> None:
    for learner in learners:
        learner.step(transition)


def _seconds_of(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the mean duration of a call, after a first one that is not counted."""
    call()
    calls = 0
    start = clock()
    while calls < 3 or clock() - start < SECONDS:
        call()
        calls += 1
    return (clock() - start) / calls


def _short(value: object) -> str:
    """Return a value with about three digits."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
