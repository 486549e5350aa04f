"""A person at the terminal, as either player."""

import sys
from collections.abc import Sequence

import numpy as np

from esbas.experiments.envs import NegotiationDialogue, UserAct
from esbas.experiments.envs.dialogue.log import SYSTEM, Act
from esbas.experiments.envs.dialogue.negotiation import (
    ASK_REPEAT,
    END_DIAL,
    REF_INSIST,
    REF_NEW_PROP,
    SYSTEM_ACCEPT,
    Floats,
)
from esbas.experiments.envs.dialogue.transcript import cost_line, letter, turn
from esbas.experiments.envs.dialogue.user import ACCEPT, HANG_UP, PROPOSE


class Quit(Exception):  # noqa: N818  # not an error
    """The person quits."""


def ask(question: str, answers: Sequence[str]) -> str:
    """Ask until the person types one of the answers, in upper or lower case.

    `q`, or the end of the input, quits.
    """
    while True:
        try:
            given = input(f"{question} > ").strip().lower()
        except EOFError:
            raise Quit from None
        if not sys.stdin.isatty():
            print(given)  # a terminal shows what is typed; the input of a script is shown here
        if given == "q":
            raise Quit
        if given in answers:
            return given
        print(f"Please type one of {', '.join(answers)}, or q to quit.")


class PersonAsUser:
    """A user (see `esbas.experiments.envs.User`) whose acts are typed."""

    def start(self, costs: Sequence[float]) -> None:
        self._options = [letter(option).lower() for option in range(len(costs))]
        self._spoken = False
        print(f"You are the user. Your costs: {cost_line(costs)}. The system has other costs.")

    def answer(self, proposal: int | None, rng: np.random.Generator) -> UserAct:
        del rng
        options = "/".join(self._options)
        if proposal is None:
            if self._spoken:
                print(turn(Act(SYSTEM, "ask_repeat")))
            given = ask(f"Propose an option ({options})", self._options)
        else:
            print(turn(Act(SYSTEM, "propose", proposal)))
            given = ask(
                f"Accept (y), propose an option ({options}) or hang up (h)",
                ["y", *self._options, "h"],
            )
        self._spoken = True
        if given in self._options:
            return UserAct(PROPOSE, self._options.index(given))
        return UserAct(ACCEPT if given == "y" else HANG_UP)


class PersonAsSystem:
    """A policy whose actions are typed."""

    def __init__(self, env: NegotiationDialogue) -> None:
        self.env = env  # to show what the system hears

    def act(self, observation: Floats, rng: np.random.Generator) -> int:
        del rng
        dialogue = self.env.dialogue
        order = np.argsort(self.env.system_costs)  # an observation has ranks, not options
        number, _, heard, proposed, following = observation[:5].tolist()
        if number == 1:
            assert dialogue.system_costs is not None  # an environment's dialogue has them
            costs = cost_line(dialogue.system_costs)
            print(f"You are the system. Your costs: {costs}. The user has other costs.")
        if dialogue.acts:
            print(turn(dialogue.acts[-1], SYSTEM))
        answers = {"r": ASK_REPEAT, "e": END_DIAL, "n": REF_NEW_PROP}
        words = [
            f"propose {letter(int(order[int(following)]))} (n)",
            "ask to repeat (r)",
            "end the dialogue (e)",
        ]
        if proposed >= 0:
            answers["i"] = REF_INSIST
            words.insert(0, f"insist on {letter(int(order[int(proposed)]))} (i)")
        if heard >= 0:
            answers["y"] = SYSTEM_ACCEPT
            words.insert(0, f"accept {letter(int(order[int(heard)]))} (y)")
        return answers[ask(", ".join(words), list(answers))]
