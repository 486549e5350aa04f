"""The colors of all figures.

In the page, variables of report.css replace them, so that figures follow dark mode.
"""

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5d3a9b", "#6b6b6b")
"""The palette of Okabe and Ito, for the color-blind, without yellow: it is too light for lines."""
INK = "#1d2430"
QUIET = "#5b6675"
PAPER = "#ffffff"
GRID = "#e3e7ec"
MINOR_GRID = "#f1f3f6"
DARK_TEXT = "#1d2431"
LIGHT_TEXT = "#fefefe"
"""For texts on areas whose color is the same in both modes, such as a heat map: not replaced."""
SPOTS = "#808080"
"""For dots that are drawn as an image, whose color cannot be replaced: visible on both."""

_NAMES = {
    INK: "ink",
    QUIET: "quiet",
    PAPER: "paper",
    GRID: "grid",
    MINOR_GRID: "minor-grid",
    "#000000": "ink",
}
_SERIES = {color: f"series-{number}" for number, color in enumerate(COLORS, 1)}
VARIABLES = {color: f"var(--{name})" for color, name in (_NAMES | _SERIES).items()}
"""The variables of report.css by the color that they replace. Other colors stay as they are."""
