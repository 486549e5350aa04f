"""The dialogue experiment with shared evidence, and with constant policies of another seed."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from esbas import cli
from esbas.experiments.dialogue import Negotiation, constants
from esbas.experiments.dialogue.analysis import analyze
from esbas.experiments.dialogue.notation import parse
from esbas.experiments.dialogue.setup import EPOCHS
from esbas.experiments.dialogue.sweep import EpochSums, Outcomes
from esbas.reporting import Results

ROW = "simple + constant-1.01"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("shared") / "out"
    words = [
        "reproduce",
        "dialogue",
        "--rows",
        ROW,
        "--runs",
        "4",
        "--jobs",
        "2",
        "--out",
        str(out),
    ]
    assert cli.main(words) == 0
    (out / "before").write_text(str(part_times(out)))
    assert cli.main([*words, "--selector", "shared-evidence"]) == 0
    return out


def part_times(out: Path) -> dict[str, int]:
    return {
        path.name: path.stat().st_mtime_ns
        for path in (out / "parts").iterdir()
        if "shared" not in path.name
    }


def test_it_is_added_to_the_results_of_esbas(results: Path) -> None:
    assert (results / "before").read_text() == str(part_times(results))
    assert json.loads((results / "config.json").read_text())["earlier"] == [{"selector": None}]


def test_the_difference_is_paired_by_run(results: Path) -> None:
    names = "simple+constant-1.01", "simple+constant-1.01=shared-evidence"
    esbas, shared = (
        np.load(results / "parts" / f"{name}-00000.npz")["returns"].sum(axis=1) for name in names
    )
    summary = json.loads((results / "summary.json").read_text())
    row = summary["rows"][ROW]
    assert set(row["difference"]) == {"mean", "ci95", "runs"}
    assert row["difference"]["mean"] == pytest.approx((esbas - shared).mean())
    # Student's t, 3 degrees
    assert row["difference"]["ci95"] == pytest.approx(3.182446 * (esbas - shared).std(ddof=1) / 2)
    assert row["difference"]["runs"] == 4
    assert sum(row["difference_by_epoch"]["mean"]) == pytest.approx(row["difference"]["mean"])
    assert sum(summary["shared_evidence"].values()) == 1
    ratios = np.array(row["shared_evidence"]["selection_ratios"])
    assert ratios.sum(axis=1) == pytest.approx(np.ones(12))
    # the constant is known to be worse
    assert ratios[-1, 1] < np.array(row["selection_ratios"])[-1, 1]


def test_the_command_is_recorded_and_all_files_are_written(results: Path) -> None:
    assert (
        "--selector shared-evidence" in json.loads((results / "config.json").read_text())["again"]
    )
    assert {"difference.png", "figure2-shared-evidence.svg"} <= {
        path.name for path in results.iterdir()
    }
    (row,) = csv.DictReader((results / "table.csv").read_text().splitlines())
    assert row["shared evidence is"] in ("better", "as good", "worse")
    selectors = {
        row["selector"]
        for row in csv.DictReader((results / "selections.csv").read_text().splitlines())
    }
    assert selectors == {"ESBAS", "shared evidence"}


def returns(first: list[float]) -> EpochSums:
    """Runs with these returns in the first epoch, and none later."""
    by_epoch = np.zeros((len(first), len(EPOCHS)))
    by_epoch[:, 0] = first
    return EpochSums(
        by_epoch,
        np.zeros((len(first), len(EPOCHS), 2), np.int64),
        np.ones((len(first), len(EPOCHS)), np.int64),
    )


@pytest.mark.parametrize(
    ("shared", "reading"), [([8.0, 10.1], "better"), ([1.0, 3.1], "worse"), ([4.0, 9.0], "as good")]
)
def test_negative_differences_are_better(shared: list[float], reading: str) -> None:
    row = parse("simple-2 + fast-2")
    alone = {name: returns([1.0, 2.0]) for name in ("simple-2", "fast-2")}
    outcomes = Outcomes({row.name: returns([5.0, 7.0])}, alone, {row.name: returns(shared)})
    analysis = analyze({row.name: row}, outcomes)
    assert analysis.rows[0].shared_reading == reading
    assert analysis.shared_readings()[reading] == 1


def test_with_another_seed_all_constants_are_generated_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {"0.97", "1.01", "1.05", "1.08", "1.09", "1.10", "1.11", "1.13", "1.14"}
    assert (
        Negotiation(seed=3).missing_constants == Negotiation(generate=True).missing_constants == {}
    )
    anew = Negotiation(seed=3, generate=True)
    assert set(anew.missing_constants) == everything
    seeds = []

    def generate(wanted: dict[str, int], *, seed: int, candidates: int) -> constants.Policies:
        seeds.append((seed, candidates))
        return constants.stored()

    monkeypatch.setattr(constants, "generate", generate)
    results = Results(tmp_path / "out", command="test", config={})
    found = [constants.generated(results, anew.missing_constants, seed=3) for _ in range(2)]
    assert found[0] == found[1] == constants.stored()
    assert seeds == [(3, 9 * constants.CANDIDATES)]  # once, and for all mean returns together
