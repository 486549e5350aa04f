import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from esbas import cli
from esbas.errors import InvalidValueError
from esbas.experiments.small_grid import SmallGrid

RATES = ["0.001", "0.01", "0.1", "0.5"]
FILES = [
    "config.json",
    "methods.csv",
    "parts",
    "report.html",
    "small_grid.png",
    "small_grid.svg",
    "summary.json",
]


def test_the_experiment_from_end_to_end(tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    words = [
        "reproduce",
        "small_grid",
        "--runs",
        "6",
        "--episodes",
        "100",
        "--jobs",
        "1",
        "--out",
        str(out),
    ]
    assert cli.main(words) == 0
    output = capsys.readouterr()
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert "SSBAS" in output.out
    assert "rate 0.5 alone" in output.out
    assert str(out / "report.html") in output.out.replace("\n", "")
    for selector in ("SSBAS", "ESBAS"):
        assert f"small grid, {selector}: 10/10" in output.err  # two blocks of five methods
        assert f"{selector} chose 0.001 " in output.err
    assert "\x1b" not in output.out + output.err
    summary = json.loads((out / "summary.json").read_text())
    assert list(summary) == ["ssbas", "esbas"]
    for selector, found in summary.items():
        assert list(found["meta_algorithms"]) == [selector, *RATES]
        ratios = found["meta_algorithms"][selector]["selection_ratio"]
        assert np.sum([ratios[rate] for rate in RATES], axis=0) == pytest.approx(1)

    monkeypatch.setattr(
        sys.modules["esbas.experiments.gridworld.sweep"],
        "compiled_run",
        lambda *_, **__: pytest.fail("a finished run was run again"),
    )
    before = {name: (out / name).read_bytes() for name in FILES if name != "parts"}
    assert cli.main(words) == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    assert cli.main([*words, "--seed", "1"]) == 2
    assert "seed=0, but this is seed=1: give another --out" in capsys.readouterr().err


def counters(monkeypatch, **options):
    """Return the analyses, without tables and figures."""
    collected = []
    monkeypatch.setattr(
        "esbas.experiments.small_grid.publish", lambda _, analyses: collected.append(analyses)
    )
    SmallGrid(**options).run()
    return collected[0]


def test_within_the_defaults_ssbas_shifts_from_the_highest_rate_to_a_low_one(tmp_path, monkeypatch):
    analysis = counters(monkeypatch, runs=10, out=tmp_path / "out")["ssbas"]
    shares = analysis.shares("ssbas").mean(axis=0)  # (bins, K)
    leaders = [RATES[shares[analysis.bin_before(episode)].argmax()] for episode in (1000, 30_000)]
    assert leaders == ["0.5", "0.01"]
    assert analysis.final("ssbas").mean < min(analysis.final(rate).mean for rate in RATES)


def test_results_do_not_depend_on_jobs_but_on_the_seed(tmp_path, monkeypatch):
    sums = []
    for number, options in enumerate([{"jobs": 1}, {"jobs": 2}, {"jobs": 1, "seed": 1}]):
        analyses = counters(
            monkeypatch, runs=6, episodes=100, out=tmp_path / str(number), **options
        )
        transitions = []
        for analysis in analyses.values():
            transitions += [analysis.transitions(name).tolist() for name in analysis.names]
        sums.append(transitions)
    assert sums[0] == sums[1] != sums[2]


def _own_session():
    """Start a session: Ctrl-C must not reach pytest, and SIGINT must not be ignored."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_experiment_keeps_finished_parts(tmp_path):
    words = [
        sys.executable,
        "-m",
        "esbas",
        "reproduce",
        "small_grid",
        "--out",
        str(tmp_path / "out"),
    ]
    words += ["--runs", "5000", "--episodes", "3000", "--jobs", "2"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_own_session
    )
    try:
        deadline = time.monotonic() + 300
        while (
            process.poll() is None
            and time.monotonic() < deadline
            and len(list(tmp_path.glob("out/parts/*.npz"))) < 2
        ):
            time.sleep(0.05)
        # Like Ctrl-C in a terminal, which reaches all processes.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        with suppress(ProcessLookupError):  # the whole group has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("esbas: stopped; the same command continues")
    assert "Traceback" not in err
    assert out == ""
    parts = list(tmp_path.glob("out/parts/*.npz"))
    assert len(parts) >= 2
    for path in parts:
        assert set(np.load(path).files) == {"transitions", "objective", "selections"}


@pytest.mark.parametrize("options", [{"runs": 0}, {"episodes": 0}, {"jobs": 0}, {"seed": -1}])
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options):
    (name,) = options
    with pytest.raises(InvalidValueError, match=f"`{name}` must be at least"):
        SmallGrid(out=tmp_path / "out", **options).run()
    assert not (tmp_path / "out").exists()
