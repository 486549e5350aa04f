import doctest
import sys

import gymnasium
import pytest

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, UnknownNameError
from esbas.specs import options, type_hints
from esbas.specs.envs import make_env
from esbas.specs.options import read_call


class Endless(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 1, 0.0, False, False, {}


@pytest.fixture
def register(monkeypatch):
    def add(env_id, entry_point, **more):
        gymnasium.register(env_id, entry_point, **more)
        # undone after the test
        monkeypatch.setitem(gymnasium.registry, env_id, gymnasium.registry.pop(env_id))

    return add


def test_a_task_is_made_by_its_name():
    task = make_env("CartPole-v1")
    assert task.spec.max_episode_steps == 500
    assert task.render_mode is None
    task.reset(seed=0)
    assert make_env("CartPole-v1", render_mode="rgb_array").render_mode == "rgb_array"


def test_a_task_without_end_is_fine(register):
    register("EsbasEndless-v0", Endless)
    assert make_env("EsbasEndless-v0").spec.max_episode_steps is None


def test_old_versions_are_allowed():
    assert make_env("CartPole-v0").spec.max_episode_steps == 200  # without a warning


def test_wrappers_go_from_the_inside_out():
    task = make_env(
        "CartPole-v1",
        wrappers=["TimeLimit(max_episode_steps=7)", "FrameStackObservation(stack_size=3)"],
    )
    assert task.observation_space.shape == (3, 4)
    task.reset(seed=0)
    assert [task.step(step % 2)[3] for step in range(7)] == [False] * 6 + [True]
    rescaled = make_env("Pendulum-v1", wrappers=["RescaleAction(min_action=[-1.0], max_action=1)"])
    assert rescaled.action_space.high == pytest.approx(1.0)


def test_a_package_before_the_colon_is_imported(tmp_path, monkeypatch):
    (tmp_path / "esbas_toy_package.py").write_text(
        "import gymnasium\ngymnasium.register('EsbasToy-v0', "
        "'gymnasium.envs.classic_control:CartPoleEnv')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert make_env("esbas_toy_package:EsbasToy-v0").spec.id == "EsbasToy-v0"
        with pytest.raises(UnknownNameError, match="did you mean 'esbas_toy_package:EsbasToy-v0'"):
            make_env("esbas_toy_package:EsbasTay-v0")
    finally:
        gymnasium.registry.pop("EsbasToy-v0", None)


@pytest.mark.parametrize(
    ("env_id", "kind", "message"),
    [
        (
            "CartPole-v2",
            UnknownNameError,
            "There is no environment named 'CartPole-v2': did you mean 'CartPole-v1'?",
        ),
        (
            "cartpole-v1",
            UnknownNameError,
            "There is no environment named 'cartpole-v1': did you mean 'CartPole-v1'?",
        ),
        (
            "LunarLander-v2",
            UnknownNameError,
            "There is no environment named 'LunarLander-v2': did you mean 'LunarLander-v3'?",
        ),
        (
            "zzzz",
            UnknownNameError,
            "There is no environment named 'zzzz': name a registered one such as 'CartPole-v1', or",
        ),
        (
            "Moon/Pong-v5",
            UnknownNameError,
            "There is no namespace named 'Moon': install the package that registers it, and",
        ),
        (
            "ALE/Pong",
            InvalidValueError,
            "The environment 'ALE/Pong' must be named with its version: name 'ALE/Pong-v5'.",
        ),
        (
            "ALE/Pung-v5",
            UnknownNameError,
            "There is no environment named 'ALE/Pung-v5': did you mean 'ALE/Pong-v5'?",
        ),
        (
            "Pong-v5",
            UnknownNameError,
            "There is no environment named 'Pong-v5': did you mean 'ALE/Pong-v5'?",
        ),
        (
            "highway-v0",
            UnknownNameError,
            "is in the package highway_env, which is not installed: pip install highway_env.",
        ),
        (
            "CartPole",
            InvalidValueError,
            "The environment 'CartPole' must be named with its version: name 'CartPole-v1'.",
        ),
        ("", InvalidValueError, "Environment '' must start, but Error: Malformed environment ID"),
        (
            "no_such_package:X-v0",
            UnknownNameError,
            "There is no module named 'no_such_package': install it, or run from",
        ),
    ],
)
def test_a_missing_task_raises_a_clear_error(env_id, kind, message):
    with pytest.raises(kind) as caught:
        make_env(env_id)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def broken():
    raise RuntimeError("the simulator is away.\nIts second line.")


def needy():
    raise gymnasium.error.DependencyNotInstalled('run `pip install "gymnasium[moon]"`')


def test_an_environment_that_does_not_start_raises_a_clear_error(register):
    register("EsbasBroken-v0", broken)
    register("EsbasNeedy-v0", needy)
    message = (
        "^Environment 'EsbasBroken-v0' must start, but RuntimeError: the simulator is "
        "away: fix the environment, or choose"
    )
    with pytest.raises(InvalidValueError, match=message):
        make_env("EsbasBroken-v0")
    with pytest.raises(
        MissingExtraError,
        match=r"^Environment 'EsbasNeedy-v0': run `pip install \"gymnasium\[moon\]\"`\.$",
    ):
        make_env("EsbasNeedy-v0")


def test_a_missing_extra_of_gymnasium_is_named(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(
        MissingExtraError,
        match=r"^Environment 'LunarLander-v3': Box2D is not installed.*gymnasium\[box2d\]",
    ):
        make_env("LunarLander-v3")


def test_an_unknown_render_mode_raises_a_clear_error():
    with pytest.raises(
        UnknownNameError,
        match="There is no render mode of environment 'CartPole-v1' named 'humen': did you mean",
    ):
        make_env("CartPole-v1", render_mode="humen")


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        ("TimeLimt", "There is no wrapper named 'TimeLimt': did you mean 'TimeLimit'?"),
        ("zzzz", "There is no wrapper named 'zzzz': choose one of gymnasium.wrappers"),
        ("vector", "There is no wrapper named 'vector'"),
        (
            "TimeLimit",
            "Wrapper 'TimeLimit': `max_episode_steps` of TimeLimit is missing: add it",
        ),
        (
            "TimeLimit(max_steps=3)",
            "There is no option of TimeLimit named 'max_steps': did you mean 'max_episode_steps'?",
        ),
        (
            "TimeLimit(max_episode_steps='x')",
            "`max_episode_steps` of TimeLimit must be a whole number, but got 'x'",
        ),
        (
            "TimeLimit(max_episode_steps=-1)",
            (
                "must fit the environment, but ValueError: Expect the `max_episode_steps` to be "
                "positive"
            ),
        ),
        (
            "TimeLimit(env=3)",
            "`env` of TimeLimit must not be given, because esbas sets it: remove it",
        ),
        (
            "ClipAction",
            (
                "Wrapper 'ClipAction' must fit the environment, but TypeError: ClipAction requires "
                "a Box action space"
            ),
        ),
        (
            "FlattenObservation(a=1)",
            "There is no option of FlattenObservation named 'a': it has no options",
        ),
        ("NormalizeObservation", "The wrapper NormalizeObservation uses running statistics"),
        ("NormalizeReward(gamma=0.9)", "The wrapper NormalizeReward uses running statistics"),
        (
            "Autoreset",
            (
                "The wrapper Autoreset cannot be used, because it would continue after the end of "
                "an episode: remove it"
            ),
        ),
        (
            "TransformReward",
            (
                "The wrapper TransformReward cannot be used, because it needs a function, which "
                "text cannot express: remove it"
            ),
        ),
        (
            "TimeLimit(10)",
            "'TimeLimit(10)' must be a name, or a name with options and plain values",
        ),
    ],
)
def test_a_wrapper_that_does_not_fit_raises_a_clear_error(wrapper, message):
    with pytest.raises(EsbasError) as caught:
        make_env("CartPole-v1", wrappers=[wrapper])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_environment_that_normalizes_itself_is_refused(register):
    register(
        "EsbasNormal-v0", lambda: gymnasium.wrappers.NormalizeReward(gymnasium.make("CartPole-v1"))
    )
    with pytest.raises(InvalidValueError, match="NormalizeReward uses running statistics"):
        make_env("EsbasNormal-v0", wrappers=["FlattenObservation"])


def test_calls_are_read_and_never_executed(tmp_path):
    assert read_call(" sb3.dqn ") == ("sb3.dqn", {})
    assert read_call("a.b(x=-1e-3, y=(1, 'two'), z={'k': [True, None]})") == (
        "a.b",
        {"x": -1e-3, "y": (1, "two"), "z": {"k": [True, None]}},
    )
    # as in TOML
    assert read_call("dqn(double=false, corrected=true)") == (
        "dqn",
        {"double": False, "corrected": True},
    )
    for text in (
        f"dqn(learning_rate=open({str(tmp_path / 'x')!r}, 'w'))",
        "dqn(1)",
        "dqn(**{'a': 1})",
        "dqn(a=1, a=2)",
        "a-b",
        "3",
        "",
        "f()()",
    ):
        with pytest.raises(
            InvalidValueError, match="must be a name, or a name with options and plain values"
        ):
            read_call(text)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("module", [options, type_hints])
def test_examples_in_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0
