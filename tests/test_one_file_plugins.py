"""Every kind of plug-in is one file outside the package.

It is found by `module:Class` and checked by `esbas.testing`.
"""

import json
import textwrap
from functools import partial

import numpy as np
import pytest

import esbas
from esbas import cli
from esbas._internal.registry import import_object
from esbas.engine import run_parts
from esbas.errors import InvalidValueError
from esbas.learners import Constant, TabularQ
from esbas.selectors import make_selector
from esbas.testing import Corridor, OneStep, check_bandit, check_learner, check_selector

FILES = {
    "my_learner": '''
        """Remembers the first action of the best trajectory."""

        from esbas.learners import EpsilonGreedy
        import numpy as np

        class FirstBest:
            stationary = False

            def __init__(self, name, *, action_space, epsilon: float = 0.2):
                self.name, self.epsilon, self.values = name, epsilon, np.zeros(int(action_space.n))

            def learn(self, data):
                for trajectory in data.since(0):
                    value = float(trajectory.rewards.sum())
                    action = int(trajectory.actions[0])
                    self.values[action] = max(self.values[action], value)

            def policy(self):
                values = self.values.copy()
                return EpsilonGreedy(lambda _: values, self.epsilon)

            def state_dict(self):
                return {"values": self.values.copy()}

            def load_state_dict(self, state):
                self.values = state["values"].copy()
        ''',
    "my_bandit": '''
        """MOSS (Audibert & Bubeck, 2009)."""

        import math
        from esbas.bandits import IndexBandit

        class MOSS(IndexBandit):
            def __init__(self, n_arms, *, horizon=1000, memory=None, rng=None):
                super().__init__(n_arms, memory=memory, rng=rng)
                self.horizon = horizon

            def index(self, mean, pulls):
                bonus = max(math.log(self.horizon / (self.n_arms * pulls)), 0) / pulls
                return mean + math.sqrt(bonus)
        ''',
    "my_selector": '''
        """Takes the arms in turn."""

        from esbas import Pick, Selector

        class InTurn(Selector):
            def pick(self, among, context):
                return Pick(among[self.number % len(among)])
        ''',
    "my_contextual": '''
        """Takes the first arm if the first number of the context is negative, else the last one."""

        from esbas import Pick, Selector

        class BySign(Selector):
            wants = frozenset({"context"})

            def pick(self, among, context):
                return Pick(among[0 if context[0] < 0 else -1])
        ''',
    "my_evidence": '''
        """Draws arms at random, and judges all of them by every trajectory.

        Importance sampling with frozen policies.
        """

        import math
        from esbas import Pick, Selector

        class Judge(Selector):
            wants = frozenset({"trajectory", "log_probs"})

            def __init__(self, arms, *, seed=0):
                super().__init__(arms, epochs=[8], seed=seed)
                self.sums = {arm: [0.0, 0.0] for arm in self.arms}

            def pick(self, among, context):
                return Pick(among[int(self.rng.integers(len(among)))], 1 / len(among))

            def observe(self, choice, value, *, note, evidence):
                if evidence is None:
                    return
                behavior = float(evidence.behavior_log_probs.sum())
                for arm in self.arms:
                    log_probs = evidence.log_probs(arm)
                    if log_probs is not None and not math.isnan(behavior):
                        weight = math.exp(float(log_probs.sum()) - behavior)
                        self.sums[arm][0] += weight * value
                        self.sums[arm][1] += weight

            def estimates(self):
                return {arm: total / weight for arm, (total, weight) in self.sums.items() if weight}
        ''',
    "my_objective": '''
        """The reward of the last step."""

        def last_reward(trajectory):
            return trajectory.rewards[-1]
        ''',
    "my_engine": '''
        """Runs the jobs in reverse order, one at a time."""

        from contextlib import closing
        from functools import partial
        from esbas.engine import JobContext, Outcome

        class Backwards:
            started = []

            def map(
                self, function, jobs, *, resources,
                report=lambda name, message: None, stop=lambda: False,
            ):
                return closing(self._outcomes(function, list(jobs), report, stop))

            def _outcomes(self, function, jobs, report, stop):
                for job in reversed(jobs):
                    if stop():
                        return
                    self.started.append(job.name)
                    try:
                        context = JobContext(partial(report, job.name), stop)
                        yield Outcome(name=job.name, value=function(context, *job.arguments))
                    except Exception as error:
                        yield Outcome(name=job.name, error=error)
        ''',
}


@pytest.fixture(autouse=True)
def plugins(tmp_path, monkeypatch):
    """One file for each kind, in the current folder."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def walkers():
    return [
        TabularQ("slow", states=5, actions=2, learning_rate=0.1, epsilon=0.5),
        TabularQ("fast", states=5, actions=2, learning_rate=0.5, epsilon=0.5),
    ]


def test_a_bandit():
    kind = import_object("my_bandit:MOSS")
    check_bandit(kind)
    selector = make_selector("my_bandit:MOSS", ["a", "b"])
    assert isinstance(selector.bandit, kind)
    records = list(
        esbas.run(
            OneStep((0.1, 0.9)),
            [Constant("a", lambda _: 0), Constant("b", lambda _: 1)],
            selector,
            episodes=60,
        )
    )
    assert [record.learner for record in records].count("b") > 40


def test_a_plain_selector():
    check_selector(import_object("my_selector:InTurn"))
    selector = make_selector("my_selector:InTurn", ["slow", "fast"])
    records = list(esbas.run(Corridor(), walkers(), selector, episodes=6))
    assert [record.learner for record in records] == ["slow", "fast"] * 3


def test_a_contextual_selector():
    check_selector(import_object("my_contextual:BySign"))
    selector = make_selector("my_contextual:BySign", ["a", "b"])
    assert [selector.ask(context=[[sign]]).arm for sign in (-1, 1, 0, -2)] == ["a", "b", "b", "a"]
    choice = selector.open_choices[0]
    assert (choice.context, choice.propensity) == ((-1.0,), 1.0)
    records = list(
        esbas.run(
            Corridor(),
            walkers(),
            make_selector("my_contextual:BySign", ["slow", "fast"]),
            episodes=3,
        )
    )
    assert {record.learner for record in records} == {"fast"}  # the first observation is 0


def test_an_evidence_selector_judges_all_arms_by_every_trajectory():
    check_selector(import_object("my_evidence:Judge"))
    arms = ["often", "seldom", "never"]
    selector = make_selector("my_evidence:Judge", arms, seed=1)
    tables = [
        TabularQ(arm, states=1, actions=2, epsilon=epsilon)
        for arm, epsilon in zip(arms, (0.4, 1.0, 0.2), strict=True)
    ]
    tables[2].table[:] = [[1.0, 0.0]]  # prefers the bad action
    tables[0].table[:] = [[0.0, 1.0]]
    for learner in tables:
        learner.learn = lambda data: None  # the policy does not change
    list(
        esbas.run(
            OneStep((0.0, 1.0), noise=0.0),
            tables,
            selector,
            episodes=600,
            objective=esbas.total_return(),
        )
    )
    exact = {"often": 0.8, "seldom": 0.5, "never": 0.1}
    assert selector.estimates() == pytest.approx(exact, abs=0.06)


def test_a_learner_a_selector_an_objective_and_an_engine_on_the_command_line(tmp_path):
    check_learner(
        lambda: import_object("my_learner:FirstBest")("mine", action_space=Corridor().action_space),
        Corridor(),
    )
    words = (
        "train FrozenLake-v1 --episodes 5 --no-tensorboard --out here --seeds 0 1 "
        "--engine my_engine:Backwards"
    )
    members = ["--learners", "my_learner:FirstBest(epsilon=0.5)", "tabular_q"]
    names = ["--selector", "my_selector:InTurn", "--objective", "my_objective:last_reward"]
    assert cli.main([*words.split(), *members, *names]) == 0
    rows = (tmp_path / "here" / "runs" / "seed-1" / "episodes.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in rows[1:]] == ["FirstBest", "tabular Q"] * 2 + ["FirstBest"]
    assert (
        json.loads((tmp_path / "here" / "summary.json").read_text())["objective"] == "last_reward"
    )
    assert import_object("my_engine:Backwards").started == ["seed 1", "seed 0"]
    assert cli.main(["resume", "here", "--trust"]) == 0


def test_an_engine(tmp_path):
    results = {}
    parts = {f"part {k}": partial(np.full, 2, k) for k in range(3)}
    finished = run_parts(
        {name: partial(as_arrays, part) for name, part in parts.items()},
        load=lambda name: None,
        store=results.__setitem__,
        jobs=2,
        description="parts",
        engine="my_engine:Backwards",
    )
    assert list(results) == ["part 2", "part 1", "part 0"]
    assert [finished[name]["values"].tolist() for name in parts] == [[0, 0], [1, 1], [2, 2]]


def as_arrays(part):
    return {"values": part()}


def test_an_object_of_another_kind_is_refused():
    for name in ("my_learner:FirstBest", "my_objective:last_reward"):
        with pytest.raises(InvalidValueError, match="must name a selector or a bandit"):
            make_selector(name, ["a", "b"])
