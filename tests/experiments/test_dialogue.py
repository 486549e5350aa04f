"""The dialogue experiment: portfolio names, constant policies, and a small sweep by command."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from esbas import cli
from esbas.errors import InvalidValueError, UnknownNameError
from esbas.experiments.dialogue import constants
from esbas.experiments.dialogue.analysis import analyze
from esbas.experiments.dialogue.figures import shown
from esbas.experiments.dialogue.notation import parse
from esbas.experiments.dialogue.setup import EPOCHS, GAME, TABLE
from esbas.experiments.dialogue.sweep import BLOCK, EpochSums, Outcomes, alone, chosen_rows, one_run
from esbas.experiments.kernels.counter import run_key
from esbas.experiments.kernels.dialogue.one_dialogue import Traits
from esbas.experiments.kernels.dialogue.whole_runs import learner_arrays, mean_value

ROWS = ("all-2-simple", "simple + constant-1.01", "simple + constant-1.01 (no reset)")


def names(text: str) -> list[str]:
    return [algorithm.name for algorithm in parse(text).learners]


@pytest.mark.parametrize(
    ("text", "learners"),
    [
        ("simple-2 + constant-1.01", ["simple-2", "constant-1.01"]),
        ("8*n-1-simple-2", ["n-1-simple-2"] * 8),
        ("2 * fast+n-3-fast-2", ["fast", "fast", "n-3-fast-2"]),
        ("all-4", ["simple", "fast", "simple-2", "fast-2"]),
        (
            "all-4 + all-4-n-1",
            [
                "simple",
                "fast",
                "simple-2",
                "fast-2",
                "n-1-simple",
                "n-1-fast",
                "n-1-simple-2",
                "n-1-fast-2",
            ],
        ),
        ("all-2-simple + all-2-n-1-simple", ["simple", "simple-2", "n-1-simple", "n-1-simple-2"]),
        ("all-4 + constant-1.1", ["simple", "fast", "simple-2", "fast-2", "constant-1.10"]),
    ],
)
def test_portfolio_names_are_read_as_in_the_paper(text: str, learners: list[str]) -> None:
    assert names(text) == learners


def test_the_table_is_the_papers() -> None:
    rows = chosen_rows(["all"])
    assert list(rows) == list(TABLE)
    assert len(rows) == 32
    assert sum(EPOCHS) == 40_960
    assert sum(not row.reset for row in rows.values()) == 5
    assert sum(paper.w_best for paper in TABLE.values()) == -143  # the sum of the paper's column
    assert sum(paper.w_worst for paper in TABLE.values()) == -41_507


def test_no_reset_applies_to_every_row() -> None:
    rows = chosen_rows(["all-4", "simple-2 + constant-1.09"], no_reset=True)
    assert list(rows) == ["all-4", "simple-2 + constant-1.09 (no reset)"]
    assert rows["simple-2 + constant-1.09 (no reset)"].name in TABLE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("simpel-2 + fast", "did you mean 'simple-2'"),
        ("all-4 + constnat-1.10", "did you mean 'constant-1.10'"),
        ("n-1-simpel", "did you mean 'n-1-simple'"),
        ("simple + constant-1.01 (no rest)", "did you mean 'no reset'"),
    ],
)
def test_a_name_that_does_not_parse_gets_the_nearest_one(text: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        chosen_rows([text])


@pytest.mark.parametrize(
    "text", ["", "simple +", "0*simple", "99*simple", "n-99-simple", "all-4 (no reset)"]
)
def test_an_impossible_portfolio_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        chosen_rows([text])


def test_generating_a_missing_constant_is_suggested(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        cli.main(
            [
                "reproduce",
                "dialogue",
                "--rows",
                "simple + constant-1.007",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 2
    )
    error = capsys.readouterr().err
    assert "There is no stored constant-1.007: add --generate" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", [["--runs", "0"], ["--seed", "-1"], ["--jobs", "0"], ["--ridge", "0"]]
)
def test_bad_options_are_refused_before_a_folder_is_created(
    words: list[str], tmp_path: Path
) -> None:
    assert (
        cli.main(
            ["reproduce", "dialogue", "--rows", "simple", *words, "--out", str(tmp_path / "out")]
        )
        == 2
    )
    assert not (tmp_path / "out").exists()


def test_stored_constants_have_the_mean_returns_of_their_names() -> None:
    stored = constants.stored()
    needed = {one.mu for row in chosen_rows(["all"]).values() for one in row.constants}
    assert needed == set(stored)
    for mu, policies in stored.items():
        assert (
            len({policy.candidate for policy in policies})
            == len(policies)
            >= (16 if mu == "1.11" else 8)
        )
        assert all(abs(policy.mean - float(mu)) <= constants.TOLERANCE for policy in policies)
        portfolio = learner_arrays([Traits(3, square=1, constant=1)], [policies[0].array])
        mean, deviation = mean_value(run_key(9, "again"), GAME, portfolio, 50_000)
        assert abs(mean - policies[0].mean) < 4 * deviation / 50_000**0.5


def test_the_stated_rule_reproduces_the_stored_policies() -> None:
    assert constants.generate({"1.13": 1}, seed=0)["1.13"] == constants.stored()["1.13"][:1]


def test_a_mean_return_that_no_policy_has_is_refused() -> None:
    found = constants.generate({"1.90": 8}, seed=0, candidates=8)["1.90"]
    with pytest.raises(InvalidValueError, match="0 of 8 policies were found"):
        constants.as_arrays(found, "1.90", 8)


def test_generated_policies_survive_their_storage() -> None:
    policies = constants.stored()["1.09"]
    assert constants.from_arrays(constants.as_arrays(policies, "1.09", 8)) == policies


def test_a_constant_that_is_not_stored_is_generated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "POLICIES", 1)  # the default of eight takes eight times as long
    words = [
        "reproduce",
        "dialogue",
        "--rows",
        "simple + constant-1.135",
        "--generate",
        "--runs",
        "2",
        "--out",
        str(tmp_path),
    ]
    assert cli.main(words) == 0
    rows = csv.DictReader((tmp_path / "policies.csv").read_text().splitlines())
    policy = "constant-1.135-policies.npz"
    assert [abs(float(one["mean return"]) - 1.135) <= constants.TOLERANCE for one in rows] == [True]
    assert (
        shlex.split(json.loads((tmp_path / "config.json").read_text())["again"])[-1] == "--generate"
    )
    summary = (tmp_path / "summary.json").read_bytes()
    stamp = (tmp_path / "parts" / policy).stat().st_mtime_ns
    ratios = json.loads(summary)["rows"]["simple + constant-1.135"]["selection_ratios"]
    assert 0 < ratios[-1][1] < 1  # the policy is selected in some dialogues
    assert cli.main(words) == 0
    assert (tmp_path / "summary.json").read_bytes() == summary
    assert (tmp_path / "parts" / policy).stat().st_mtime_ns == stamp


def test_constant_policies_take_turns() -> None:
    """Run 8 has the same policy as run 0, so a single policy gives the same results."""
    row = parse("constant-1.01")
    known = constants.stored()
    same = one_run(row, known, seed=0, run=constants.POLICIES)
    alone = one_run(row, {"1.01": known["1.01"][:1]}, seed=0, run=constants.POLICIES)
    other = one_run(row, {"1.01": known["1.01"][1:2]}, seed=0, run=constants.POLICIES)
    assert same.returns.tolist() == alone.returns.tolist() != other.returns.tolist()


def outcome(first: list[float], *, arms: int = 1) -> EpochSums:
    """Runs with these returns in the first epoch, and none later."""
    returns = np.zeros((len(first), len(EPOCHS)))
    returns[:, 0] = first
    return EpochSums(
        returns,
        np.zeros((len(first), len(EPOCHS), arms), np.int64),
        np.ones((len(first), len(EPOCHS)), np.int64),
    )


@pytest.mark.parametrize(
    ("esbas", "reading", "agrees"),
    [
        ([60.0, 70.0], "worse", "yes"),
        ([30.0, 40.0], "worse", "reading only"),
        ([99.0, 111.0], "as good", "no"),
        ([140.0, 149.0], "better", "no"),
    ],
)
def test_a_row_is_compared_run_by_run_with_the_best_and_the_worst_alone(
    esbas: list[float], reading: str, agrees: str
) -> None:
    row = parse("simple-2 + fast-2")  # the paper has 35 and -181
    alone = {"simple-2": outcome([100.0, 110.0]), "fast-2": outcome([-90.0, -91.0])}
    (result,) = analyze(
        {row.name: row}, Outcomes({row.name: outcome(esbas, arms=2)}, alone, {})
    ).rows
    assert (result.best, result.worst) == ("simple-2", "fast-2")
    assert result.w_best.mean == pytest.approx(105 - sum(esbas) / 2)
    assert result.w_worst.mean == pytest.approx(-90.5 - sum(esbas) / 2)
    assert (result.reading, result.agrees()) == (reading, agrees)


def test_the_figure_shows_the_papers_portfolios() -> None:
    rows = chosen_rows(["all"])
    runs = {name: outcome([1.0, 2.0], arms=len(row.learners)) for name, row in rows.items()}
    alone_runs = {one.name: outcome([1.0, 2.0]) for row in rows.values() for one in alone(row)}
    names = [result.row.name for result in shown(analyze(rows, Outcomes(runs, alone_runs, {})))]
    assert names == ["all-2-simple", "simple-2 + constant-1.01", "all-4 + all-4-n-1"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dialogue") / "out"
    assert reproduce(out, jobs=2) == 0
    return out


def reproduce(out: Path, *, jobs: int) -> int:
    return cli.main(
        [
            "reproduce",
            "dialogue",
            "--rows",
            *ROWS,
            "--runs",
            "4",
            "--jobs",
            str(jobs),
            "--out",
            str(out),
        ]
    )


def test_the_summary_contains_rows_and_algorithms(results: Path) -> None:
    summary = json.loads((results / "summary.json").read_text())
    assert list(summary["rows"]) == list(ROWS)
    assert set(summary["canonical"]) == {"simple", "simple-2", "constant-1.01"}
    row = summary["rows"]["simple + constant-1.01"]
    assert (row["best"], row["worst"], row["paper"]) == ("simple", "constant-1.01", None)
    for regret in ("w_best", "w_worst"):
        assert set(row[regret]) == {"mean", "ci95", "runs"}
        assert row[regret]["runs"] == 4
    assert -6500 < row["w_worst"]["mean"] < -4500  # (1.01 - 1.14) * 40,960 is about -5,300
    by_epoch = summary["canonical"]["simple"]["by_epoch"]["mean"]
    assert len(by_epoch) == 12
    assert by_epoch[0] < 0.75 < 1.12 < by_epoch[11]
    total = np.dot(by_epoch, EPOCHS) / sum(EPOCHS)
    assert summary["canonical"]["simple"]["mean_return"]["mean"] == pytest.approx(total)


def test_regrets_are_paired_differences(results: Path) -> None:
    alone, both = (
        np.load(results / "parts" / f"{name}-00000.npz")["returns"].sum(axis=1)
        for name in ("simple", "all-2-simple")
    )
    row = json.loads((results / "summary.json").read_text())["rows"]["all-2-simple"]
    which = row["w_best"] if row["best"] == "simple" else row["w_worst"]
    assert which["mean"] == pytest.approx((alone - both).mean())
    # Student's t, 3 degrees of freedom
    assert which["ci95"] == pytest.approx(3.182446 * (alone - both).std(ddof=1) / 2)


def test_a_constant_that_is_not_reset_is_tried_less(results: Path) -> None:
    rows = json.loads((results / "summary.json").read_text())["rows"]
    kept, reset = (np.array(rows[name]["selection_ratios"])[-1, 1] for name in (ROWS[2], ROWS[1]))
    assert kept < reset


def test_all_files_are_written(results: Path) -> None:
    expected = {
        "table.csv",
        "canonical.csv",
        "policies.csv",
        "selections.csv",
        "figure2.png",
        "table.svg",
        "report.html",
    }
    assert expected <= {path.name for path in results.iterdir()}


def test_an_interrupted_sweep_continues_and_jobs_do_not_matter(results: Path) -> None:
    before = (results / "summary.json").read_bytes()
    (results / "parts" / "all-2-simple-00000.npz").unlink()
    assert reproduce(results, jobs=1) == 0
    assert (results / "summary.json").read_bytes() == before
    assert BLOCK >= 4
