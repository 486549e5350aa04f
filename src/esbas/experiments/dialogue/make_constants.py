"""Makes constants.json, the constant policies that the paper's table needs (a few minutes).

python -m esbas.experiments.dialogue.make_constants FILE
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from esbas.experiments.dialogue import chosen_rows, wanted_constants
from esbas.experiments.dialogue.constants import BATCHES, DIALOGUES, TOLERANCE, generate


def main(path: Path) -> None:
    """Make the policies and store them with how they were made."""
    found = generate(wanted_constants(chosen_rows(["all"]).values()), seed=0, candidates=200_000)
    data = {
        "how": "simple-2 learnt by fitted Q iteration from a batch of random dialogues, then greedy, without learning; "
        f"the mean return lies within {TOLERANCE} of its name, measured on {DIALOGUES:,} other dialogues",
        "command": "python -m esbas.experiments.dialogue.make_constants FILE",
        "batches": BATCHES,
        "policies": {mu: [asdict(policy) for policy in policies] for mu, policies in sorted(found.items())},
    }
    path.write_text(json.dumps(data).replace('{"candidate"', '\n{"candidate"') + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
