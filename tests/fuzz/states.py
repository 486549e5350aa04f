"""States of selectors, bandits and trajectories: loaded, or refused without a change."""

import copy
from functools import cache, partial
from typing import Any

import numpy as np

from esbas import (
    ESBAS,
    SSBAS,
    UCB1,
    BanditSelector,
    Fixed,
    LinearThompson,
    SharedEvidence,
    Trajectory,
    TrajectorySet,
    Uniform,
)
from esbas.bandits import BANDITS, make_bandit, on_window
from esbas.errors import EsbasError
from fuzz.harness import nonsense_allowed, target
from fuzz.mutations import mutated

ARMS = ["slow", "fast", "a"]


def load(part: Any, state: Any) -> bool:
    """Whether the part loads the state. If not, it must be as before."""
    before = repr(part.state_dict())
    try:
        part.load_state_dict(state)
    except BaseException:
        assert repr(part.state_dict()) == before, "a state that was refused changed something"
        raise
    return True


@cache
def selectors() -> list[tuple[Any, Any]]:
    """Constructors of all kinds of selectors, with a state of each."""
    new = [
        partial(ESBAS, ARMS),
        partial(ESBAS, ARMS, epochs=[3, 3], stationary=["a"], scale=None),
        partial(SSBAS, ARMS),
        partial(Fixed, ARMS, arm="fast"),
        partial(Fixed, ARMS, epochs=[2]),
        partial(Uniform, ARMS),
        partial(LinearThompson, ARMS),
        partial(LinearThompson, ARMS, epochs=[4]),
        partial(SharedEvidence, ARMS, epochs=[4], stationary=["a"]),
        partial(BanditSelector, ARMS, bandit=UCB1, scale=(0.0, 1.0)),
    ]
    for name in BANDITS:
        new += [
            partial(kind, ARMS, bandit=make_bandit(name)) for kind in (ESBAS, SSBAS, BanditSelector)
        ]
    return [(each, _played(each())) for each in new]


def _played(selector: Any) -> Any:
    rng = np.random.default_rng(0)
    for number in range(25):
        choice = selector.ask(context=rng.random(2))
        if number % 5:
            selector.tell(choice, float(rng.random()))
    return selector.state_dict()


def use_selector(selector: Any) -> None:
    for choice in selector.open_choices[:2]:
        selector.tell(choice, 0.5)
    for number in range(3):
        choice = selector.ask(context=(0.5, 0.25))
        if number:
            selector.tell(choice, 0.75)
        else:
            selector.withdraw(choice)
    selector.explain()
    selector.state_dict()


@target("selector states")
def selector_states(rng: np.random.Generator) -> None:
    cases = selectors()
    new, state = cases[int(rng.integers(len(cases)))]
    selector = new(seed=1)
    if rng.random() < 0.5:
        selector.load_state_dict(copy.deepcopy(state))
    if rng.random() < 0.02:
        state = cases[int(rng.integers(len(cases)))][1]
    load(selector, mutated(state, rng, odd=True))
    with nonsense_allowed():
        use_selector(selector)


@cache
def bandits() -> list[tuple[Any, Any]]:
    new = [make_bandit(name) for name in BANDITS]
    new += [on_window(make_bandit(name), size=lambda tau: tau // 2) for name in BANDITS]
    states = []
    for each in new:
        bandit = each(3, rng=np.random.default_rng(0))
        rng = np.random.default_rng(1)
        for number in range(25):
            arm = bandit.choose()
            ticket = bandit.pull(arm)
            if number % 5:
                bandit.update(arm, float(rng.random()), pull=ticket)
        states.append(bandit.state_dict())
    return list(zip(new, states, strict=True))


@target("bandit states")
def bandit_states(rng: np.random.Generator) -> None:
    cases = bandits()
    new, state = cases[int(rng.integers(len(cases)))]
    bandit = new(3, rng=np.random.default_rng(0))
    load(bandit, mutated(state, rng, odd=True))
    with nonsense_allowed():
        for _ in range(3):
            arm = bandit.choose()
            bandit.update(arm, 0.5, pull=bandit.pull(arm))
        bandit.withdraw(bandit.pull(0))
        bandit.indices()
        assert len(bandit.counts) == len(bandit.means) == bandit.n_arms
        bandit.reset([0])


@cache
def trajectories() -> TrajectorySet:
    data = TrajectorySet()
    rng = np.random.default_rng(0)
    for number in range(4):
        steps = number + 1
        columns = rng.random((steps + 1, 2)), rng.integers(3, size=steps), rng.random(steps)
        infos = {"cost": rng.random(steps)} if number % 2 else {}
        trajectory = Trajectory(*columns, terminated=True, truncated=False, infos=infos)
        data.append(trajectory, arm=ARMS[number % 3])
    return data


@target("trajectories")
def trajectory_states(rng: np.random.Generator) -> None:
    data = TrajectorySet()
    data.append(trajectories()[1])
    load(data, mutated(trajectories().state_dict(), rng, odd=True))
    if len(data):
        assert len(data.transitions().rewards) == sum(len(data[i]) for i in range(len(data)))


@target("the load of a valid state")
def valid_states(rng: np.random.Generator) -> None:
    cases = selectors()
    new, state = cases[int(rng.integers(len(cases)))]
    selector = new(seed=int(rng.integers(100)))
    try:
        load(selector, copy.deepcopy(state))
    except EsbasError as error:
        raise AssertionError("a valid state was refused") from error
    assert repr(selector.state_dict()) == repr(state)
