"""Files of `esbas reproduce control --external`: mutated bytes and mutated content."""

import json
from functools import cache

import numpy as np

from esbas.experiments.control import Control
from esbas.experiments.control.external import external_cells, facts
from fuzz.files import folder
from fuzz.harness import target
from fuzz.mutations import mutated, mutated_bytes

SEEDS = 2


@cache
def options() -> Control:
    return Control(tasks=("FrozenLake",), runs=SEEDS)


@target("runs of external methods")
def external_runs(rng: np.random.Generator) -> None:
    path = folder() / "external.json"
    (task,) = options().chosen_tasks
    run = {
        "curve": [1.0] * options().protocol.bins,
        "final": 0.5,
        "steps": 7,
        "episodes": 2,
        "cpu": 0.1,
    }
    content = {"method": "other", "task": facts(task, options().protocol, 0), "runs": [run] * SEEDS}
    if rng.random() < 0.5:
        path.write_bytes(mutated_bytes(json.dumps(content).encode(), rng))
    else:
        path.write_text(json.dumps(mutated(content, rng, odd=False)))
    for methods in external_cells([path], options()).values():
        for arrays in methods.values():
            assert arrays["curve"].shape == (SEEDS, options().protocol.bins)
            assert np.isfinite(arrays["curve"].mean())
            assert arrays["steps"].min() > 0
