"""Studies that are created with a selector instead of its name."""

from functools import partial

import pytest

import esbas
from esbas.bandits import KLUCB, UCB1
from esbas.errors import InvalidValueError
from esbas.selectors import BanditSelector, Fixed, SharedEvidence, Uniform

ARMS = ["a", "b", "c"]
NEW = {
    "esbas": lambda: esbas.ESBAS(ARMS, xi=0.5, epochs=[5, 10], stationary=["b"], seed=3),
    "ssbas": lambda: esbas.SSBAS(iter(ARMS), scale=(0.0, 1.0), seed=1),
    "esbas with another bandit": lambda: esbas.ESBAS(ARMS, bandit=KLUCB),
    "recommended": lambda: esbas.default_selector(ARMS, seed=5),
    "recommended for epochs": lambda: esbas.default_selector(ARMS, online=False, seed=5),
    "a bandit with parameters": lambda: BanditSelector(
        ARMS, bandit=partial(UCB1, xi=2.0), scale=None, epochs=[7]
    ),
    "shared evidence": lambda: SharedEvidence(ARMS, epochs=[20], seed=2),
    "uniform": lambda: Uniform(ARMS, seed=4),
    "fixed": lambda: Fixed(ARMS, arm="c"),
}


def choices(selector, rounds=40):
    """The arms that are chosen, if c is the best."""
    chosen = []
    for number in range(rounds):
        choice = selector.ask()
        chosen.append(choice.arm)
        selector.tell(choice, ARMS.index(choice.arm) / 2 + 0.01 * (number % 7))
    return chosen


@pytest.mark.parametrize("name", NEW)
def test_a_study_chooses_as_its_selector_would(name, tmp_path):
    url = f"sqlite:///{tmp_path}/bot.db"
    with esbas.open_study(url, "it", selector=NEW[name]()) as study:
        assert choices(study) == choices(NEW[name]())
    with esbas.open_study(url, "it", selector=NEW[name]()) as study:  # the same one: it is opened
        assert study.number == 40


def test_the_name_and_the_object_are_the_same_selector(tmp_path):
    url = f"sqlite:///{tmp_path}/bot.db"
    esbas.open_study(url, "it", selector="ssbas", arms=ARMS, seed=2).close()
    esbas.open_study(url, "it", selector=esbas.SSBAS(ARMS, seed=2)).close()
    with pytest.raises(esbas.errors.StudyError, match="A study keeps the selector"):
        esbas.open_study(url, "it", selector=esbas.SSBAS(ARMS, seed=3))


def test_a_class_is_the_same_selector_as_its_name(tmp_path):
    url = f"sqlite:///{tmp_path}/bot.db"
    esbas.open_study(url, "it", selector="ssbas", arms=ARMS, seed=2).close()
    esbas.open_study(url, "it", selector=esbas.SSBAS, arms=ARMS, seed=2).close()
    esbas.open_study(url, "bandit", selector="ucb1", arms=ARMS).close()
    esbas.open_study(url, "bandit", selector=UCB1, arms=ARMS).close()
    half = partial(esbas.SSBAS, xi=0.5)
    esbas.open_study(url, "half", selector="ssbas", arms=ARMS, options={"xi": 0.5}).close()
    esbas.open_study(url, "half", selector=half, arms=ARMS).close()
    with pytest.raises(InvalidValueError, match="its class with arms and without options"):
        esbas.open_study(url, "none", selector=esbas.SSBAS)


@pytest.mark.parametrize("url", [None, 3, b"bot.db", [], object()])
def test_a_store_is_a_url_or_a_path(url):
    with pytest.raises(InvalidValueError, match="A store must be sqlite:///FILE"):
        esbas.open_study(url, "it", selector="ssbas", arms=ARMS)


def test_a_service_is_not_a_store():
    with pytest.raises(InvalidValueError, match=r"use esbas.studies.client.Client\(url\)"):
        esbas.open_study("http://localhost:8000", "it", selector="ssbas", arms=ARMS)


def used():
    selector = esbas.SSBAS(ARMS)
    selector.ask()
    return selector


def changed():
    selector = esbas.SSBAS(ARMS)
    selector.rng.random()
    return selector


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (used, "The selector of a study must be new, but this one has made 1 choice"),
        (changed, "was changed"),
        (
            lambda: esbas.ESBAS(ARMS, bandit=lambda n, rng: UCB1(n, rng=rng)),
            "classes that other processes can import",
        ),
        (
            lambda: esbas.ESBAS(ARMS, bandit=partial(UCB1, xi=3.0)),
            "must have its default parameters",
        ),
        (lambda: 7, "must be a name, a selector, its class .* but got 7"),
    ],
)
def test_what_other_processes_cannot_build_is_refused(make, message, tmp_path):
    with pytest.raises(InvalidValueError, match=message):
        esbas.open_study(tmp_path / "bot.db", "it", selector=make())
    assert not (tmp_path / "bot.db").exists()
