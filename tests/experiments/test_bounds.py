import json
from pathlib import Path

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.experiments import regrets as regret
from esbas.experiments.bounds import Bounds
from esbas.experiments.bounds.analysis import BoundsAnalysis, Fit, fit, measured, theorems
from esbas.experiments.bounds.meta_algorithms import META_ALGORITHMS
from esbas.experiments.bounds.setup import (
    BEYOND,
    CROSSING,
    REGIMES,
    TABLE_1,
    MetaAlgorithm,
    Regime,
    checkpoints,
    compared_methods,
    two_learners,
)
from esbas.experiments.bounds.sweep import run_sweep
from esbas.experiments.kernels.counter import run_key
from esbas.experiments.regrets import LOG, Growth
from esbas.reporting import Results

KEYS = np.array([run_key(1, "test", run) for run in range(4)])


@pytest.mark.parametrize("regime", REGIMES.values(), ids=REGIMES)
def test_learners_obey_the_papers_assumptions(regime: Regime) -> None:
    online = regime.online(2**12)
    assert online.min() >= 0
    assert online.max() <= regime.optimum <= 1
    assert (np.diff(online, axis=0) >= 0).all()  # expectations never decrease with more data
    starts = 2 ** np.arange(12)
    np.testing.assert_array_equal(regime.frozen(2**12)[starts - 1], online[starts - 1])
    np.testing.assert_array_equal(
        np.unique(regime.frozen(2**12), axis=0), np.unique(online[[*(starts - 1), -1]], axis=0)[:13]
    )


@pytest.mark.parametrize("regime", [*TABLE_1, *BEYOND], ids=lambda regime: regime.name)
def test_gaps_and_shortfalls_have_the_orders_they_stand_for(regime: Regime) -> None:
    early, late = (
        np.array([learner(2.0**power) for learner in regime.learners]) for power in (30, 31)
    )
    assert late.argmax() == 1
    slope = np.log2((late[1] - late[0]) / (early[1] - early[0]))
    assert slope == pytest.approx(-regime.gap, abs=1e-3)
    assert np.log2((regime.optimum - late[1]) / (regime.optimum - early[1])) == pytest.approx(
        -regime.own, abs=1e-3
    )


def test_every_cell_of_table_1_is_covered() -> None:
    rows = {0.0: 0, 0.2: 1, 0.35: 1, 0.5: 2, 0.6: 2, 0.8: 2, 1.0: 3}  # by gap
    covered = {(rows[regime.gap], regime.own == 1) for regime in TABLE_1}
    assert covered == {
        (0, True),
        (1, True),
        (2, True),
        (3, True),
        (0, False),
        (1, False),
        (2, False),
    }
    below = [regime for regime in TABLE_1 if 0 < regime.gap < 0.5 and regime.own < 1]
    # both cases of that cell
    assert {regime.gap < 1 - regime.own for regime in below} == {True, False}
    assert all(regime.own >= regime.gap for regime in TABLE_1)
    assert all(regime.own < regime.gap for regime in BEYOND)


def test_the_crossing_regime_has_two_best_arms() -> None:
    best = CROSSING.online(2**17).argmax(axis=1)
    assert best[0] == 0
    assert best[-1] == 1
    assert 30_000 < np.flatnonzero(best)[0] < 40_000


def test_checkpoints_hold_the_ends_of_epochs() -> None:
    times = checkpoints(2**10)
    assert set(2 ** np.arange(1, 11) - 1) <= set(times.tolist())
    assert times[0] == 1
    assert times[-1] == 2**10
    with pytest.raises(InvalidValueError, match="power of two"):
        checkpoints(1000)


@pytest.mark.parametrize("bound", [Growth(0.4), Growth(0.35, 1), Growth(0, 2), LOG], ids=str)
def test_a_regret_that_grows_as_its_bound_has_the_bounds_exponent(bound: Growth) -> None:
    times = checkpoints(2**20)
    rng = np.random.default_rng(2)
    regrets = 7.0 + rng.uniform(0.5, 1.5, size=(200, 1)) * bound(times + 1)
    found = fit(times, regrets, bound, seed=0)
    assert found.exponent == pytest.approx(bound.exponent, abs=1e-9)
    assert found.verdict(bound) == "at"
    faster = fit(times, regrets * (times + 1) ** 0.1, bound, seed=0)
    assert faster.exponent == pytest.approx(bound.exponent + 0.1, abs=0.04)
    assert faster.verdict(bound) == "above"


def test_the_bootstrap_interval_covers_the_truth() -> None:
    times = checkpoints(2**12)
    inside = []
    for seed in range(40):
        steps = np.diff(times + 1.0, prepend=0.0) ** 0.3 * np.random.default_rng(seed).exponential(
            size=(50, len(times))
        )
        found = fit(times, np.cumsum(steps, axis=1), LOG, seed=seed)
        truth = fit(
            times, np.cumsum(np.diff(times + 1.0, prepend=0.0) ** 0.3)[None], LOG, seed=seed
        )
        inside.append(found.low <= truth.exponent <= found.high)
    assert np.mean(inside) > 0.85


def test_verdicts() -> None:
    bound = Growth(0.4)
    assert Fit(0.3, 0.2, 0.4).verdict(bound) == "below"
    assert Fit(0.4, 0.39, 0.41).verdict(bound) == "at"
    assert Fit(0.43, 0.42, 0.44).verdict(bound) == "at"
    assert Fit(0.43, 0.421, 0.44).verdict(bound) == "above"


def test_measured_regrets_are_those_of_the_definitions() -> None:
    regime = two_learners(0.2, 0.5)
    horizon = 2**9
    every = np.arange(1, horizon + 1)
    for name, frozen in (("ESBAS", True), ("SSBAS", False)):
        expectations = regime.frozen(horizon) if frozen else regime.online(horizon)
        steps = np.diff(
            META_ALGORITHMS[name](expectations, KEYS, every, xi=0.25), axis=1, prepend=0.0
        )
        # arm 1 is the better one
        chosen = (steps < regret.gaps(expectations)[:, 0] / 2).astype(np.int64)
        runs = measured(
            regime,
            regret.short_sighted(expectations, chosen)[:, checkpoints(horizon) - 1],
            horizon=horizon,
            frozen=frozen,
        )
        absolute = regret.absolute(expectations, chosen, optimum=regime.optimum)
        np.testing.assert_allclose(runs.absolute, absolute[:, runs.times - 1])
        oracle = np.cumsum(regime.online(horizon).max(axis=1))[runs.times - 1]
        got = np.cumsum(
            np.take_along_axis(
                np.broadcast_to(expectations, (4, horizon, 2)), chosen[..., None], 2
            )[..., 0],
            axis=1,
        )
        np.testing.assert_allclose(runs.oracle, oracle - got[:, runs.times - 1], atol=1e-9)


def test_theorem_3_needs_no_kappa_and_theorem_1_a_small_factor_on_shared_data() -> None:
    for regime in (*TABLE_1, *BEYOND):
        run = META_ALGORITHMS["ESBAS"](regime.frozen(2**10), KEYS, checkpoints(2**10), xi=0.25)
        found = theorems(measured(regime, run, horizon=2**10, frozen=True))
        assert found.times_3[0] >= 36
        assert (found.kappa_3 <= 0).all()
        assert ((found.share_3 > 0) & (found.share_3 <= 1)).all()
        assert found.ratio_1 <= 2  # K


def _sweep(
    folder: Path, methods: list[MetaAlgorithm], *, jobs: int, seed: int = 5
) -> dict[tuple[str, str], np.ndarray]:
    results = Results(folder, command="test", config={"seed": seed})
    return dict(run_sweep(Bounds(seed=seed, jobs=jobs), results, methods, horizon=256))


def test_results_depend_on_the_seed_and_neither_on_jobs_nor_on_interruptions(
    tmp_path: Path,
) -> None:
    methods = [
        method
        for method in compared_methods(runs=103, rival_runs=3, xi=0.25, safe_xi=1.0)
        if method.frozen or method.name == "Exp3"
    ]
    one = _sweep(tmp_path / "one", methods, jobs=1)
    two = _sweep(tmp_path / "two", methods, jobs=2)
    parts = sorted((tmp_path / "one" / "parts").glob("*.npz"))
    for part in parts[::2]:
        part.unlink()
    parts[1].write_bytes(b"torn")
    again = _sweep(tmp_path / "one", methods, jobs=2)
    other = _sweep(tmp_path / "three", methods, jobs=2, seed=6)
    assert one.keys() == two.keys() == again.keys()
    for key, table in one.items():
        assert len(table) == (103 if "ESBAS" in key[1] else 3)
        np.testing.assert_array_equal(table, two[key])
        np.testing.assert_array_equal(table, again[key])
        assert not np.array_equal(table, other[key])


def test_runs_are_paired_between_meta_algorithms(tmp_path: Path) -> None:
    same = [MetaAlgorithm("a", "UCB1", 0.25, 3), MetaAlgorithm("b", "UCB1", 0.25, 3)]
    found = _sweep(tmp_path / "a", same[:1], jobs=1) | _sweep(tmp_path / "b", same[1:], jobs=1)
    np.testing.assert_array_equal(found["crossing", "a"], found["crossing", "b"])


def test_the_command_writes_tables_figures_and_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Bounds(runs=12, horizon=1024, out=tmp_path, jobs=2).run()
    for name in ("exponents", "short_sighted", "absolute", "theorem_3", "rivals", "best"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        assert (tmp_path / f"{name}.svg").exists()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert len(summary["cells"]) == 2 * 2 * len([*TABLE_1, *BEYOND])
    slip = [
        cell
        for cell in summary["cells"]
        if cell["gap"] == "gap T^-0.8" and cell["own regret of the best"] == "own T^0.5"
    ]
    verdicts = {cell["verdict"] for cell in slip if cell["regret"] == "absolute"}
    assert verdicts <= {"above (Theorem 3, T^0.5: below)", "above (Theorem 3, T^0.5: at)"}
    assert set(summary["rivals"]["crossing"]["absolute"]) == {
        "ESBAS, ξ = 0.25",
        "ESBAS, ξ = 1",
        *META_ALGORITHMS,
    } - {"ESBAS"}
    header, *rows = (tmp_path / "table_1.csv").read_text().splitlines()
    assert header.startswith("gap,own regret of the best,regret,Table 1")
    assert len(rows) == len(summary["cells"])
    report = (tmp_path / "report.html").read_text()
    assert "Theorem 3" in report
    output = capsys.readouterr().out
    assert "keep to the bounds of Table 1" in output
    assert str(tmp_path) in output


def test_leaders_have_intervals_that_overlap_with_the_best() -> None:
    methods = [MetaAlgorithm(name, "UCB1", 0.25, 3) for name in ("worst", "best", "near")]
    spread = np.array([[-0.1], [0.0], [0.1]])
    offsets = {"worst": 50.0, "best": 1.0, "near": 1.05}
    size = len(checkpoints(256))
    regrets = {
        (regime, name): np.full((3, size), offset) + spread
        for regime in REGIMES
        for name, offset in offsets.items()
    }
    analysis = BoundsAnalysis(regrets, methods, horizon=256, seed=0)
    assert analysis.leaders(CROSSING) == ["best", "near"]
    assert analysis.final(CROSSING, "near", "oracle").mean == pytest.approx(1.05)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Bounds(runs=1), "`runs` must be at least 2, but got 1."),
        (Bounds(rival_runs=0), "`rival_runs` must be at least 2, but got 0."),
        (Bounds(horizon=1000), "power of two"),
        (Bounds(seed=-1), "`seed` must be at least 0, but got -1."),
        (Bounds(jobs=0), "`jobs` must be at least 1, but got 0."),
        (Bounds(xi=-1.0), "`xi` must be at least 0 and finite, but got -1.0."),
        (Bounds(safe_xi=float("nan")), "`safe_xi` must be at least 0 and finite, but got nan."),
    ],
)
def test_bad_options_are_refused_before_a_folder_is_made(
    config: Bounds, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError, match=message):
        config.run()
    assert not list(tmp_path.iterdir())
