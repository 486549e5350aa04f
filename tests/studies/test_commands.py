"""The commands `esbas study ...`, and what they are made of."""

import csv
import json
import math

import numpy as np
import pytest

import esbas
from esbas.cli import main
from esbas.errors import StudyError
from esbas.studies import compare, open_store, write_csv
from esbas.studies.description import describe_selector
from studies.study_rules import ARMS


@pytest.fixture
def bot_store(tmp_path):
    """A store with a study in which `large` is the best arm."""
    path = str(tmp_path / "bot.db")
    with esbas.open_study(path, "bot", selector="uniform", arms=ARMS, seed=3) as study:
        rng = np.random.default_rng(0)
        for _ in range(300):
            choice = study.ask(context=[1.5], key=None)
            study.tell(choice, float(rng.normal(ARMS.index(choice.arm))))
        study.withdraw(study.ask(among=["rules", "small"]))
    return path


def run(capsys, *words):
    code = main(["study", *words])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_a_study_is_created_listed_and_shown(tmp_path, capsys):
    path = str(tmp_path / "new.db")
    words = [
        "create",
        path,
        "chat bot",
        "--arms",
        "a",
        "b: c",
        "--selector",
        "ssbas(xi=2)",
        "--expire-after",
        "60",
    ]
    for _ in range(2):
        assert run(capsys, *words)[0] == 0
    with esbas.open_study(path, "chat bot") as study:
        study.ask()
        assert (study.arms, study.expire_after) == (("a", "b: c"), 60.0)
        assert study.description["selector"]["options"] == {"xi": 2}
    code, printed = run(capsys, "list", path)
    assert code == 0
    assert "chat bot" in printed
    for words in (["show", path, "chat bot"], ["show", path, "chat bot", "--choice", "1"]):
        code, printed = run(capsys, *words)
        assert code == 0
        assert "b: c" in printed
        assert "ssbas(xi=2)" in printed
    assert "Choice 1 was" in printed
    code, printed = run(capsys, "create", path, "chat bot", "--arms", "a", "b: c")
    assert (code, printed.count("\n")) == (2, 1)
    assert "A study keeps the selector" in printed


def test_a_log_is_replayed_and_the_first_difference_reported(bot_store, capsys):
    assert run(capsys, "replay", bot_store, "bot") == (
        0,
        "All 301 choices in 602 events are repeated.\n",
    )
    store = open_store(bot_store)
    with store.write(None):
        store.execute(
            "UPDATE esbas_event SET arm = CASE arm WHEN 'large' THEN 'small' ELSE 'large' END "
            "WHERE number = 250"
        )
        store.execute("DELETE FROM esbas_snapshot")
    store.close()
    code, printed = run(capsys, "replay", bot_store, "bot")
    assert code == 2
    assert "Event 499 of the log (asked of choice 250" in printed
    assert "cannot be repeated" in printed


def test_a_study_is_copied_and_exported(bot_store, tmp_path, capsys):
    target = str(tmp_path / "copy.db")
    out = tmp_path / "log.csv"
    assert run(capsys, "copy", bot_store, "bot", target)[0] == 0
    code, printed = run(capsys, "copy", bot_store, "bot", target)
    assert code == 2
    assert "There is already a study 'bot' in" in printed
    assert run(capsys, "copy", bot_store, "bot", bot_store, "--new-name", "twin")[0] == 0
    assert (
        run(capsys, "replay", target, "bot")[0] == run(capsys, "replay", bot_store, "twin")[0] == 0
    )
    assert run(capsys, "export", target, "bot", "--out", str(out)) == (
        0,
        f"Wrote 602 events to {out}.\n",
    )
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with esbas.open_study(bot_store, "bot") as study:
        events = list(study.history())
    assert len(rows) == 602
    for row, event in zip(rows, events, strict=True):
        numbers = [
            None if row[column] == "" else float(row[column])
            for column in ("value", "propensity", "at")
        ]
        assert (row["kind"], row["arm"], *numbers) == (
            event.kind,
            event.arm,
            event.value,
            event.propensity,
            event.at,
        )
        assert json.loads(row["context"] or "null") == event.data.get("context")


def test_another_selector_is_compared_on_the_log(bot_store, capsys):
    with esbas.open_study(bot_store, "bot") as study:
        always = compare(study, describe_selector("fixed:large", arms=ARMS))
        values = [
            event.value
            for event in study.history()
            if event.kind == "told" and event.arm == "large"
        ]
        learner = compare(study, describe_selector("ucb1", arms=ARMS))
    assert always.rounds == 300
    assert 60 < always.matched <= len(values)
    assert always.other_mean == pytest.approx(2, abs=4 * always.other_error)
    assert 1.2 < learner.other_mean < 2.3
    assert learner.mean == pytest.approx(1, abs=0.3)
    code, printed = run(capsys, "compare", bot_store, "bot", "--selector", "ssbas(xi=1)")
    assert code == 0
    assert "ssbas(xi=1) (estimated)" in printed


def test_a_comparison_weighs_rounds_by_their_propensities(tmp_path):
    """Rounds among two arms (p = 1/2) have the value 1, rounds among five arms (p = 1/5) have 0.

    The smallest propensity is c = 1/5. Of the rounds in which the log chose "a", those among five
    arms are always kept (c / p = 1), and those among two arms with probability 2/5. So 1/5 of both
    kinds is kept: about 200 of 1,000 rounds each, with the mean 1/2. Without the factor c / p, it
    would be (1/2 * 1 + 1/5 * 0) / (1/2 + 1/5) = 5/7 = 0.71, from about 700 rounds.
    """
    arms = ["a", "b", "c", "d", "e"]
    chosen = {2: 0, 5: 0}  # how often the log chose "a", by the number of arms
    with esbas.open_study(tmp_path / "bot.db", "bot", selector="uniform", arms=arms) as study:
        for number in range(2000):
            among = arms[:2] if number % 2 else arms
            choice = study.ask(among=among)
            assert choice.propensity == 1 / len(among)
            study.tell(choice, 1.0 if len(among) == 2 else 0.0)
            if choice.arm == "a":
                chosen[len(among)] += 1
        found = compare(study, describe_selector("fixed:a", arms=arms))
    assert (found.rounds, found.mean) == (2000, 0.5)
    kept_of_two = found.matched - chosen[5]
    deviation = math.sqrt(chosen[2] * 2 / 5 * 3 / 5)  # of a binomial distribution
    assert kept_of_two == pytest.approx(chosen[2] * 2 / 5, abs=4 * deviation)
    assert found.other_mean == pytest.approx(kept_of_two / found.matched)
    assert found.other_mean == pytest.approx(1 / 2, abs=0.1)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("esbas", "was certain"),
        ("linear-thompson", "has none"),
        ("kalman-thompson", "has none"),
        ("uniform", "at least 30 rounds"),
    ],
)
def test_a_comparison_needs_propensities_and_overlap(selector, message, tmp_path, capsys):
    path = str(tmp_path / "bot.db")
    with esbas.open_study(path, "bot", selector=selector, arms=ARMS) as study:
        for _ in range(20):
            study.tell(study.ask(context=[1.0]), 1.0)
    code, printed = run(capsys, "compare", path, "bot", "--selector", "uniform")
    assert (code, printed.count("\n")) == (2, 1)
    assert message in printed


def test_a_comparison_chooses_anew_where_the_arms_differ(tmp_path):
    path = str(tmp_path / "bot.db")
    with esbas.open_study(path, "bot", selector="uniform", arms=ARMS) as study:
        for number in range(200):
            study.tell(
                study.ask(among=ARMS[: 2 + number % 2], context=[number % 2]), float(number % 2)
            )
        study.add_arm("new")
        study.remove_arm("rules")
        study.tell(study.ask(context=[0.0]), 1.0)
        found = compare(study, describe_selector("linear-thompson", arms=ARMS))
        assert found.rounds == 201
        with pytest.raises(StudyError, match="must have the same arms"):
            compare(study, describe_selector("uniform", arms=["a"]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shwo", "x.db", "bot"], "There is no command study named 'shwo': did you mean 'show'?"),
        (["show", "missing.db", "bot"], "There is no store at"),
        (["list", "missing.db"], "There is no store at"),
        (["copy", "missing.db", "bot", "other.db"], "There is no store at"),
        (["export", "missing.db", "bot"], "There is no store at"),
        (["create", "new.db", "bot", "--arms", "a", "a"], "different names"),
        (
            ["create", "new.db", "bot", "--arms", "a", "--selector", "nonsense"],
            "There is no selector named 'nonsense'",
        ),
        (
            ["create", "new.db", "bot", "--arms", "a", "--expire-after", "0"],
            "a positive number of seconds",
        ),
    ],
)
def test_mistakes_are_one_sentence_and_create_nothing(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    code, printed = run(capsys, *words)
    assert (code, printed.count("\n")) == (2, 1)
    assert message in printed
    assert [path.name for path in tmp_path.iterdir() if path.name != "new.db-lock"] in (
        [],
        ["new.db"],
    )


def test_help_lists_the_commands(capsys):
    code, printed = run(capsys)
    assert code == 0
    assert {"create", "list", "show", "replay", "copy", "export", "compare"} <= set(printed.split())


def test_a_log_with_any_text_is_exported(tmp_path):
    path = str(tmp_path / "bot.db")
    arm = 'quote " comma, line\nbreak'
    with esbas.open_study(path, "bot", selector="uniform", arms=[arm]) as study:
        study.ask(key="=1+1")
    store = open_store(path)
    assert write_csv(store, "bot", tmp_path / "log.csv") == 1
    store.close()
    with (tmp_path / "log.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["arm"], row["key"]) == (arm, "=1+1")
