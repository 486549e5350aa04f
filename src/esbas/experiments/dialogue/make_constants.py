"""Generate constants.json, the constant policies of the paper's table (a few minutes).

python -m esbas.experiments.dialogue.make_constants FILE
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from esbas.experiments.dialogue.constants import BATCHES, DIALOGUES, TOLERANCE, generate, wanted
from esbas.experiments.dialogue.sweep import chosen_rows


def main(path: Path) -> None:
    """Generate the policies, and write them with a description of how they were generated."""
    found = generate(wanted(chosen_rows(["all"]).values()), seed=0, candidates=200_000)
    policies = {}
    for mu, own in sorted(found.items()):
        policies[mu] = [asdict(policy) for policy in own]
    data = {
        "how": (
            "simple-2 learnt by fitted Q iteration from a batch of random dialogues, then greedy, "
            f"without learning; the mean return lies within {TOLERANCE} of its name, "
            f"measured on {DIALOGUES:,} other dialogues"
        ),
        "command": "python -m esbas.experiments.dialogue.make_constants FILE",
        "batches": BATCHES,
        "policies": policies,
    }
    path.write_text(json.dumps(data).replace('{"candidate"', '\n{"candidate"') + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
