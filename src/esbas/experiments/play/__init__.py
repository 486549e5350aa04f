"""`esbas play`: a person takes part in the negotiation dialogue, in the terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import esbas
from esbas import seeding
from esbas.errors import require
from esbas.experiments.envs import (
    DialogueFeatures,
    NegotiationDialogue,
    negotiation_return,
    write_dialogues,
)
from esbas.experiments.envs.dialogue.transcript import outcome, transcript
from esbas.experiments.play.person import PersonAsSystem, PersonAsUser, Quit, ask
from esbas.learner import Policy
from esbas.learners import LinearFQI, linear_constant

TRAINING = 1280  # dialogues: seven epochs of 20, 20, 40, ..., 640


@dataclass(frozen=True, kw_only=True)
class Play:
    """Negotiate with the machine: agree on one of four options at a low cost, in few turns.

    The costs of both players count. The system misunderstands three of ten proposals of the user.
    """

    side: Literal["user", "system"] = "user"
    """Your side: the user, with a policy that is trained first (seconds), or the system, with a
    simulated user."""
    dialogues: int | None = None
    """Number of dialogues. By default you are asked after each dialogue."""
    seed: int | None = None
    """The same seed gives the same costs and misunderstandings. By default they differ each
    time."""
    log: Path | None = None
    """A file to which the dialogues are appended, one JSON object per line. `UserModel.fit` can
    learn from it."""

    def run(self) -> None:
        """Play dialogues until the person quits."""
        self._check()
        seed = self.seed
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if self.side == "user":
            env = NegotiationDialogue(user=PersonAsUser())
            policy: Policy = _trained(seed)
        else:
            env = NegotiationDialogue()
            policy = PersonAsSystem(env)
        number = 0
        try:
            while self._continues(number):
                number += 1
                print(f"\n--- Dialogue {number} ---")
                rng, env_seed = seeding.episode(seed, number)
                _play(env, policy, rng=rng, seed=env_seed)
                if self.log is not None:
                    write_dialogues(self.log, [env.dialogue], append=True)
        except (Quit, KeyboardInterrupt):
            print()
        print("Goodbye.")

    def _check(self) -> None:
        if self.seed is not None:
            require(self.seed >= 0, f"`seed` must be at least 0, but got {self.seed!r}.")
        if self.dialogues is not None:
            require(
                self.dialogues >= 1, f"`dialogues` must be at least 1, but got {self.dialogues!r}."
            )
        if self.log is not None:
            require(
                self.log.parent.is_dir() and not self.log.is_dir(),
                f"`log` must be a file in a folder that exists, but got {str(self.log)!r}.",
            )

    def _continues(self, number: int) -> bool:
        """Return whether another dialogue follows the first `number` ones."""
        if self.dialogues is not None:
            return number < self.dialogues
        return number == 0 or ask("\nAnother dialogue? (y, n)", ["y", "n"]) == "y"


def _play(env: NegotiationDialogue, policy: Policy, *, rng: np.random.Generator, seed: int) -> None:
    trajectory = esbas.play(env, policy, rng=rng, seed=seed)
    value = negotiation_return()(trajectory)
    acts = len(trajectory)
    print(f"\nThe whole dialogue:\n{transcript(env.dialogue)}{outcome(env.dialogue)}")
    reward = trajectory.rewards[-1]
    print(f"Reward {reward:.2f} after {acts} system acts: worth 0.9^{acts} of it, {value:.2f}.")


def _trained(seed: int) -> Policy:
    """Train a policy by fitted Q iteration with the simulated user, and return it greedy."""
    learner = LinearFQI("simple-2", DialogueFeatures("simple-2"), actions=5, gamma=0.9)
    selector = esbas.ESBAS([learner.name], scale=None, epochs=[20, 20])
    print(f"The system trains on {TRAINING:,} dialogues with a simulated user ...", flush=True)
    run = esbas.run(
        NegotiationDialogue(),
        [learner],
        selector,
        episodes=TRAINING,
        objective=negotiation_return(),
        seed=seed,
    )
    values = [record.value for record in run]
    learner.learn(run.data)
    assert learner.weights is not None  # it has learnt
    first = np.mean(values[:20])
    last = np.mean(values[-TRAINING // 2 :])
    print(f"Trained: worth {first:.2f} per dialogue at first, {last:.2f} in the end.")
    return linear_constant("trained", learner.features, learner.weights).policy()
