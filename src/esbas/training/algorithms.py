"""The algorithms that a portfolio can name, and how each of them is built; libraries are imported when one of theirs is."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas import learners
from esbas.errors import SpaceError, require
from esbas.learner import Learner, RandomPolicy
from esbas.learners import Constant, TabularQ
from esbas.learners.d3 import names as d3_names
from esbas.training.workshop import CONTINUOUS, DISCRETE, OTHER, Algorithm, Workshop, kind_of

_SPACES = "observation_space", "action_space"
_SB3_MEMORY = "buffer_size", "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage"
_SB3_SDE = "use_sde", "sde_sample_freq", "use_sde_at_warmup"  # needs a memory of its own
_SB3_LOGS = "stats_window_size", "tensorboard_log", "verbose", "_init_setup_model"


def _random(shop: Workshop, name: str) -> Learner:
    return Constant(name, RandomPolicy(shop.action_space))


def _tabular_q(shop: Workshop, name: str, **options: Any) -> Learner:
    return TabularQ(name, states=int(shop.observation_space.n), actions=int(shop.action_space.n), **options)


def _dqn(shop: Workshop, name: str, **options: Any) -> Learner:
    return learners.DQN(name, replay=shop.replay, seed=shop.seed, **options)


def _fqi(shop: Workshop, name: str, **options: Any) -> Learner:
    task = {kind: getattr(shop, kind) for kind in _SPACES}
    return learners.FittedQ(name, **task, seed=shop.seed, **options)


def _d3(key: str, shop: Workshop, name: str, **options: Any) -> Learner:
    task = {kind: getattr(shop, kind) for kind in _SPACES}
    return learners.D3Learner(name, key, **task, seed=shop.seed, **options)


def _sb3_class(key: str) -> Callable[..., Any]:
    from esbas.learners.sb3 import hooks

    return hooks.algorithm(key)


def _sb3(key: str, shop: Workshop, name: str, **options: Any) -> Learner:
    from stable_baselines3.common.noise import NormalActionNoise

    if "action_noise" in options:
        shape, deviation = shop.action_space.shape, options["action_noise"]
        require(0 < deviation < np.inf, "action_noise > 0, a standard deviation", action_noise=deviation)
        options["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, deviation))
    return learners.SB3Learner(name, key, replay=shop.replay, total_steps=shop.steps, options=options, seed=shop.seed)


def _of_sb3(key: str, title: str, actions: str) -> Algorithm:
    return Algorithm(
        title=title,
        actions=(actions,),
        signature=partial(_sb3_class, key),
        make=partial(_sb3, key),
        ours=("env", "seed", *_SB3_MEMORY, *_SB3_SDE, *_SB3_LOGS),
        optional=("policy",),
        hints={"action_noise": float},
    )


def _of_d3(key: str) -> Algorithm:
    tables = {DISCRETE: d3_names.DISCRETE, CONTINUOUS: d3_names.CONTINUOUS}
    return Algorithm(
        title=f"d3rlpy {key}",
        actions=tuple(kind for kind, table in tables.items() if key in table),
        signature=lambda: learners.D3Learner,
        make=partial(_d3, key),
        ours=("name", "algorithm", *_SPACES, "seed"),
    )


def _no_options() -> None:
    """Its keyword arguments are the options of algorithms that have none."""


ALGORITHMS: dict[str, Algorithm] = {
    "dqn": Algorithm(
        title="DQN", actions=(DISCRETE,), signature=lambda: learners.DQN, make=_dqn, ours=("name", "replay", "seed")
    ),
    "tabular_q": Algorithm(
        title="tabular Q",
        actions=(DISCRETE,),
        observations=(DISCRETE,),
        signature=lambda: TabularQ,
        make=_tabular_q,
        ours=("name", "states", "actions"),
    ),
    "fqi": Algorithm(
        title="FQI",
        actions=(DISCRETE,),
        signature=lambda: learners.FittedQ,
        make=_fqi,
        ours=("name", *_SPACES, "seed"),
        hints={"regressor": str},
    ),
    "random": Algorithm(
        title="random", actions=(DISCRETE, CONTINUOUS, OTHER), signature=lambda: _no_options, make=_random, ours=()
    ),
    "sb3.dqn": _of_sb3("dqn", "SB3 DQN", DISCRETE),
    "sb3.qrdqn": _of_sb3("qrdqn", "QR-DQN", DISCRETE),
    "sb3.sac": _of_sb3("sac", "SAC", CONTINUOUS),
    "sb3.td3": _of_sb3("td3", "TD3", CONTINUOUS),
    "sb3.ddpg": _of_sb3("ddpg", "DDPG", CONTINUOUS),
    "sb3.tqc": _of_sb3("tqc", "TQC", CONTINUOUS),
    **{f"d3rlpy.{key}": _of_d3(key) for key in d3_names.DISCRETE | d3_names.CONTINUOUS},
}
"""The algorithms by the names that a portfolio calls them."""


def check_spaces(algorithm: str, shop: Workshop) -> None:
    """Raise a SpaceError if the algorithm is for other tasks."""
    own, given = ALGORITHMS[algorithm], kind_of(shop.action_space)
    if given not in own.actions:
        fitting = [name for name, other in ALGORITHMS.items() if given in other.actions and not name.startswith("d3rlpy.")]
        told = f"{algorithm} must have {' or '.join(own.actions)} actions, but those of the task are {shop.action_space}"
        raise SpaceError(f"{told}: leave it out, or choose one of {', '.join(fitting)}")
    if own.observations and kind_of(shop.observation_space) not in own.observations:
        told = f"{algorithm} must have {' or '.join(own.observations)} observations, but those of the task are"
        raise SpaceError(f"{told} {shop.observation_space}: leave it out, or wrap the task in DiscretizeObservation")
