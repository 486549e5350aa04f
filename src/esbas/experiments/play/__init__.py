"""`esbas play`: a person takes part in the negotiation dialogue, in the terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import esbas
from esbas import seeding
from esbas.envs import DialogueFeatures, NegotiationDialogue, negotiation_return, write_dialogues
from esbas.envs.dialogue.transcript import outcome, transcript
from esbas.errors import require
from esbas.experiments.play.person import PersonAsSystem, PersonAsUser, Quit, ask
from esbas.learner import Policy
from esbas.learners import LinearFQI, linear_constant

TRAINING = 1280  # dialogues: seven epochs of 20, 20, 40, ..., 640


@dataclass(frozen=True, kw_only=True)
class Play:
    """Negotiate with the machine: agree on one of four options that both players can afford, in few turns.

    The system does not always understand the user: three of ten proposals are taken for another one.
    """

    side: Literal["user", "system"] = "user"
    """Your side: the user, against a policy that is trained first (seconds), or the system, against the simulated user."""
    dialogues: int | None = None
    """How many; by default you are asked after each."""
    seed: int | None = None
    """The same seed gives the same costs and misunderstandings; by default other ones each time."""
    log: Path | None = None
    """A file to which the dialogues are added, one JSON object per line; esbas.envs.UserModel.fit can learn from it."""


def main(config: Play) -> None:
    """Play until the person has had enough."""
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if config.seed is None else config.seed
    require(config.dialogues is None or config.dialogues >= 1, "dialogues >= 1", dialogues=config.dialogues)
    writable = config.log is None or (config.log.parent.is_dir() and not config.log.is_dir())
    require(writable, "the log is a file in a folder that exists", log=str(config.log))
    as_user = config.side == "user"
    env = NegotiationDialogue(user=PersonAsUser() if as_user else None)
    policy: Policy = _trained(seed) if as_user else PersonAsSystem(env)
    number = 0
    try:
        while config.dialogues is None or number < config.dialogues:
            if config.dialogues is None and number > 0 and ask("\nAnother dialogue? (y, n)", ["y", "n"]) == "n":
                break
            number += 1
            print(f"\n--- Dialogue {number} ---")
            rng, env_seed = seeding.episode(seed, number)
            _play(env, policy, rng=rng, seed=env_seed)
            if config.log is not None:
                write_dialogues(config.log, [env.dialogue], append=True)
    except (Quit, KeyboardInterrupt):
        print()
    print("Good-bye.")


def _play(env: NegotiationDialogue, policy: Policy, *, rng: np.random.Generator, seed: int) -> None:
    trajectory = esbas.play(env, policy, rng=rng, seed=seed)
    value, acts = negotiation_return()(trajectory), len(trajectory)
    print(f"\nThe whole dialogue:\n{transcript(env.dialogue)}{outcome(env.dialogue)}")
    print(f"Reward {trajectory.rewards[-1]:.2f} after {acts} system acts: worth 0.9^{acts} of it, {value:.2f}.")


def _trained(seed: int) -> Policy:
    """A greedy policy, trained by fitted Q iteration with the simulated user."""
    learner = LinearFQI("simple-2", DialogueFeatures("simple-2"), actions=5, gamma=0.9)
    selector = esbas.ESBAS([learner.name], scale=None, epochs=[20, 20])
    print(f"The system trains on {TRAINING:,} dialogues with a simulated user ...", flush=True)
    run = esbas.run(NegotiationDialogue(), [learner], selector, episodes=TRAINING, objective=negotiation_return(), seed=seed)
    values = [record.value for record in run]
    learner.learn(run.data)
    assert learner.weights is not None  # it has learnt
    print(f"Trained: worth {np.mean(values[:20]):.2f} per dialogue at first, {np.mean(values[-TRAINING // 2 :]):.2f} in the end.")
    return linear_constant("trained", learner.features, learner.weights).policy()
