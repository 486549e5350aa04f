"""Update docs/portfolios.md: `python docs/portfolios.py` copies the results of the benchmark."""

import sys
from pathlib import Path

from page import fill

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import portfolios


def parts() -> dict[str, str]:
    """Return the generated parts of the page."""
    verdicts = "\n".join(f"- {line}" for line in portfolios.verdicts())
    return {
        "portfolios": portfolios.table(),
        "verdict": verdicts,
        "aside": portfolios.table(aside=True),
    }


if __name__ == "__main__":
    fill("portfolios.md", parts())
