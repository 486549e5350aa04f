"""Every bandit on arms that do not change."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.experiments.stationary import Stationary
from esbas.experiments.stationary.setup import COMPARED, Arms, label
from esbas.experiments.stationary.sweep import one_run
from esbas.reporting import Estimate, estimate

ARMS = Arms(means=(0.6, 0.5, 0.4), rounds=5000)
DOCS = Path(__file__).parents[2] / "docs" / "bandits.md"


def regrets(name, runs):
    return estimate([one_run(name, ARMS, seed=0, run=run) for run in range(runs)])


def test_ucb1_is_within_its_known_range():
    assert 20 <= regrets("ucb1", 30).mean <= 30


def test_uniform_has_the_regret_that_follows_from_the_gaps():
    measured = regrets("uniform", 20)  # 5000 (0 + 0.1 + 0.2) / 3
    assert abs(measured.mean - 500) <= measured.ci95 < 5
    assert one_run("roundrobin", ARMS, seed=0, run=0) == pytest.approx(499.9)


def test_the_command_writes_all_and_continues(tmp_path):
    config = Stationary(runs=2, rounds=30, means=(0.9, 0.1), seed=3, jobs=1, out=tmp_path / "out")
    config.run()
    written = {path.name for path in config.out.iterdir()}
    assert written >= {
        "config.json",
        "summary.json",
        "regrets.csv",
        "regrets.png",
        "regrets.svg",
        "report.html",
        "parts",
    }
    rows = list(csv.DictReader((config.out / "regrets.csv").read_text().splitlines()))
    assert {row["bandit"] for row in rows} == {label(name) for name in COMPARED}
    assert [float(row["regret"]) for row in rows] == sorted(float(row["regret"]) for row in rows)
    summary = (config.out / "summary.json").read_bytes()
    stamps = {path: path.stat().st_mtime_ns for path in (config.out / "parts").iterdir()}
    lost = config.out / "parts" / "klucb-0.npz"
    lost.unlink()
    config.run()
    assert (config.out / "summary.json").read_bytes() == summary
    assert {path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp} == {lost}
    expected = [
        one_run("exp3", Arms(means=(0.9, 0.1), rounds=30), seed=3, run=run) for run in range(2)
    ]
    assert json.loads(summary)["regret"]["exp3"]["mean"] == pytest.approx(np.mean(expected))


def test_other_settings_need_another_folder(tmp_path):
    Stationary(runs=1, rounds=5, jobs=1, out=tmp_path).run()
    with pytest.raises(InvalidValueError, match=r"rounds=5.*--out"):
        Stationary(runs=1, rounds=6, jobs=1, out=tmp_path).run()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"runs": 0}, "`runs` must be at least 1, but got 0."),
        ({"rounds": 1}, "`rounds` must be at least 2, but got 1."),
        ({"means": (0.5, 1.5)}, r"`means` must be between 0 and 1, but got \(0.5, 1.5\)."),
        ({"means": ()}, "`means` must not be empty."),
        ({"seed": -1}, "`seed` must be at least 0, but got -1."),
        ({"jobs": 0}, "`jobs` must be at least 1, but got 0."),
    ],
)
def test_bad_options_are_refused_before_a_folder_is_created(tmp_path, bad, message):
    with pytest.raises(InvalidValueError, match=message):
        Stationary(**bad, out=tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


def documented():
    """Return the table in docs/bandits.md, by bandit."""
    lines = re.split("<!-- (?:end of )?regrets -->", DOCS.read_text())[1].strip().splitlines()[2:]
    return dict([cell.strip() for cell in line.strip("|").split("|")] for line in lines)


def test_the_docs_have_every_bandit():
    assert set(documented()) == {label(name) for name in COMPARED}


@pytest.mark.slow
def test_the_docs_have_the_numbers_that_the_command_writes(tmp_path):
    Stationary(jobs=2, out=tmp_path).run()
    found = json.loads((tmp_path / "summary.json").read_text())["regret"]
    assert documented() == {label(name): str(Estimate(**each)) for name, each in found.items()}
