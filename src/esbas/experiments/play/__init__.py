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
    """Negotiate with the machine: agree on one of four options at a low cost for both players, in few turns.

    The system misunderstands three of ten proposals of the user.
    """

    side: Literal["user", "system"] = "user"
    """Your side: the user, with a policy that is trained first (seconds), or the system, with a simulated user."""
    dialogues: int | None = None
    """Number of dialogues. By default you are asked after each dialogue."""
    seed: int | None = None
    """The same seed gives the same costs and misunderstandings. By default they differ each time."""
    log: Path | None = None
    """A file to which the dialogues are appended, one JSON object per line. esbas.envs.UserModel.fit can learn from it."""

    def run(self) -> None:
        """Play dialogues until the person quits."""
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if self.seed is None else self.seed
        require(seed >= 0, "seed >= 0", seed=seed)
        require(self.dialogues is None or self.dialogues >= 1, "dialogues >= 1", dialogues=self.dialogues)
        writable = self.log is None or (self.log.parent.is_dir() and not self.log.is_dir())
        require(writable, "the log is a file in a folder that exists", log=str(self.log))
        as_user = self.side == "user"
        env = NegotiationDialogue(user=PersonAsUser() if as_user else None)
        policy: Policy = _trained(seed) if as_user else PersonAsSystem(env)
        number = 0
        try:
            while self.dialogues is None or number < self.dialogues:
                if self.dialogues is None and number > 0 and ask("\nAnother dialogue? (y, n)", ["y", "n"]) == "n":
                    break
                number += 1
                print(f"\n--- Dialogue {number} ---")
                rng, env_seed = seeding.episode(seed, number)
                _play(env, policy, rng=rng, seed=env_seed)
                if self.log is not None:
                    write_dialogues(self.log, [env.dialogue], append=True)
        except (Quit, KeyboardInterrupt):
            print()
        print("Goodbye.")


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
