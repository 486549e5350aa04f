"""The algorithms that a portfolio can name. Libraries are imported when one of their algorithms is used."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas import learners
from esbas.envs.wrappers import number_of
from esbas.errors import SpaceError, UnknownNameError, require
from esbas.learner import Learner, RandomPolicy
from esbas.learners import Constant, DoubleQ, ExpectedSARSA, QLambda, TabularQ
from esbas.learners.d3 import names as d3_names
from esbas.registry import Registry
from esbas.training.portfolios.build import CONTINUOUS, DISCRETE, OTHER, AlgorithmSpec, BuildContext, algorithm_of, kind_of
from esbas.training.portfolios.spaces import LARGEST_TABLE, advice, is_array

_SPACES = "observation_space", "action_space"
_SB3_MEMORY = "buffer_size", "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage"
_SB3_SDE = "use_sde", "sde_sample_freq", "use_sde_at_warmup"  # needs its own memory
_SB3_LOGS = "stats_window_size", "tensorboard_log", "verbose", "_init_setup_model"


def _random(context: BuildContext, name: str) -> Learner:
    return Constant(name, RandomPolicy(context.action_space))


def _tabular(learner_class: Callable[..., Learner], context: BuildContext, name: str, **options: Any) -> Learner:
    return learner_class(name, states=int(context.observation_space.n), actions=int(context.action_space.n), **options)


def _double_q(context: BuildContext, name: str, **options: Any) -> Learner:
    return _tabular(DoubleQ, context, name, seed=context.seed, **options)


def _dqn(context: BuildContext, name: str, **options: Any) -> Learner:
    return learners.DQN(name, replay=context.replay, seed=context.seed, **options)


def _fqi(context: BuildContext, name: str, **options: Any) -> Learner:
    task = {kind: getattr(context, kind) for kind in _SPACES}
    return learners.FittedQ(name, **task, seed=context.seed, **options)


def _d3(key: str, context: BuildContext, name: str, **options: Any) -> Learner:
    task = {kind: getattr(context, kind) for kind in _SPACES}
    return learners.D3Learner(name, key, **task, seed=context.seed, **options)


def _sb3_class(key: str) -> Callable[..., Any]:
    from esbas.learners.sb3 import hooks

    return hooks.algorithm(key)


def _sb3(key: str, context: BuildContext, name: str, **options: Any) -> Learner:
    from stable_baselines3.common.noise import NormalActionNoise

    if "action_noise" in options:
        shape, deviation = context.action_space.shape, options["action_noise"]
        require(0 < deviation < np.inf, "action_noise > 0, a standard deviation", action_noise=deviation)
        options["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, deviation))
    return learners.SB3Learner(name, key, replay=context.replay, total_steps=context.steps, options=options, seed=context.seed)


def _of_sb3(key: str, title: str, actions: str) -> AlgorithmSpec:
    return AlgorithmSpec(
        title=title,
        actions=(actions,),
        signature=partial(_sb3_class, key),
        make=partial(_sb3, key),
        reserved=("env", "seed", *_SB3_MEMORY, *_SB3_SDE, *_SB3_LOGS),
        optional=("policy",),
        hints={"action_noise": float},
    )


def _of_d3(key: str) -> AlgorithmSpec:
    tables = {DISCRETE: d3_names.DISCRETE, CONTINUOUS: d3_names.CONTINUOUS}
    return AlgorithmSpec(
        title=f"d3rlpy {key}",
        actions=tuple(kind for kind, table in tables.items() if key in table),
        signature=lambda: learners.D3Learner,
        make=partial(_d3, key),
        reserved=("name", "algorithm", *_SPACES, "seed"),
    )


def _of_table(title: str, learner_class: type[Learner], make: Callable[..., Learner] | None = None) -> AlgorithmSpec:
    return AlgorithmSpec(
        title=title,
        actions=(DISCRETE,),
        observations=(DISCRETE,),
        signature=lambda: learner_class,
        make=make or partial(_tabular, learner_class),
        reserved=("name", "states", "actions") + (("seed",) if make else ()),
    )


def _no_options() -> None:
    """The signature of algorithms without options."""


_BUILT_IN: dict[str, AlgorithmSpec] = {
    "dqn": AlgorithmSpec(
        title="DQN", actions=(DISCRETE,), signature=lambda: learners.DQN, make=_dqn, reserved=("name", "replay", "seed")
    ),
    "tabular_q": _of_table("tabular Q", TabularQ),
    "double_q": _of_table("double Q", DoubleQ, _double_q),
    "q_lambda": _of_table("Q(lambda)", QLambda),
    "expected_sarsa": _of_table("expected SARSA", ExpectedSARSA),
    "fqi": AlgorithmSpec(
        title="FQI",
        actions=(DISCRETE,),
        signature=lambda: learners.FittedQ,
        make=_fqi,
        reserved=("name", *_SPACES, "seed"),
        hints={"regressor": str},
    ),
    "random": AlgorithmSpec(
        title="random",
        actions=(DISCRETE, CONTINUOUS, OTHER),
        signature=lambda: _no_options,
        make=_random,
        reserved=(),
        any_observations=True,
    ),
    "sb3.dqn": _of_sb3("dqn", "SB3 DQN", DISCRETE),
    "sb3.qrdqn": _of_sb3("qrdqn", "QR-DQN", DISCRETE),
    "sb3.sac": _of_sb3("sac", "SAC", CONTINUOUS),
    "sb3.td3": _of_sb3("td3", "TD3", CONTINUOUS),
    "sb3.ddpg": _of_sb3("ddpg", "DDPG", CONTINUOUS),
    "sb3.tqc": _of_sb3("tqc", "TQC", CONTINUOUS),
    **{f"d3rlpy.{key}": _of_d3(key) for key in d3_names.DISCRETE | d3_names.CONTINUOUS},
}

ALGORITHMS: Registry[AlgorithmSpec | type[Any]] = Registry("algorithm")
"""The algorithms that a portfolio can name. `@ALGORITHMS.register("name")` adds a learner class of your own."""
for _name, _algorithm in _BUILT_IN.items():
    ALGORITHMS.add(_name, _algorithm)


NUMBER_ACTIONS = "add --wrappers DiscreteActions, which numbers all combinations"
_ON_POLICY = {
    *("ppo", "a2c", "a3c", "trpo", "acktr", "reinforce", "vpg", "sarsa", "recurrentppo", "maskableppo", "ppolstm", "impala")
}
_OFF_POLICY = "for discrete actions use dqn or sb3.qrdqn, for continuous actions sb3.sac, sb3.td3 or sb3.tqc"


def find_algorithm(name: str) -> AlgorithmSpec:
    """The algorithm with this name, or for the learner class `module:Class`; see `algorithm_of`."""
    if name not in ALGORITHMS and "".join(filter(str.isalnum, name.lower().removeprefix("sb3."))) in _ON_POLICY:
        message = f"members must learn from the episodes of all members, but {name} is on-policy and can learn from its own only"
        raise UnknownNameError(f"{message}: {_OFF_POLICY}")
    found = ALGORITHMS.find(name)
    return found if isinstance(found, AlgorithmSpec) else algorithm_of(name, found)


def check_spaces(algorithm: str, context: BuildContext) -> None:
    """Raise a SpaceError if the algorithm does not support the spaces of the task."""
    own, given = find_algorithm(algorithm), kind_of(context.action_space)
    seen = context.observation_space
    if given not in own.actions:
        message = f"{algorithm} needs {' or '.join(own.actions)} actions, but the action space is {context.action_space}"
        if given == OTHER and number_of(context.action_space):
            discrete = "" if DISCRETE in own.actions else "use one for discrete actions such as dqn and "
            raise SpaceError(f"{message}: remove it, or {discrete}{NUMBER_ACTIONS}")
        fitting = [
            name
            for name, other in _BUILT_IN.items()
            if given in other.actions and kind_of(seen) in (other.observations or (kind_of(seen),)) and "d3rlpy" not in name
        ]
        raise SpaceError(f"{message}: remove it, or choose one of {', '.join(fitting)}")
    if own.observations and kind_of(seen) not in own.observations:
        message = f"{algorithm} needs {' or '.join(own.observations)} observations, but the observation space is {seen}"
        number = "add --wrappers DiscreteObservations, which numbers all combinations"
        raise SpaceError(f"{message}: remove it, or {number if number_of(seen) else _discretize(seen)}")
    if not (own.any_observations or is_array(seen)):
        raise SpaceError(f"{algorithm} needs observations that are numbers or arrays, but {advice(seen)}")


def _discretize(space: Any) -> str:
    """How to get discrete observations from vectors."""
    low, high = np.asarray(getattr(space, "low", np.inf)), np.asarray(getattr(space, "high", np.inf))
    bins = min(10, int(LARGEST_TABLE ** (1 / len(low)))) if low.ndim == 1 else 0
    if bins < 3 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return "choose an algorithm for vectors, such as dqn"
    return f'add --wrappers "DiscretizeObservation(bins={bins})"'
