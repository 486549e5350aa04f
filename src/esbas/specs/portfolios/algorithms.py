"""The algorithms that a portfolio can name.

Libraries are imported when one of their algorithms is used.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from esbas import learners
from esbas._internal.registry import Registry
from esbas.envs.wrappers import number_of
from esbas.errors import InvalidValueError, SpaceError, UnknownNameError
from esbas.learner import Learner, RandomPolicy
from esbas.learners import (
    BonusQ,
    Constant,
    DoubleQ,
    ExpectedSARSA,
    PersistentRandom,
    QLambda,
    TabularQ,
)
from esbas.learners.d3rlpy import names as d3_names
from esbas.specs.portfolios.build import (
    CONTINUOUS,
    DISCRETE,
    OTHER,
    AlgorithmSpec,
    BuildContext,
    algorithm_of,
    kind_of,
)
from esbas.specs.portfolios.spaces import LARGEST_TABLE, advice, is_array, too_many_actions

_SPACES = "observation_space", "action_space"
_SB3_MEMORY = "buffer_size", "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage"
_SB3_SDE = "use_sde", "sde_sample_freq", "use_sde_at_warmup"  # would need a separate memory
_SB3_LOGS = "stats_window_size", "tensorboard_log", "verbose", "_init_setup_model"


def _random(context: BuildContext, name: str) -> Learner:
    return Constant(name, RandomPolicy(context.action_space))


def _persistent_random(context: BuildContext, name: str, **options: Any) -> Learner:
    return PersistentRandom(name, action_space=context.action_space, **options)


def _tabular(
    learner_class: Callable[..., Learner], context: BuildContext, name: str, **options: Any
) -> Learner:
    return learner_class(
        name,
        states=int(context.observation_space.n),
        actions=int(context.action_space.n),
        **options,
    )


def _double_q(context: BuildContext, name: str, **options: Any) -> Learner:
    return _tabular(DoubleQ, context, name, seed=context.seed, **options)


def _dqn(context: BuildContext, name: str, **options: Any) -> Learner:
    return learners.DQN(name, replay=context.replay, seed=context.seed, **options)


def _fqi(context: BuildContext, name: str, **options: Any) -> Learner:
    return learners.FittedQ(
        name,
        observation_space=context.observation_space,
        action_space=context.action_space,
        seed=context.seed,
        **options,
    )


def _d3(key: str, context: BuildContext, name: str, **options: Any) -> Learner:
    return learners.D3Learner(
        name,
        key,
        observation_space=context.observation_space,
        action_space=context.action_space,
        seed=context.seed,
        **options,
    )


def _sb3_class(key: str) -> Callable[..., Any]:
    from esbas.learners.sb3 import hooks

    return hooks.algorithm(key)


def _sb3(key: str, context: BuildContext, name: str, **options: Any) -> Learner:
    from stable_baselines3.common.noise import NormalActionNoise

    device = options.get("device")
    if isinstance(device, str) and not context.acting:
        from esbas.learners.dqn.on_pytorch.pytorch import find_device

        find_device(device)  # Stable-Baselines3 would use the CPU instead, without a word
    if "action_noise" in options:
        shape = context.action_space.shape
        deviation = options["action_noise"]
        if not 0 < deviation < np.inf:
            rule = "`action_noise` is a standard deviation, and must be finite and greater than 0"
            raise InvalidValueError(f"{rule}, but got {deviation!r}.")
        options["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, deviation))
    return learners.SB3Learner(
        name,
        key,
        replay=context.replay,
        total_steps=context.steps,
        options=options,
        seed=context.seed,
    )


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
    actions: list[str] = []
    if key in d3_names.DISCRETE:
        actions.append(DISCRETE)
    if key in d3_names.CONTINUOUS:
        actions.append(CONTINUOUS)
    return AlgorithmSpec(
        title=f"d3rlpy {key}",
        actions=tuple(actions),
        signature=lambda: learners.D3Learner,
        make=partial(_d3, key),
        reserved=("name", "algorithm", *_SPACES, "seed"),
    )


def _of_table(
    title: str, learner_class: type[Learner], make: Callable[..., Learner] | None = None
) -> AlgorithmSpec:
    reserved: tuple[str, ...] = ("name", "states", "actions")
    if make is None:
        make = partial(_tabular, learner_class)
    else:
        reserved = (*reserved, "seed")
    return AlgorithmSpec(
        title=title,
        actions=(DISCRETE,),
        observations=(DISCRETE,),
        signature=lambda: learner_class,
        make=make,
        reserved=reserved,
    )


def _of_table_with_model(title: str, class_name: str) -> AlgorithmSpec:
    """Return the description of a table that is compiled, and imported when it is used."""

    def find_class() -> Any:
        return getattr(learners, class_name)

    def make(context: BuildContext, name: str, **options: Any) -> Learner:
        return _tabular(find_class(), context, name, **options)

    return AlgorithmSpec(
        title=title,
        actions=(DISCRETE,),
        observations=(DISCRETE,),
        signature=find_class,
        make=make,
        reserved=("name", "states", "actions"),
    )


def _no_options() -> None:
    """Serve as the signature of algorithms without options."""


_BUILT_IN: dict[str, AlgorithmSpec] = {
    "dqn": AlgorithmSpec(
        title="DQN",
        actions=(DISCRETE,),
        signature=lambda: learners.DQN,
        make=_dqn,
        reserved=("name", "replay", "seed"),
    ),
    "tabular_q": _of_table("tabular Q", TabularQ),
    "double_q": _of_table("double Q", DoubleQ, _double_q),
    "q_lambda": _of_table("Q(lambda)", QLambda),
    "expected_sarsa": _of_table("expected SARSA", ExpectedSARSA),
    "bonus_q": _of_table("bonus Q", BonusQ),
    "prioritized_sweeping": _of_table_with_model("prioritized sweeping", "PrioritizedSweeping"),
    "r_max": _of_table_with_model("R-max", "RMax"),
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
    "persistent_random": AlgorithmSpec(
        title="persistent random",
        actions=(DISCRETE, CONTINUOUS, OTHER),
        signature=lambda: PersistentRandom,
        make=_persistent_random,
        reserved=("name", "action_space"),
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
"""The algorithms that a portfolio can name. `@ALGORITHMS.register("name")` adds a learner class."""
for _name, _algorithm in _BUILT_IN.items():
    ALGORITHMS.add(_name, _algorithm)


_NUMBER_ACTIONS = "add --wrappers DiscreteActions, which numbers all combinations"
_NUMBER_OBSERVATIONS = "add --wrappers DiscreteObservations, which numbers all combinations"
_ON_POLICY = {
    "ppo",
    "a2c",
    "a3c",
    "trpo",
    "acktr",
    "reinforce",
    "vpg",
    "sarsa",
    "recurrentppo",
    "maskableppo",
    "ppolstm",
    "impala",
}
_OFF_POLICY = (
    "for discrete actions use dqn or sb3.qrdqn, for continuous actions sb3.sac, sb3.td3 or sb3.tqc"
)


def algorithm_name(learner_class: type[Any]) -> str | None:
    """Return the name of an algorithm by its class; None for a class that has none.

    The class is a learner class of esbas, or a model class of Stable-Baselines3.

    >>> algorithm_name(TabularQ)
    'tabular_q'
    """
    package = learner_class.__module__.partition(".")[0]
    if package in ("stable_baselines3", "sb3_contrib"):
        name = f"sb3.{learner_class.__name__.lower()}"
        return name if name in ALGORITHMS else None
    names = {
        TabularQ: "tabular_q",
        DoubleQ: "double_q",
        QLambda: "q_lambda",
        ExpectedSARSA: "expected_sarsa",
        BonusQ: "bonus_q",
        PersistentRandom: "persistent_random",
    }
    if learner_class in names:
        return names[learner_class]
    # These are compared by name, because importing them takes long.
    slow = {
        "DQN": "dqn",
        "FittedQ": "fqi",
        "PrioritizedSweeping": "prioritized_sweeping",
        "RMax": "r_max",
    }
    if package == "esbas" and learner_class.__name__ in slow:
        return slow[learner_class.__name__]
    for name in ALGORITHMS:
        if ALGORITHMS.find(name) is learner_class:
            return name
    return None


def find_algorithm(name: str) -> AlgorithmSpec:
    """Return the algorithm with this name, or for the learner class `module:Class`."""
    if name not in ALGORITHMS and _is_on_policy(name):
        rule = "A learner of a portfolio must learn from the episodes of all learners"
        problem = f"{name} is on-policy and can learn from its own episodes only"
        raise UnknownNameError(f"{rule}, but {problem}: {_OFF_POLICY}.")
    found = ALGORITHMS.find(name)
    return found if isinstance(found, AlgorithmSpec) else algorithm_of(name, found)


def _is_on_policy(name: str) -> bool:
    letters = [letter for letter in name.lower().removeprefix("sb3.") if letter.isalnum()]
    return "".join(letters) in _ON_POLICY


def check_spaces(algorithm: str, context: BuildContext) -> None:
    """Raise a SpaceError if the algorithm does not support the spaces of the environment."""
    spec = find_algorithm(algorithm)
    actions = context.action_space
    observations = context.observation_space
    if kind_of(actions) not in spec.actions:
        needed = f"{algorithm} needs {' or '.join(spec.actions)} actions"
        problem = too_many_actions(actions)
        if problem is not None:
            raise SpaceError(f"{needed}, but the action space {actions} {problem}.")
        remedy = _remedy_for_actions(spec, actions, observations)
        raise SpaceError(f"{needed}, but the action space is {actions}: remove it, or {remedy}.")
    if spec.observations and kind_of(observations) not in spec.observations:
        needed = f"{algorithm} needs {' or '.join(spec.observations)} observations"
        remedy = _NUMBER_OBSERVATIONS if number_of(observations) else _discretize(observations)
        raise SpaceError(
            f"{needed}, but the observation space is {observations}: remove it, or {remedy}."
        )
    if not (spec.any_observations or is_array(observations)):
        needed = f"{algorithm} needs observations that are numbers or arrays"
        raise SpaceError(f"{needed}, but {advice(observations)}.")


def _remedy_for_actions(spec: AlgorithmSpec, actions: Any, observations: Any) -> str:
    """Return what to do instead of using an algorithm that does not support these actions."""
    if kind_of(actions) == OTHER and number_of(actions):
        if DISCRETE in spec.actions:
            return _NUMBER_ACTIONS
        return "use one for discrete actions, such as dqn"
    fitting: list[str] = []
    for name, other in _BUILT_IN.items():
        fits_actions = kind_of(actions) in other.actions
        fits_observations = not other.observations or kind_of(observations) in other.observations
        if fits_actions and fits_observations and "d3rlpy" not in name:
            fitting.append(name)
    return f"choose one of {', '.join(fitting)}"


def _discretize(space: Any) -> str:
    """Return how to get discrete observations from vectors."""
    low = np.asarray(getattr(space, "low", np.inf))
    high = np.asarray(getattr(space, "high", np.inf))
    bins = min(10, int(LARGEST_TABLE ** (1 / len(low)))) if low.ndim == 1 else 0
    if bins < 3 or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return "choose an algorithm for vectors, such as dqn"
    return f'add --wrappers "DiscretizeObservation(bins={bins})"'
