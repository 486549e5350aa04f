"""Tables, figures, the recording and the report."""

from typing import TYPE_CHECKING

import numpy as np

from esbas.experiments.qbert import pictures
from esbas.experiments.qbert.analysis import EVALUATION_HEADER, LAST, METHOD_HEADER, QbertAnalysis
from esbas.experiments.qbert.figures import SHOWN, score_figure
from esbas.experiments.qbert.profiles import find_profile, hyperparameters
from esbas.experiments.qbert.setup import LEARNERS
from esbas.reporting import Results, Section, terminal

if TYPE_CHECKING:
    from esbas._internal.columns import Array
    from esbas.experiments.qbert import Qbert

GIF = "best.gif"


def publish(results: Results, options: "Qbert", random: "Array") -> None:
    """Write tables, figures, recording, summary and report, and print the tables."""
    with terminal.status("reading the logs"):
        analysis = QbertAnalysis(options.setup, options.trainings(results.folder), random)
    methods = analysis.method_table()
    evaluations = analysis.evaluation_table()
    results.table("methods", METHOD_HEADER, methods)
    results.table("evaluations", EVALUATION_HEADER, evaluations)
    results.table("hyperparameters", *hyperparameters(options.values))
    results.table("scores", *_scores(analysis))
    results.table("selection", *_selection(analysis))
    with terminal.status("drawing the figures"):
        results.figure("figure4", pictures.game_figure(options.setup))
        results.figure("figure6", score_figure(analysis))
        results.figure("figure6-steps", score_figure(analysis, steps=True))
    if analysis.best is not None:
        method, policy = analysis.best
        with terminal.status("recording the best policy"):
            pictures.record(
                analysis.trainings[method],
                policy,
                results.folder / GIF,
                action_repeat=options.values.action_repeat,
            )
    results.summary(analysis.summary())
    title = f"{analysis.setup.game}: {analysis.selector} over six deep Q-networks"
    results.report(title, _sections(analysis, options))
    terminal.print_table(_over(analysis), METHOD_HEADER, methods, bold=[0])
    terminal.print_text(_selected(analysis), *_recorded(analysis))
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def _sections(analysis: QbertAnalysis, options: "Qbert") -> list[Section]:
    return [
        Section(
            "Scores and selections",
            f"{_over(analysis)} {_selected(analysis)}\n\n{_caution(analysis)}",
            figure="figure6",
            caption=_about_curves(analysis),
        ),
        Section(
            "The same over agent steps",
            "Better networks play longer games, "
            "so the same number of games is not the same amount of data.",
            figure="figure6-steps",
            caption="As above, over agent steps.",
        ),
        Section(
            "Methods", _about_methods(analysis), table=(METHOD_HEADER, analysis.method_table())
        ),
        Section(
            "Networks without exploration",
            f"""At the end of a run, each network plays the same games without exploration and
            without learning. The best one of a method is scored again on fresh games, because the
            best of several noisy means is too high: these are the numbers in the table of methods.
            {" ".join(_recorded(analysis))}""",
            table=(EVALUATION_HEADER, analysis.evaluation_table()),
        ),
        Section(
            "Game and networks",
            figure="figure4",
            caption="The game (Figure 4 of the paper), what a network sees at the same time, and "
            "the three networks, each with two initializations. Layers: channels x height x width, "
            "or the number of units.",
        ),
        Section(
            "Hyperparameters",
            f"Profile `{options.profile}`.{_about_shorter(options)} Remarks give our choice where "
            "the paper prints nothing, or a misprint.",
            table=hyperparameters(options.values),
        ),
    ]


def _about_curves(analysis: QbertAnalysis) -> str:
    if analysis.window > 1:
        means = f"Running means of the last {analysis.window} games"
    else:
        means = "The score of each game"
    if len(analysis.seeds) > 1:
        band = "with 95 % bands over runs"
    else:
        band = f"one run; the highest {1 - SHOWN:.0%} of the single games are not shown"
    return (
        f"Figure 6 of the paper. {means}, {band}; below, the network that plays, in the same games."
    )


def _about_shorter(options: "Qbert") -> str:
    """Return a sentence about the schedules of a run that is shorter than the profile's."""
    steps = options.values.steps
    full = find_profile(options.profile).steps
    if steps >= full:
        return ""
    return f""" The run has {steps:,} of the {full:,} agent steps of the profile, so replay start,
        target updates and the decay of ε are shortened in proportion."""


def _over(analysis: QbertAnalysis) -> str:
    runs = len(analysis.seeds)
    steps = analysis.setup.profile.steps
    count = "One run" if runs == 1 else f"{runs} runs"
    return f"{count} of {steps:,} agent steps for each method on {analysis.setup.game}."


def _selected(analysis: QbertAnalysis) -> str:
    shares = analysis.selected()
    by_share = np.argsort(-shares, kind="stable")
    listed = ", ".join(f"{LEARNERS[k]} {shares[k]:.0%}" for k in by_share)
    return f"{analysis.selector} selected: {listed}."


def _caution(analysis: QbertAnalysis) -> str:
    if len(analysis.seeds) == 1:
        return """This is one run, as in the paper: another seed can order the networks differently,
            and a difference between two methods may be chance. Use `--runs` for several seeds."""
    return f"Intervals and bands are over {len(analysis.seeds)} runs with different seeds."


def _about_methods(analysis: QbertAnalysis) -> str:
    if len(analysis.seeds) == 1:
        intervals = f"""The interval of the last {LAST} episodes is over these episodes. It covers
            the level of this run, and not other seeds."""
    else:
        intervals = f"The interval of the last {LAST} episodes is over runs."
    return f"""Scores are those of the game, with exploration. {intervals} In the column of the best
        policy, intervals are over fresh games of one policy. Random actions: the level of a player
        that has learnt nothing."""


def _recorded(analysis: QbertAnalysis) -> list[str]:
    if analysis.best is None:
        return []
    method, policy = analysis.best
    points = f"{policy.expected:,.0f} points on average"
    return [f"Best policy: {policy.learner} of {method}, {points}; a game is in {GIF}."]


def _scores(analysis: QbertAnalysis) -> tuple[list[str], list[list[object]]]:
    """Return every game of every run."""
    mean = f"mean of {analysis.window}"
    header = ["method", "seed", "episode", "agent steps", "network", "score", mean]
    rows: list[list[object]] = []
    for name, runs in analysis.runs.items():
        for seed, run in zip(analysis.seeds, runs, strict=True):
            columns = (
                range(1, len(run) + 1),
                run.steps.tolist(),
                run.learners.tolist(),
                run.values.tolist(),
                analysis.running_mean(run).tolist(),
            )
            rows += [[name, seed, *cells] for cells in zip(*columns, strict=True)]
    return header, rows


def _selection(analysis: QbertAnalysis) -> tuple[list[str], list[list[object]]]:
    """Return the shares in the lower panel of the figure."""
    at = analysis.grid(analysis.selector, steps=False)
    shares = analysis.shares(at, steps=False).mean(axis=0).T  # (X, K)
    rows: list[list[object]] = []
    for episode, row in zip(at.tolist(), shares.tolist(), strict=True):
        rows.append([episode, *row])
    return ["episode", *LEARNERS], rows
