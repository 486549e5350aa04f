"""Update docs/dialogue.md: `python docs/dialogue.py RESULTS`.

RESULTS is the results folder of `esbas reproduce dialogue`.
"""

import csv
import sys
from pathlib import Path
from typing import Any

from page import command, copy_figures, fill, read, table

EPOCHS = [20, *(20 * 2**k for k in range(11))]
COLORS = {"worse": "red", "better": "green", "as good": "neither"}


def main(results: Path) -> None:
    """Copy the figures, and replace the text between the marks in the page."""
    copy_figures(results, {"figure2": "dialogue-figure2", "table": "dialogue-table"})
    summary = read(results, "summary")
    if "shared_evidence" in summary:
        names = {
            "difference": "dialogue-shared-difference",
            "figure2-shared-evidence": "dialogue-shared-figure2",
        }
        copy_figures(results, names)
        fill("dialogue.md", {"shared evidence": shared_evidence(summary)})
    parts = {
        "command": command(results),
        "table": portfolios(summary),
        "agreement": agreement(summary),
        "canonical": canonical(summary),
        "by epoch": by_epoch(summary),
        "policies": policies(results),
    }
    fill("dialogue.md", parts)


def portfolios(summary: dict[str, Any]) -> str:
    """The paper's numbers and ours."""
    rows = []
    for name, row in summary["rows"].items():
        paper = row["paper"] or {"w_best": None, "w_worst": None}
        best = paper["w_best"], interval(row["w_best"]), COLORS[row["reading"]], row["agrees"]
        worst = paper["w_worst"], interval(row["w_worst"]), row["worst_agrees"]
        difference = [interval(row["difference"])] if "difference" in row else []
        rows.append([name, *best, *worst, row["best"], *difference])
    header = (
        "portfolio",
        "w. best: paper",
        "measured",
        "color",
        "agrees?",
        "w. worst: paper",
        "measured",
        "agrees?",
        "best alone",
        *(["ESBAS − shared evidence"] if "shared_evidence" in summary else []),
    )
    return table(header, rows)


def shared_evidence(summary: dict[str, Any]) -> str:
    """How shared evidence compares with ESBAS: a sentence, differences by epoch, and figures."""
    counts = summary["shared_evidence"]
    runs = next(iter(summary["rows"].values()))["difference"]["runs"]
    verdict = (
        f"Over {runs:,} paired runs, shared evidence is better than ESBAS in {counts['better']} "
        f"of {sum(counts.values())} rows and worse in {counts['worse']}; "
        f"the 95 % interval of the difference contains 0 in {counts['as good']}."
    )
    rows = []
    for name, row in summary["rows"].items():
        by_epoch = (f"{value:z.0f}" for value in row["difference_by_epoch"]["mean"])
        rows.append(
            [name, interval(row["difference"]), row["shared_evidence"]["reading"], *by_epoch]
        )
    differences = table(
        ["portfolio", "ESBAS − shared evidence", "reading", *(f"β={epoch}" for epoch in range(12))],
        rows,
    )
    figures = (
        "![Differences to ESBAS](figures/dialogue-shared-difference.png)\n\n"
        "![Figure 2 with shared evidence](figures/dialogue-shared-figure2.png)"
    )
    return f"{verdict}\n\n{differences}\n\n{figures}"


def agreement(summary: dict[str, Any]) -> str:
    """A sentence on how many rows agree."""
    verdicts = summary["agreement"]
    rows = summary["rows"].values()
    worst = {verdict: sum(row["worst_agrees"] == verdict for row in rows) for verdict in verdicts}
    runs = next(iter(rows))["w_best"]["runs"]
    return (
        f"Measured over {runs:,} runs. "
        f"*w. best*: {verdicts['yes']} of {sum(verdicts.values())} rows agree within the "
        f"interval of the difference, {verdicts['reading only']} more have the same color but a "
        f"different size, {verdicts['no']} have a different color. "
        f"*w. worst*: {worst['yes']} agree within the interval of the difference, "
        f"{worst['reading only']} more within a factor of two, {worst['no']} do not."
    )


def canonical(summary: dict[str, Any]) -> str:
    """Each algorithm alone."""
    rows = []
    for name, one in summary["canonical"].items():
        by_epoch = (f"{value:.3f}" for value in one["by_epoch"]["mean"])
        rows.append([name, interval(one["mean_return"], decimals=4), *by_epoch])
    return table(["algorithm", "mean return", *(f"β={epoch}" for epoch in range(12))], rows)


def by_epoch(summary: dict[str, Any]) -> str:
    """The regret by epoch of the rows that do not agree."""
    rows = []
    for name, row in summary["rows"].items():
        if row["agrees"] != "yes":
            regrets, choice = row["w_best_by_epoch"]["mean"], regret_of_choice(summary, name)
            parts = sum(regrets), choice, sum(regrets) - choice
            rows.append(
                [name, row["paper"]["w_best"], *(f"{number:z.0f}" for number in (*parts, *regrets))]
            )
    return table(
        [
            "portfolio",
            "paper",
            "measured",
            "choice",
            "rest",
            *(f"β={epoch}" for epoch in range(12)),
        ],
        rows,
    )


def regret_of_choice(summary: dict[str, Any], name: str) -> float:
    """The regret if each selected algorithm had the mean return that it has alone in that epoch."""
    row, canonical = summary["rows"][name], summary["canonical"]
    second = " (second)" if name.endswith("(second)") else ""
    alone = [
        canonical[one + second * one.startswith("constant")]["by_epoch"]["mean"]
        for one in row["algorithms"]
    ]
    best, regret = canonical[row["best"]]["by_epoch"]["mean"], 0.0
    for epoch, ratios in enumerate(row["selection_ratios"]):
        mixed = sum(ratio * one[epoch] for ratio, one in zip(ratios, alone, strict=True))
        regret += EPOCHS[epoch] * (best[epoch] - mixed)
    return regret


def policies(results: Path) -> str:
    """The smallest and the largest regret over the policies of each row with a constant."""
    by_row: dict[str, list[list[str]]] = {}
    with (results / "policies.csv").open(encoding="utf-8") as file:
        for row in list(csv.reader(file))[1:]:
            by_row.setdefault(row[0], []).append(row)
    rows = []
    for name, group in by_row.items():
        best, worst = (
            sorted((row[column] for row in group), key=lambda text: float(text.split()[0]))
            for column in (4, 5)
        )
        rows.append([name, len(group), best[0], best[-1], worst[0], worst[-1]])
    header = (
        "portfolio",
        "policies",
        "w. best: smallest",
        "w. best: largest",
        "w. worst: smallest",
        "w. worst: largest",
    )
    return table(header, rows)


def interval(estimate: dict[str, Any], *, decimals: int = 0) -> str:
    """Format an estimate, such as "-91 ± 11"."""
    mean, ci95 = (f"{estimate[key]:.{decimals}f}" for key in ("mean", "ci95"))
    return f"{mean} ± {ci95}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
