"""Ask and tell in somebody's own loop: several conversations at a time, a selector that survives a restart.

Run it with `python examples/ask_tell.py`.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import esbas

QUALITY = {"rules": 0.4, "model A": 0.5, "model B": 0.7}  # what the live system does not know


def new_selector() -> esbas.ESBAS:
    """Built the same way after every restart."""
    return esbas.ESBAS(arms=list(QUALITY), stationary=["rules"], seed=0)


def main() -> None:
    """Serve 2,000 conversations, eight at a time, and restart in between."""
    rng = np.random.default_rng(0)
    saved = Path(tempfile.mkdtemp()) / "selector.json"
    selector = new_selector()
    for batch in range(250):
        choices = [selector.ask() for _ in range(8)]  # eight conversations start
        for choice in reversed(choices):  # and end in another order
            selector.tell(choice, float(rng.random() < QUALITY[choice.arm]))
        saved.write_text(json.dumps(selector.state_dict()))
        if batch == 125:  # the process dies; a new one goes on
            selector = new_selector()
            selector.load_state_dict(json.loads(saved.read_text()))
    for arm, row in selector.explain().items():
        print(f"{arm:8s} selected {row['selections']:4d} times, mean {row['mean']:.2f}, index {row['index']:.2f}")


if __name__ == "__main__":
    main()
