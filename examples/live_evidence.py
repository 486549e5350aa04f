"""A live system that logs probabilities: shared evidence instead of ESBAS, in your own loop, and what it saves.

Customers chat with a bot, four questions each, ten chats at the same time. Four models answer, and rules that never change.
When an epoch starts, the models are fitted to all logged chats. Answers are drawn from the probabilities of the model in control.
For each answer, the system logs its probability under every model, and when the chat has ended it passes these numbers to `tell`.

Run it with `python examples/live_evidence.py [RUNS]`.
"""

import sys
from typing import Any

import numpy as np

import esbas
from esbas.columns import Array
from esbas.reporting import estimate

CHATS, OPEN, QUESTIONS = 5_000, 10, 4
TOPICS, MOODS, ANSWERS = 5, 4, 4
EPOCHS = [20, 20, 40]  # chats; then each epoch is twice as long


class Customers:
    """Whether an answer helps depends on the topic and the mood."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        topics, moods = self.rng.random((TOPICS, 1, ANSWERS)), self.rng.random((TOPICS, MOODS, ANSWERS))
        self.helps = (topics + moods) / 2  # (topic, mood, answer): probabilities

    def questions(self) -> list[tuple[int, int]]:
        return [(int(self.rng.integers(TOPICS)), int(self.rng.integers(MOODS))) for _ in range(QUESTIONS)]

    def helped(self, question: tuple[int, int], answer: int) -> bool:
        return bool(self.rng.random() < self.helps[question][answer])


class Log:
    """How often each answer was given and helped."""

    def __init__(self) -> None:
        self.given, self.helped = np.zeros((2, TOPICS, MOODS, ANSWERS))

    def add(self, question: tuple[int, int], answer: int, helped: bool) -> None:
        self.given[question][answer] += 1
        self.helped[question][answer] += helped


def fit(log: Log, *, moods: bool, boldness: float) -> Array:
    """(topic, mood, answer): probabilities. A model without moods sees less, but needs less data."""
    given, helped = (log.given, log.helped) if moods else (log.given.sum(1, keepdims=True), log.helped.sum(1, keepdims=True))
    weights = np.exp(boldness * (helped + 1) / (given + 2)).repeat(MOODS // given.shape[1], axis=1)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


MODELS: dict[str, dict[str, Any]] = {
    "topics": {"moods": False, "boldness": 8},
    "topics, bold": {"moods": False, "boldness": 16},
    "all": {"moods": True, "boldness": 8},
    "all, bold": {"moods": True, "boldness": 16},
}


def serve(selector: esbas.Selector, customers: Customers, *, seed: int, logging: bool = True) -> tuple[int, float]:
    """The number of chats that a model other than the best one of its epoch held, and the helpful answers that this cost."""
    rng, log, opened = np.random.default_rng(seed), Log(), list[esbas.Choice]()
    models = {"rules": rng.dirichlet(np.full(ANSWERS, 2.0), (TOPICS, MOODS))}
    losses = dict[str, float]()  # of helpful answers per chat, by model
    missed, lost = 0, 0.0
    for _ in range(CHATS):
        if (epoch := selector.claim_epoch()) is not None or not losses:  # one caller gets the epoch: retrain
            models |= {name: fit(log, **options) for name, options in MODELS.items()}
            helpful = {name: QUESTIONS * float((model * customers.helps).sum(axis=-1).mean()) for name, model in models.items()}
            losses = {name: max(helpful.values()) - each for name, each in helpful.items()}
        if epoch is not None:
            selector.epoch_ready(epoch)  # the new models are in place
        while len(opened) < OPEN:
            opened.append(selector.ask())
        choice = opened.pop(int(rng.integers(OPEN)))  # the next chat that ends
        missed += losses[choice.arm] > 0
        lost += losses[choice.arm]
        good, logged = 0, {name: list[float]() for name in models}
        for question in customers.questions():
            answer = int(rng.choice(ANSWERS, p=models[choice.arm][question]))
            helped = customers.helped(question, answer)
            log.add(question, answer, helped)
            good += helped
            for name, model in models.items():  # what the live system logs: the probability of this answer under every model
                logged[name].append(float(np.log(model[question][answer])))
        value = good / QUESTIONS
        evidence = esbas.Evidence.from_log_probs(logged, arm=choice.arm, value=value) if logging else None
        selector.tell(choice, value, evidence=evidence)
    return missed, lost


def main(runs: int = 3) -> None:
    """Serve the same customers with both selectors, and print means and 95 % intervals over runs."""
    variants = {"ESBAS": (esbas.ESBAS, True), "shared evidence": (esbas.SharedEvidence, True)}
    variants["not logged"] = (esbas.SharedEvidence, False)  # what is left of it without the probabilities
    results: dict[str, Array] = {}
    for name, (kind, logging) in variants.items():
        selectors = [kind(["rules", *MODELS], epochs=EPOCHS, stationary=["rules"], seed=seed) for seed in range(runs)]
        outcomes = [serve(each, Customers(seed), seed=seed, logging=logging) for seed, each in enumerate(selectors)]
        results[name] = np.array(outcomes)
    results["saved"] = results["ESBAS"] - results["shared evidence"]
    print(f"{CHATS:,} chats, {runs} runs: chats that the best model at that time did not hold, and helpful answers lost by that")
    for name, (missed, lost) in ((name, each.T) for name, each in results.items()):
        print(f"  {name:<16} {estimate(missed)} chats, {estimate(lost)} answers")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
