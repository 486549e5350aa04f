"""Runs: budgets, interruptions, changes while running, saving and resuming."""

from dataclasses import astuple
from functools import partial

import numpy as np
import pytest

from doubles import BatchRecorder, Faulty, StepRecorder
from esbas import (
    ESBAS,
    SSBAS,
    UCB1,
    BanditSelector,
    Fixed,
    KalmanThompson,
    Uniform,
    default_selector,
    resume,
    run,
    total_return,
)
from esbas._internal import archive
from esbas.errors import (
    InvalidValueError,
    NotEpisodicError,
    SaveFileError,
    SpaceError,
    UnknownNameError,
)
from esbas.learners import Constant, TabularQ
from esbas.loop import Budget
from esbas.testing import Corridor

NAMES = ["slow", "fast", "right", "shaky"]
SELECTORS = {
    "ESBAS": partial(ESBAS, NAMES),
    "ESBAS, stationary": partial(ESBAS, NAMES, epochs=[5, 5, 10], stationary=["right"], scale=None),
    "SSBAS": partial(SSBAS, NAMES),
    "Fixed, batch": partial(Fixed, NAMES, arm="shaky", epochs=[4]),
    "Uniform": partial(Uniform, NAMES, seed=3),
    "BanditSelector": partial(BanditSelector, NAMES, bandit=UCB1),
    "default": partial(default_selector, NAMES),
}
EPISODES = 40


def learners():
    """Two learners that learn, one constant policy.

    One learner that fails from time to time.
    """
    return [
        TabularQ("slow", states=4, actions=2, learning_rate=0.1, epsilon=0.5),
        TabularQ(
            "fast",
            states=4,
            actions=2,
            learning_rate=lambda episode: 1 / episode,
            epsilon=lambda episode: 1 / episode,
        ),
        Constant("right", lambda seen: 1),
        Faulty("shaky", "act", fails=lambda call: call % 7 == 0),
    ]


def env():
    return Corridor(4, max_episode_steps=12)


def outcome(episodes):
    """Everything that a run produced, for comparison."""
    columns = episodes.data.transitions()
    return (
        episodes.selector.state_dict(),
        [column.tobytes() for column in columns],
        episodes.number,
        episodes.steps,
    )


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS.keys())
def test_a_run_saved_at_any_episode_resumes_identically(selector, tmp_path):
    whole = run(env(), learners(), selector(), episodes=EPISODES, seed=7)
    records = list(whole)
    saving = run(env(), learners(), selector(), episodes=EPISODES, seed=7)
    for episode in range(EPISODES + 1):
        path = tmp_path / f"{episode}.esbas"
        saving.save(path)
        if episode in {0, 1, 2, 3, 4, 7, 8, 15, 16, 25, 39, 40}:
            resumed = resume(path, env(), learners(), selector())
            assert resumed.number == episode
            assert list(resumed) == records[episode:]
            assert outcome(resumed) == outcome(whole)
        if episode < EPISODES:
            assert next(saving) == records[episode]
    assert any(record.faults for record in records)


def test_a_resumed_run_can_be_saved_and_resumed_again(tmp_path):
    selector = SELECTORS["SSBAS"]
    records = list(run(env(), learners(), selector(), episodes=EPISODES))
    episodes = run(env(), learners(), selector(), episodes=EPISODES)
    for number in range(EPISODES):
        assert next(episodes) == records[number]
        episodes.save(tmp_path / "run.esbas")
        episodes = resume(tmp_path / "run.esbas", env(), learners(), selector())
    assert episodes.done


def test_saving_changes_nothing(tmp_path):
    episodes = run(env(), learners(), SELECTORS["ESBAS"](), episodes=EPISODES)
    records = []
    for record in episodes:
        records.append(record)
        episodes.save(tmp_path / "run.esbas")
    assert records == list(run(env(), learners(), SELECTORS["ESBAS"](), episodes=EPISODES))


def saved(path, selector=SELECTORS["SSBAS"], episodes=5, **settings):
    part = run(env(), learners(), selector(), episodes=20, **settings)
    for _ in range(episodes):
        next(part)
    part.save(path)
    return path


def test_parts_that_differ_from_those_saved_raise(tmp_path):
    path = saved(tmp_path / "run.esbas")
    with pytest.raises(
        InvalidValueError,
        match=r"must be that of a ESBAS, but is that of a .*: build the same selector",
    ):
        resume(path, env(), learners(), ESBAS(NAMES))
    with pytest.raises(
        SaveFileError,
        match=r"was saved with learners .* and objective 'discounted return, gamma=0.99', "
        "but got .*return",
    ):
        resume(path, env(), learners(), SSBAS(NAMES), objective=total_return())
    with pytest.raises(
        SaveFileError,
        match=r"was saved with learners .*'shaky'.*, but got learners .'slow', 'fast'.*: "
        "pass the same",
    ):
        resume(path, env(), learners()[:2], SSBAS(NAMES[:2]))
    with pytest.raises(SpaceError, match="The observation_space of learner 'slow'"):
        resume(path, Corridor(5), learners(), SSBAS(NAMES))
    other = [TabularQ("slow", states=4, actions=2), *learners()[1:]]
    assert resume(path, env(), other, SSBAS(NAMES)).number == 5
    bigger = (
        Corridor(5),
        [
            TabularQ("slow", states=5, actions=2),
            TabularQ("fast", states=5, actions=2),
            *learners()[2:],
        ],
    )
    with pytest.raises(
        InvalidValueError,
        match=r"learner 'slow' must have an array .* at `table`.*: build the learner as it was",
    ):
        resume(path, *bigger, SSBAS(NAMES))
    # without any check
    bigger[1][0].load_state_dict = lambda state: np.copyto(bigger[1][0].table, state["table"])
    with pytest.raises(
        SaveFileError,
        match=r"The parts passed must fit those saved in .*, but ValueError: .*: "
        "build them in the same way",
    ):
        resume(path, *bigger, SSBAS(NAMES))


def test_damaged_files_raise(tmp_path):
    path = saved(tmp_path / "run.esbas")
    content = path.read_bytes()
    for damaged in (
        b"",
        content[: len(content) // 2],
        content[:200] + bytes([content[200] ^ 4]) + content[201:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(SaveFileError, match="must be a whole esbas save file, but is damaged"):
            resume(path, env(), learners(), SSBAS(NAMES))
    path.write_bytes(content)
    assert resume(path, env(), learners(), SSBAS(NAMES)).number == 5


def test_files_of_other_versions_and_kinds_raise(tmp_path, monkeypatch):
    archive.write(tmp_path / "study", "study", {})
    with pytest.raises(SaveFileError, match="must have a run, but has a study"):
        resume(tmp_path / "study", env(), learners(), SSBAS(NAMES))
    monkeypatch.setattr(archive, "FORMAT", archive.FORMAT + 1)
    path = saved(tmp_path / "newer.esbas")
    monkeypatch.undo()
    with pytest.raises(SaveFileError, match="upgrade esbas"):
        resume(path, env(), learners(), SSBAS(NAMES))
    archive.write(tmp_path / "part", "run", {"seed": 0})
    with pytest.raises(
        InvalidValueError,
        match=r"The run in '.*' must have the keys seed, .*: go back to an earlier copy",
    ):
        resume(tmp_path / "part", env(), learners(), SSBAS(NAMES))


def test_a_failed_save_keeps_the_old_file(tmp_path):
    path = saved(tmp_path / "run.esbas")
    before = path.read_bytes()
    episodes = resume(path, env(), learners(), SSBAS(NAMES))
    next(episodes)
    episodes.roster.add(StepRecorder("cannot be saved"))
    with pytest.raises(
        SaveFileError,
        match="A learner needs `state_dict` and `load_state_dict` to be saved, "
        "but 'cannot be saved'",
    ):
        episodes.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_budgets_of_episodes_and_steps():
    assert list(run(env(), learners(), SSBAS(NAMES), episodes=0)) == []
    episodes = run(env(), learners(), SSBAS(NAMES), episodes=100, steps=50)
    lengths = [record.length for record in episodes]
    # the episode that exceeds the budget is played to its end
    assert sum(lengths[:-1]) < 50 <= sum(lengths)
    assert episodes.done
    with pytest.raises(StopIteration):
        next(episodes)
    episodes.budget = Budget(episodes=100)  # more budget
    assert len(list(episodes)) == 100 - len(lengths)


def test_data_need_not_be_kept_online():
    episodes = run(env(), learners()[:3], SSBAS(NAMES[:3]), episodes=10, keep_data=False)
    kept = run(env(), learners()[:3], SSBAS(NAMES[:3]), episodes=10)
    assert list(episodes) == list(kept)
    assert (len(episodes.data), len(kept.data)) == (0, 10)


class Flaky(Corridor):
    """Fails once, in the middle of its third episode."""

    resets = 0

    def reset(self, *, seed=None):
        self.resets += 1
        return super().reset(seed=seed)

    def step(self, action):
        if self.resets == 3:
            self.resets += 1
            raise ConnectionError("the simulator stopped")
        return super().step(action)


@pytest.mark.parametrize("selector", [ESBAS, SSBAS])
def test_an_environment_that_fails_ends_the_episode_and_loses_nothing(selector):
    episodes = run(
        Flaky(4), [Faulty("a", action=1), Faulty("b", action=1)], selector("ab"), episodes=6
    )
    records = [next(episodes), next(episodes)]
    with pytest.raises(ConnectionError):
        next(episodes)
    assert (episodes.number, len(episodes.data), episodes.selector.open_choices) == (2, 2, ())
    records += list(episodes)
    assert [record.number for record in records] == [1, 2, 3, 4, 5, 6]


def test_episodes_that_do_not_end_raise_and_lose_nothing():
    episodes = run(
        Corridor(4, slip=0.0),
        [Faulty("left"), Faulty("right", action=1)],
        Uniform(["left", "right"]),
        episodes=6,
        max_episode_steps=9,
    )
    with pytest.raises(
        NotEpisodicError,
        match=r"An episode did not end within 9 steps: raise `max_episode_steps`",
    ):
        list(episodes)
    played = episodes.number
    assert (len(episodes.data), episodes.selector.open_choices) == (played, ())
    episodes.max_episode_steps = 50
    assert [record.number for record in episodes] == list(range(played + 1, 7))


def test_an_objective_that_is_not_finite_raises_and_loses_nothing():
    episodes = run(
        env(), learners()[:3], SSBAS(NAMES[:3]), episodes=6, objective=lambda episode: np.nan
    )
    with pytest.raises(InvalidValueError, match="must be finite"):
        next(episodes)
    assert (episodes.number, len(episodes.data), episodes.selector.open_choices) == (0, 0, ())


class Interrupted(Faulty):
    """Is interrupted by Ctrl-C while it learns for the second time."""

    def learn(self, data):
        super().learn(data)
        if self.calls["learn"] == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("saved", [False, True])
def test_interrupted_learning_is_repeated(saved, tmp_path):
    learner = Interrupted("a")
    selector = partial(ESBAS, "a", epochs=[2, 2, 10])
    episodes = run(env(), [learner], selector(), episodes=8)
    assert len([next(episodes) for _ in range(4)]) == 4
    with pytest.raises(KeyboardInterrupt):
        next(episodes)
    if saved:
        episodes.save(tmp_path / "run")
        learner = Interrupted("a")
        episodes = resume(tmp_path / "run", env(), [learner], selector())
    assert len(list(episodes)) == 4
    assert learner.calls["learn"] == 3


def test_learners_are_added_and_removed_while_running():
    episodes = run(
        env(),
        [Constant("left", lambda seen: 0), BatchRecorder("a")],
        ESBAS(["left", "a"]),
        episodes=40,
    )
    for _ in range(10):
        next(episodes)
    late = BatchRecorder("late", plan=lambda trainings: 1)
    episodes.add(late)
    episodes.remove("left")
    arms = [record.learner for record in episodes]
    assert set(arms) == {"a", "late"}
    assert late.sizes == [15, 31]  # all data, when the next epochs start
    for change, error, message in (
        (lambda: episodes.add(late), InvalidValueError, "Arms must have different names"),
        (
            lambda: episodes.add(TabularQ("wide", states=9, actions=2)),
            SpaceError,
            "The observation_space of learner 'wide'",
        ),
        (lambda: episodes.remove("unknown"), UnknownNameError, "There is no arm named 'unknown'"),
    ):
        with pytest.raises(error, match=message):
            change()
    episodes.remove("a")
    with pytest.raises(InvalidValueError, match=r"The only arm, .*, cannot be removed"):
        episodes.remove("late")


def test_a_run_with_an_added_learner_is_resumed_with_it(tmp_path):
    def parts(*names):
        return [TabularQ(name, states=4, actions=2, epsilon=0.5) for name in names]

    episodes = run(env(), parts("a", "b"), SSBAS(["a", "b"]), episodes=30)
    for _ in range(10):
        next(episodes)
    episodes.add(*parts("c"))
    episodes.remove("a")
    next(episodes)
    episodes.save(tmp_path / "run")
    resumed = resume(tmp_path / "run", env(), parts("b", "c"), SSBAS(["b", "c"]))
    assert [astuple(record) for record in resumed] == [astuple(record) for record in episodes]


@pytest.mark.parametrize(
    "selector",
    [SSBAS, UCB1, "uniform", None, lambda arms: Uniform(arms, seed=3), partial(ESBAS, xi=1)],
)
def test_a_run_makes_its_selector_again_when_it_is_resumed(selector, tmp_path):
    records = list(run(env(), learners(), selector, episodes=EPISODES, seed=5))
    part = run(env(), learners(), selector, episodes=EPISODES, seed=5)
    for _ in range(7):
        next(part)
    part.save(tmp_path / "run.esbas")
    assert list(resume(tmp_path / "run.esbas", env(), learners(), selector)) == records[7:]


def test_the_selector_has_the_names_the_constant_learners_and_the_seed_of_the_run():
    made = run(env(), learners(), ESBAS, seed=3).selector
    assert made.arms == tuple(NAMES)
    assert made.stationary == {"right"}
    expected = [
        record.learner
        for record in run(env(), learners(), Uniform(NAMES, seed=3), episodes=20, seed=3)
    ]
    assert [
        record.learner for record in run(env(), learners(), "uniform", episodes=20, seed=3)
    ] == expected


def test_the_selector_is_the_recommended_one_by_default():
    assert isinstance(run(env(), learners()).selector.bandit, KalmanThompson)


def test_an_objective_may_be_a_name(tmp_path):
    episodes = run(env(), learners(), "uniform", objective="shortest", episodes=10)
    assert [record.value for record in episodes] == [
        record.length for record in run(env(), learners(), "uniform", episodes=10)
    ]
    assert not episodes.objective.maximize
    episodes.save(tmp_path / "run.esbas")
    assert (
        resume(tmp_path / "run.esbas", env(), learners(), "uniform", objective="shortest").number
        == 10
    )
    with pytest.raises(
        UnknownNameError, match=r"There is no objective named 'shortes': did you mean 'shortest'\?"
    ):
        run(env(), learners(), objective="shortes")
    with pytest.raises(
        InvalidValueError,
        match="`objective` must be an objective, a function of a trajectory, or a name, but got 5",
    ):
        run(env(), learners(), objective=5)


@pytest.mark.parametrize("given", [SSBAS, 5, None, TabularQ("alone", states=4, actions=2)])
def test_learners_are_a_list(given):
    with pytest.raises(
        InvalidValueError,
        match=r"`learners` must be a list of learners, but got |`learners` must be a list of names",
    ):
        run(env(), given, "ssbas")


def test_a_run_describes_itself():
    episodes = run(
        Corridor(4, max_episode_steps=12),
        [Constant("right", lambda seen: 1)],
        "uniform",
        episodes=5,
    )
    assert repr(episodes) == "<Run: episode 0, 0 steps, 1 learner>"
    next(episodes)
    assert repr(episodes) == "<Run: episode 1, 3 steps, 1 learner>"
    assert repr(episodes.selector) == "<Uniform of 1 arm, 1 choice>"
    assert repr(ESBAS("abc")) == "<ESBAS of 3 arms, 0 choices>"
    assert repr(SSBAS.__new__(SSBAS)) == "<SSBAS of 0 arms, 0 choices>"
