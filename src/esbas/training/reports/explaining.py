"""What the learners of a portfolio are, in a sentence each.

Names such as "DQN rate 0.001, corrected" are short; a reader of a report may not know the options
behind them.
"""

from collections.abc import Mapping
from typing import Any

from esbas.learners.naming import in_words
from esbas.specs.portfolios.given import MadeLearner
from esbas.specs.portfolios.learner_tables import LearnerSpec

ALGORITHMS = {
    "dqn": "a deep Q-network",
    "tabular_q": "Q-learning with a table",
    "double_q": "double Q-learning: two tables, each of which evaluates the choices of the other",
    "q_lambda": "Watkins's Q(λ): Q-learning with a table; rewards also reach earlier steps",
    "expected_sarsa": "a table with the values of its own policy, exploration included",
    "bonus_q": "Q-learning with a table and a bonus for rare observations",
    "prioritized_sweeping": "a table with a model: it counts what follows, and plans by that",
    "r_max": "R-max: a table with a model, which goes where it has not been",
    "fqi": "fitted Q iteration: a regression on all episodes so far",
    "random": "random actions; it learns nothing",
    "persistent_random": "random actions, each of them repeated; it learns nothing",
    "sb3.dqn": "the deep Q-network of Stable-Baselines3",
    "sb3.qrdqn": "a deep Q-network that learns quantiles of returns (Stable-Baselines3)",
    "sb3.sac": "soft actor-critic (Stable-Baselines3)",
    "sb3.td3": "twin delayed DDPG (Stable-Baselines3)",
    "sb3.ddpg": "deep deterministic policy gradient (Stable-Baselines3)",
    "sb3.tqc": "truncated quantile critics: soft actor-critic with quantiles (Stable-Baselines3)",
}


def explained(spec: LearnerSpec | MadeLearner) -> str:
    """Describe a learner by its algorithm and the options that its name is about.

    "a deep Q-network, learning rate 0.001; n-step returns are corrected for ... (Retrace)."
    """
    text = ALGORITHMS.get(spec.algorithm, spec.algorithm)
    if "learning_rate" in spec.options:
        text += f", learning rate {in_words(spec.options['learning_rate'])}"
    others = _returns(spec) + _networks(spec.options) + _first_values(spec.options)
    others += _exploration(spec.options) + _repetitions(spec) + _bonus(spec.options)
    return "; ".join([text, *others]) + "."


def _returns(spec: LearnerSpec | MadeLearner) -> list[str]:
    """Explain "corrected" and "uncorrected"."""
    if spec.algorithm != "dqn" or "corrected" not in spec.options:
        return []
    steps = spec.options.get("n_steps")
    if spec.options["corrected"]:
        upto = "" if steps is None else f" (n up to {in_words(steps)})"
        about = "are corrected for the actions of other learners (Retrace)"
        return [f"corrected: n-step returns{upto} {about}"]
    count = "" if steps is None else f" (n = {in_words(steps)})"
    about = "are used as they are, also where other learners acted: faster, but biased"
    return [f"uncorrected: n-step returns{count} {about}"]


def _exploration(options: Mapping[str, Any]) -> list[str]:
    """Say how much it explores, which often makes the difference between learners."""
    epsilon = options.get("epsilon")
    if isinstance(epsilon, list | tuple):
        first, last, steps = epsilon
        later = f"{100 * last:.3g} % after {steps:,} steps"
        return [f"{100 * first:.3g} % of its actions are random at first, {later}"]
    if isinstance(epsilon, float):
        return [f"{100 * epsilon:.3g} % of its actions are random"]
    return []


def _repetitions(spec: LearnerSpec | MadeLearner) -> list[str]:
    """Explain "ez-greedy"."""
    zeta = spec.options.get("zeta")
    if zeta is None:
        return []
    text = f"random actions are taken n times in a row, n with probability ∝ n^-{in_words(zeta)}"
    if spec.algorithm == "persistent_random":  # which does nothing else
        return [text]
    return [f"ez-greedy: {text}"]


def _bonus(options: Mapping[str, Any]) -> list[str]:
    """Explain "bonus"."""
    if not options.get("bonus"):
        return []
    factor = in_words(options["bonus"])
    return [f"bonus: {factor} / sqrt(visits of the next observation) is added to rewards"]


def _networks(options: Mapping[str, Any]) -> list[str]:
    """Describe the layers, which names such as "small" are about."""
    parts = []
    if options.get("convolutions"):
        filters = ", ".join(in_words(layer[0]) for layer in options["convolutions"])
        parts.append(f"convolutions with {filters} filters")
    if options.get("hidden"):
        units = ", ".join(in_words(width) for width in options["hidden"])
        parts.append(f"dense layers of {units} units")
    return [" and ".join(parts)] if parts else []


def _first_values(options: Mapping[str, Any]) -> list[str]:
    """Explain "optimistic"."""
    if not options.get("initial"):
        return []
    value = in_words(options["initial"])
    return [f"all values begin at {value}, so that untried actions are tried first"]
