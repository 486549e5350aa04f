"""Names are data: whatever a learner is called, its run, its figures and its reports work."""

import csv
import io
import json

import pytest
from rich.console import Console

from esbas import cli
from esbas.engine.progress import Progress
from esbas.reporting.figures import (
    curve_with_band,
    label,
    legend,
    new_figure,
    shared_legend,
    stacked_shares,
)
from esbas.reporting.terminal import print_table, status
from training.programs import words

NAMES = [
    r"$\foo$",
    "$",
    "[/red]",
    "[bold]b[/]",
    "<b>&amp;",
    "_hidden",
    'comma, "quote"',
    "=1+1",
    "{0}",
    "%s",
    ":smile:",
    "`a`",
]


def test_a_training_with_any_names(tmp_path, capsys):
    out = tmp_path / "$x^$ [/b] <i>"
    portfolio = tmp_path / "portfolio.toml"
    tables = [
        f'[[learner]]\nalgorithm = "random"\nname = {json.dumps(name.replace("{0}", "0"))}\n'
        for name in NAMES
    ]
    portfolio.write_text("\n".join(tables))
    command = [
        "train",
        "CartPole-v1",
        "--portfolio",
        str(portfolio),
        "--steps",
        "300",
        "--out",
        str(out),
    ]
    assert cli.main(command) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    with (out / "learners.csv").open(newline="") as file:
        names = [row["learner"] for row in csv.DictReader(file)]
    assert names == [name.replace("{0}", "0") for name in NAMES]
    assert all(name in shown for name in names)
    page = (out / "report.html").read_text()
    assert "<b>&amp;" not in page
    assert "&lt;b&gt;&amp;amp;" in page
    assert cli.main(["compare", str(out), "--out", str(tmp_path / "compared")]) == 0
    assert cli.main(["evaluate", str(out), "--learner", r"$\foo$", "--episodes", "1"]) == 0


def texts(drawn):
    return [text.get_text().strip() for text in drawn.get_legend().get_texts()]


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_shows_any_name(name):
    figure, axes = new_figure()
    curve_with_band(axes, [0, 1], [0, 1], [0, 0], name)
    stacked_shares(axes, [0, 1], [[0.5, 0.5], [0.5, 0.5]], [name, "other"])
    label(axes, x=name, y=name, title=name)
    legend(axes)
    assert texts(axes) == [name, "other", name]
    shared_legend(figure, axes)
    figure.savefig(io.BytesIO(), format="svg")


def test_formulas_are_drawn_where_they_are_meant():
    sizes = []
    for math in (False, True):
        figure, axes = new_figure()
        label(axes, x="$x^{2}$", y="", math=math)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
        sizes.append(len(buffer.getvalue()))
    assert sizes[0] > sizes[1]  # seven letters, and two


@pytest.mark.parametrize("name", NAMES)
def test_the_terminal_shows_any_name(name, capsys):
    print_table(name, [name, "x"], [[name, 1.0]])
    shown = capsys.readouterr().out
    assert shown.count(name) == 3
    with status(name):
        pass
    for terminal in (False, True):
        output = io.StringIO()
        with Progress(
            name, total=2, done=1, console=Console(file=output, force_terminal=terminal, width=200)
        ) as progress:
            progress.advance(name)
        assert name in output.getvalue()


def test_a_name_has_a_longest_length(tmp_path, capsys):
    assert cli.main(words(tmp_path / "it", learners=[f"random(name='{'x' * 200_000}')"])) == 2
    assert "The name of a learner must have at most 1000 characters" in capsys.readouterr().err
