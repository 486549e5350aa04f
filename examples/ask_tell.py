"""Ask and tell in your own loop, with open conversations, retraining by epochs, and a restart.

Run it with `python examples/ask_tell.py`.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import esbas

CONVERSATIONS = 2_000
OPEN = 8  # conversations at the same time
RULES_SUCCESS = 0.3  # the success rate of the arm that never learns


class Model:
    """Stands for a dialogue model: its success rate grows with the conversations it is trained on.

    Args:
        best: the limit of the success rate.
        half: the number of conversations after which half of this limit is reached.
    """

    def __init__(self, best: float, half: float) -> None:
        self.best = best
        self.half = half
        self.success = 0.0

    def train(self, conversations: int) -> None:
        self.success = self.best * conversations / (conversations + self.half)


def new_selector() -> esbas.ESBAS:
    """Create the selector, in the same way at every start of the program."""
    return esbas.ESBAS(arms=["rules", "small model", "large model"], stationary=["rules"], seed=0)


def retrain(selector: esbas.ESBAS, models: dict[str, Model], finished: int) -> None:
    """Retrain the models if an epoch is due.

    Only one caller gets the epoch, also if several threads or servers ask.
    """
    # If an error leaves the block, the epoch can be claimed again.
    with selector.retraining() as epoch:
        if epoch is None:
            # Nothing is due, or another caller is retraining: continue with the current models.
            return
        for model in models.values():
            model.train(finished)
    print(f"epoch {epoch:2d} starts after {finished:4d} conversations")


def main() -> None:
    """Serve 2,000 conversations, eight at the same time, and restart once."""
    rng = np.random.default_rng(0)
    models = {"small model": Model(0.5, half=20), "large model": Model(0.8, half=200)}
    selector = new_selector()
    opened: list[esbas.Choice] = []
    finished = 0
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "selector.json"
        while finished < CONVERSATIONS:
            retrain(selector, models, finished)
            while len(opened) < OPEN:
                opened.append(selector.ask())  # a conversation starts
            choice = opened.pop(int(rng.integers(len(opened))))  # one of them ends, in any order
            success = models[choice.arm].success if choice.arm in models else RULES_SUCCESS
            selector.tell(choice, float(rng.random() < success))
            finished += 1
            if finished == CONVERSATIONS // 2:
                # The program ends, and a new one continues with the open choices.
                saved.write_text(json.dumps(selector.state_dict()))
                selector = new_selector()
                selector.load_state_dict(json.loads(saved.read_text()))
    for choice in opened:
        selector.withdraw(choice)  # no value: the user left
    for arm, row in selector.explain().items():
        print(
            f"{arm:12s} chosen {row['selections']:4.0f} times, "
            f"late values {row['late']:2.0f}, mean {row['mean']:.2f}"
        )


if __name__ == "__main__":
    main()
