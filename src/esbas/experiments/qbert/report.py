"""Tables, figures, the recording and the report."""

from typing import TYPE_CHECKING

import numpy as np

from esbas.experiments.qbert import pictures
from esbas.experiments.qbert.analysis import EVALUATION_HEADER, LAST, METHOD_HEADER, QbertAnalysis
from esbas.experiments.qbert.figures import SHOWN, score_figure
from esbas.experiments.qbert.profiles import find_profile, hyperparameters
from esbas.experiments.qbert.setup import MEMBERS
from esbas.reporting import Results, Section, terminal

if TYPE_CHECKING:
    from esbas.columns import Array
    from esbas.experiments.qbert import Qbert

GIF = "best.gif"


def publish(results: Results, options: "Qbert", random: "Array") -> None:
    """Write tables, figures, recording, summary and report, and print the tables."""
    with terminal.status("reading the logs"):
        analysis = QbertAnalysis(options.setup, options.trainings(results.folder), random)
    methods, evaluations = analysis.method_table(), analysis.evaluation_table()
    results.table("methods", METHOD_HEADER, methods)
    results.table("evaluations", EVALUATION_HEADER, evaluations)
    results.table("hyperparameters", *hyperparameters(options.values))
    results.table("scores", *_scores(analysis))
    results.table("selection", *_selection(analysis))
    with terminal.status("drawing the figures"):
        results.figure("figure4", pictures.game_figure(options.setup))
        results.figure("figure6", score_figure(analysis))
        results.figure("figure6-steps", score_figure(analysis, steps=True))
    best = analysis.best
    if best is not None:
        with terminal.status("recording the best policy"):
            training = analysis.trainings[best[0]]
            pictures.record(training, best[1], results.folder / GIF, action_repeat=options.values.action_repeat)
    results.summary(analysis.summary())
    results.report(f"{analysis.setup.game}: {analysis.selector} over six deep Q-networks", _sections(analysis, options))
    terminal.print_table(_over(analysis), METHOD_HEADER, methods, bold=[0])
    terminal.print_text(_selected(analysis), *_recorded(analysis))
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def _sections(analysis: QbertAnalysis, options: "Qbert") -> list[Section]:
    values, own = options.values, find_profile(options.profile)
    window = f"Running means of the last {analysis.window} games" if analysis.window > 1 else "The score of each game"
    dots = f"one run; the highest {1 - SHOWN:.0%} of the single games are not shown"
    band = "with 95 % bands over runs" if len(analysis.seeds) > 1 else dots
    shorter = ""
    if values.steps < own.steps:
        shorter = f""" The run has {values.steps:,} of the {own.steps:,} agent steps of the profile, so replay start, target
            updates and the decay of ε are shortened in proportion."""
    return [
        Section(
            "Scores and selections",
            f"{_over(analysis)} {_selected(analysis)}\n\n{_caution(analysis)}",
            figure="figure6",
            caption=f"Figure 6 of the paper. {window}, {band}; below, the network that plays, in the same games.",
        ),
        Section(
            "The same over agent steps",
            "Better networks play longer games, so the same number of games is not the same amount of data.",
            figure="figure6-steps",
            caption="As above, over agent steps.",
        ),
        Section("Methods", _about_methods(analysis), table=(METHOD_HEADER, analysis.method_table())),
        Section(
            "Networks without exploration",
            f"""At the end of a run, each network plays the same games without exploration, and nobody learns. The best one of a
            method is scored again on fresh games, because the best of several noisy means is too high: these are the numbers in
            the table of methods. {" ".join(_recorded(analysis))}""",
            table=(EVALUATION_HEADER, analysis.evaluation_table()),
        ),
        Section(
            "Game and networks",
            figure="figure4",
            caption="The game (Figure 4 of the paper), what a network sees at the same time, and the three networks, each with "
            "two initialisations. Layers: channels x height x width, or the number of units.",
        ),
        Section(
            "Hyperparameters",
            f"Profile `{options.profile}`.{shorter} Remarks say what we chose where the paper prints nothing, or a misprint.",
            table=hyperparameters(values),
        ),
    ]


def _over(analysis: QbertAnalysis) -> str:
    runs, steps = len(analysis.seeds), analysis.setup.profile.steps
    count = "One run" if runs == 1 else f"{runs} runs"
    return f"{count} of {steps:,} agent steps for each method on {analysis.setup.game}."


def _selected(analysis: QbertAnalysis) -> str:
    shares = analysis.selected()
    listed = ", ".join(f"{MEMBERS[k]} {shares[k]:.0%}" for k in np.argsort(-shares, kind="stable"))
    return f"{analysis.selector} selected: {listed}."


def _caution(analysis: QbertAnalysis) -> str:
    if len(analysis.seeds) == 1:
        return """This is one run, as in the paper: another seed can order the networks differently, and a difference between two
            methods may be chance. Use `--runs` for several seeds."""
    return f"Intervals and bands are over {len(analysis.seeds)} runs with different seeds."


def _about_methods(analysis: QbertAnalysis) -> str:
    if len(analysis.seeds) == 1:
        intervals = f"""The interval of the last {LAST} episodes is over these episodes. It says how exactly the level of this run
            is known, and nothing about other seeds."""
    else:
        intervals = f"The interval of the last {LAST} episodes is over runs."
    return f"""Scores are those of the game, with exploration. {intervals} In the column of the best policy, intervals are over
        fresh games of one policy. Random actions: the level of a player that has learnt nothing."""


def _recorded(analysis: QbertAnalysis) -> list[str]:
    if analysis.best is None:
        return []
    method, policy = analysis.best
    return [f"Best policy: {policy.learner} of {method}, {policy.expected:,.0f} points on average; a game is in {GIF}."]


def _scores(analysis: QbertAnalysis) -> tuple[list[str], list[list[object]]]:
    """Every game of every run."""
    rows: list[list[object]] = []
    for name, runs in analysis.runs.items():
        for seed, run in zip(analysis.seeds, runs, strict=True):
            columns = np.arange(1, len(run) + 1), run.steps, run.learners, run.values, analysis.running_mean(run)
            rows += [[name, seed, *cells] for cells in zip(*(column.tolist() for column in columns), strict=True)]
    return ["method", "seed", "episode", "agent steps", "network", "score", f"mean of {analysis.window}"], rows


def _selection(analysis: QbertAnalysis) -> tuple[list[str], list[list[object]]]:
    """The lower panel of the figure."""
    at = analysis.grid(analysis.selector, steps=False)
    shares = analysis.shares(at, steps=False).mean(axis=0).T  # (X, K)
    return ["episode", *MEMBERS], [[episode, *row] for episode, row in zip(at.tolist(), shares.tolist(), strict=True)]
