"""A live system that logs probabilities: what shared evidence saves, compared with ESBAS.

Customers chat with a bot, four questions each, ten chats at the same time. Four models answer, and
rules that never change. When an epoch starts, the models are fitted to all logged chats. Answers
are drawn from the probabilities of the model in control. For each answer, the system logs its
probability under every model, and when the chat has ended it passes these numbers to `tell`.

Run it with `python examples/live_evidence.py [RUNS]`.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.reporting import estimate

Array = NDArray[np.float64]

CHATS = 5_000
OPEN = 10
QUESTIONS = 4
TOPICS = 5
MOODS = 4
ANSWERS = 4
EPOCHS = [20, 20, 40]  # chats; then each epoch is twice as long


class Customers:
    """Customers ask questions. Whether an answer helps depends on the topic and the mood."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        topics = self.rng.random((TOPICS, 1, ANSWERS))
        moods = self.rng.random((TOPICS, MOODS, ANSWERS))
        self.helps = (topics + moods) / 2  # (topic, mood, answer): probabilities

    def questions(self) -> list[tuple[int, int]]:
        """Draw the topics and moods of the questions of a chat."""
        drawn = []
        for _ in range(QUESTIONS):
            topic = int(self.rng.integers(TOPICS))
            mood = int(self.rng.integers(MOODS))
            drawn.append((topic, mood))
        return drawn

    def helped(self, question: tuple[int, int], answer: int) -> bool:
        return bool(self.rng.random() < self.helps[question][answer])


class Log:
    """How often each answer was given and helped."""

    def __init__(self) -> None:
        self.given = np.zeros((TOPICS, MOODS, ANSWERS))
        self.helped = np.zeros((TOPICS, MOODS, ANSWERS))

    def add(self, question: tuple[int, int], answer: int, helped: bool) -> None:
        self.given[question][answer] += 1
        self.helped[question][answer] += helped


def fit(log: Log, *, moods: bool, boldness: float) -> Array:
    """Fit a model to the log. A model without moods sees less, but needs less data.

    Returns:
        The probabilities of the answers, (topic, mood, answer).
    """
    given = log.given
    helped = log.helped
    if not moods:
        given = given.sum(axis=1, keepdims=True).repeat(MOODS, axis=1)
        helped = helped.sum(axis=1, keepdims=True).repeat(MOODS, axis=1)
    weights = np.exp(boldness * (helped + 1) / (given + 2))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


MODELS: dict[str, dict[str, Any]] = {
    "topics": {"moods": False, "boldness": 8},
    "topics, bold": {"moods": False, "boldness": 16},
    "all": {"moods": True, "boldness": 8},
    "all, bold": {"moods": True, "boldness": 16},
}


def serve(
    selector: esbas.Selector, customers: Customers, *, seed: int, logging: bool = True
) -> tuple[int, float]:
    """Serve all chats.

    Returns:
        The number of chats that were not held by the best model of their epoch, and the helpful
        answers that were lost by that.
    """
    rng = np.random.default_rng(seed)
    log = Log()
    opened: list[esbas.Choice] = []
    models = {"rules": rng.dirichlet(np.full(ANSWERS, 2.0), (TOPICS, MOODS))}
    losses: dict[str, float] = {}  # helpful answers per chat less than the best model, by model
    missed = 0
    lost = 0.0
    for _ in range(CHATS):
        epoch = selector.claim_epoch()
        if epoch is not None or not losses:
            for name, options in MODELS.items():
                models[name] = fit(log, **options)
            losses = expected_losses(models, customers)
        if epoch is not None:
            selector.epoch_ready(epoch)  # the new models can be used
        while len(opened) < OPEN:
            opened.append(selector.ask())
        choice = opened.pop(int(rng.integers(OPEN)))  # the next chat that ends
        missed += losses[choice.arm] > 0
        lost += losses[choice.arm]
        good = 0
        logged: dict[str, list[float]] = {name: [] for name in models}
        for question in customers.questions():
            answer = int(rng.choice(ANSWERS, p=models[choice.arm][question]))
            helped = customers.helped(question, answer)
            log.add(question, answer, helped)
            good += helped
            # The live system logs the probability of this answer under every model.
            for name, model in models.items():
                logged[name].append(float(np.log(model[question][answer])))
        value = good / QUESTIONS
        evidence = None
        if logging:
            evidence = esbas.Evidence.from_log_probs(logged, arm=choice.arm, value=value)
        selector.tell(choice, value, evidence=evidence)
    return missed, lost


def expected_losses(models: dict[str, Array], customers: Customers) -> dict[str, float]:
    """Return how many helpful answers per chat each model gives less than the best one."""
    helpful = {}
    for name, model in models.items():
        helpful[name] = QUESTIONS * float((model * customers.helps).sum(axis=-1).mean())
    best = max(helpful.values())
    return {name: best - answers for name, answers in helpful.items()}


def main(runs: int = 3) -> None:
    """Serve the same customers with both selectors, and print means and 95 % intervals."""
    variants = {
        "ESBAS": (esbas.ESBAS, True),
        "shared evidence": (esbas.SharedEvidence, True),
        "not logged": (esbas.SharedEvidence, False),  # the same without the probabilities
    }
    results: dict[str, Array] = {}  # (run, 2) each
    for name, (kind, logging) in variants.items():
        outcomes = []
        for seed in range(runs):
            selector = kind(["rules", *MODELS], epochs=EPOCHS, stationary=["rules"], seed=seed)
            outcomes.append(serve(selector, Customers(seed), seed=seed, logging=logging))
        results[name] = np.array(outcomes)
    results["saved"] = results["ESBAS"] - results["shared evidence"]
    print(
        f"{CHATS:,} chats, {runs} runs: chats that the best model at that time did not hold, "
        "and helpful answers lost by that"
    )
    for name, outcome in results.items():
        missed = estimate(outcome[:, 0])
        lost = estimate(outcome[:, 1])
        print(f"  {name:<16} {missed} chats, {lost} answers")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
