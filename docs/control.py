"""Update docs/control.md: `python docs/control.py RESULTS`.

RESULTS is a results folder of `esbas reproduce control`. `python docs/control.py RESULTS
control-first-round` updates that page instead. Only the parts and figures that a page has change.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from page import DOCS, copy_figures, fill, read, table

WORDS = {True: "holds", False: "does not hold", None: "open"}
FIGURES = {
    "aggregate": "aggregate",
    "curves-confirmatory": "curves",
    "cost": "cost",
    "passive": "passive",
}
MEMBERS = "alone:", "fixed:"
RULES = "falling-share", "upside", "improvement", "coverage", "coverage-per-step"


def main(results: Path, name: str = "control") -> None:
    """Copy the figures, and replace the text between the marks in the page."""
    summary, page = read(results, "summary"), (DOCS / f"{name}.md").read_text("utf-8")
    figures = {
        old: f"{name}-{new}" for old, new in FIGURES.items() if (results / f"{old}.png").is_file()
    }
    copy_figures(
        results, {old: new for old, new in figures.items() if f"figures/{new}.png" in page}
    )
    verdicts = table(
        ["claim", "", "measured"],
        [[v["claim"], WORDS[v["holds"]], v["measured"]] for v in summary["verdicts"]],
    )
    parts = {
        "verdicts": verdicts,
        f"verdicts {summary['recommended']}": verdicts,
        "aggregate": table(*aggregate(summary)),
        "partial": table(*partial(summary)),
        "scales": table(*scales(summary)),
    }
    for kind in ("confirmatory", "development"):
        tasks = {name: task for name, task in summary["tasks"].items() if task["kind"] == kind}
        if tasks:
            parts[kind] = table(*matrix(tasks, "score"))
            if kind == "confirmatory":
                parts["final"] = table(*matrix(tasks, "final"))
    ablations = {
        name: task for name, task in summary["tasks"].items() if task["kind"] == "ablation"
    }
    rules = {name: task for name, task in ablations.items() if data_rules(task)}
    if ablations:
        parts["ablation"] = table(
            *ablation(
                {name: task for name, task in ablations.items() if name not in rules}, summary
            )
        )
        parts["data"] = table(*returns(rules))
    fill(f"{name}.md", {part: text for part, text in parts.items() if f"<!-- {part} -->" in page})


def matrix(tasks: Mapping[str, Any], kind: str) -> tuple[list[str], list[list[object]]]:
    """Scores with intervals by method and task; learners alone have a table of their own."""
    methods = dict.fromkeys(
        name for task in tasks.values() for name in task["methods"] if not name.startswith(MEMBERS)
    )
    rows: list[list[object]] = []
    for name in methods:
        found = [task["methods"].get(name, {}).get(kind) for task in tasks.values()]
        if any(found):
            rows.append([f"`{name}`" if " " not in name else name, *map(interval, found)])
    return ["", *tasks], rows


def returns(tasks: Mapping[str, Any]) -> tuple[list[str], list[list[object]]]:
    """Mean returns during training by method and task, where no learner learns alone.

    There, the scale of scores says little.
    """
    header, rows = matrix(tasks, "score")
    methods = dict.fromkeys(
        name for task in tasks.values() for name in task["methods"] if not name.startswith(MEMBERS)
    )
    found: list[list[object]] = []
    for row, name in zip(rows, methods, strict=True):
        cells: list[object] = [row[0]]
        for task in tasks.values():
            score, width = (
                task["methods"][name]["score"],
                task["best_member_return"] - task["random"],
            )
            mean, low, high = (
                number(task["random"] + width * score[key]) for key in ("iqm", "low", "high")
            )
            cells.append(f"{mean} [{low}, {high}]")
        found.append(cells)
    return header, found


def data_rules(task: Mapping[str, Any]) -> list[str]:
    """The rules for the value of data that were tried on this task."""
    return [name for name in task["methods"] if name in RULES]


def ablation(
    tasks: Mapping[str, Any], summary: Mapping[str, Any]
) -> tuple[list[str], list[list[object]]]:
    """One row for each ablation, and one for each task that it changes."""
    shown = summary["recommended"], "ssbas", summary["chance"], "a random learner alone"
    originals = dict.fromkeys(name.partition("-")[0] for name in tasks)
    rows = {name: summary["tasks"][name] for name in originals if name in summary["tasks"]} | dict(
        tasks
    )
    header = [
        "",
        *(f"`{name}`" if " " not in name else name for name in shown),
        "best learner alone: its return",
    ]
    return header, [
        [
            name,
            *(interval(task["methods"].get(method, {}).get("score")) for method in shown),
            number(task["best_member_return"]),
        ]
        for name, task in sorted(rows.items(), key=lambda row: row[0].partition("-")[0])
    ]


def aggregate(summary: Mapping[str, Any]) -> tuple[list[str], list[list[object]]]:
    """Every method over all confirmatory tasks, the best first."""
    found = sorted(
        summary["aggregate"].items(), key=lambda pair: -(pair[1]["score"] or {"iqm": -1e9})["iqm"]
    )
    header = [
        "",
        "score",
        "final greedy score",
        f"probability that `{summary['recommended']}` is better",
    ]
    return header, [
        [
            name,
            interval(row["score"]),
            interval(row["final"]),
            interval(row["recommended_improves"]),
        ]
        for name, row in found
    ]


def partial(summary: Mapping[str, Any]) -> tuple[list[str], list[list[object]]]:
    """The methods that exist on some tasks only, and the recommended selector on the same tasks."""
    header = [
        "",
        "tasks",
        "score",
        f"`{summary['recommended']}`",
        "final greedy score",
        f"`{summary['recommended']}`",
    ]
    keys = "score", "recommended_score", "final", "recommended_final"
    return header, [
        [f"`{name}`", len(row["tasks"]), *(interval(row[key]) for key in keys)]
        for name, row in summary["partial"].items()
    ]


def interval(estimate: Mapping[str, float] | None) -> str | None:
    """Format an estimate and its interval."""
    if estimate is None:
        return None
    value = estimate["iqm" if "iqm" in estimate else "probability"]
    return f"{value:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


def scales(summary: Mapping[str, Any]) -> tuple[list[str], list[list[object]]]:
    """The returns that are 0 and 1, by task, and the comparison with chance."""
    header = [
        "task",
        "random actions",
        "best learner alone",
        "its mean return",
        "in its last fifth",
        "threshold",
        "counts",
    ]
    rows: list[list[object]] = []
    for name, task in summary["tasks"].items():
        if task["kind"] == "ablation":
            continue
        levels = (
            number(task[key])
            for key in ("best_member_return", "best_member_late_return", "threshold")
        )
        counts = "yes" if task["counts"] else "no"
        above = task["above_chance"]
        test = (
            None
            if above["adjusted_p"] is None
            else f"{above['difference']:+.2f}, p = {above['adjusted_p']:.2g}"
        )
        rows.append([name, number(task["random"]), task["best_member"], *levels, counts, test])
    return [*header, "above chance by, adjusted p"], rows


def number(value: float | None) -> str | None:
    """Format a return with about three digits."""
    if value is None:
        return None
    return (
        f"{value:.0f}"
        if abs(value) >= 100
        else f"{value:.1f}"
        if abs(value) >= 10
        else f"{value:.2f}"
    )


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
