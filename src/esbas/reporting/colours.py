"""The colours of all figures. In the page, variables of report.css replace them, so that figures follow dark mode."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5d3a9b", "#6b6b6b")
"""The palette of Okabe and Ito, which suits the colour-blind, without yellow, which is too light for lines."""
INK, QUIET, PAPER = "#1d2430", "#5b6675", "#ffffff"
GRID, MINOR_GRID = "#e3e7ec", "#f1f3f6"
DARK_TEXT, LIGHT_TEXT = "#1d2431", "#fefefe"
"""For texts on areas whose colour is the same in both modes, such as those of a heat map: they are not replaced."""
SPOTS = "#808080"
"""For dots that are drawn as an image, and so cannot be replaced: visible on white and on black."""

_NAMES = {INK: "ink", QUIET: "quiet", PAPER: "paper", GRID: "grid", MINOR_GRID: "minor-grid", "#000000": "ink"}
VARIABLES = {colour: f"var(--{name})" for colour, name in _NAMES.items()} | {
    colour: f"var(--series-{number})" for number, colour in enumerate(COLOURS, 1)
}
"""The variables of report.css by the colour that they replace. Other colours stay as they are."""
