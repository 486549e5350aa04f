"""The paper's Q*bert (Section 5.2, Figure 6): SSBAS over six deep Q-networks on an Atari game.

docs/qbert.md describes the experiment, and what the paper leaves open.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from esbas.experiments.options import SweepOptions
from esbas.experiments.qbert.profiles import Profile, find_profile

if TYPE_CHECKING:  # PyTorch and what needs it are imported by `run`, so that the help is fast
    from esbas.experiments.qbert.setup import QbertSetup
    from esbas.training.folder import TrainingFolder

_NOT_DECISIVE = "estimate", "processes", "checkpoint_every", "tensorboard"


@dataclass(frozen=True, kw_only=True)
class Qbert(SweepOptions):
    """Reproduce Q*bert of Section 5.2: SSBAS chooses, game by game, which of six DQNs plays.

    All of them learn from every game. There are three networks (small, large, huge), each with two
    initializations, and one replay memory. The profile laptop learns something visible in under an
    hour on two cores; the profile paper has the paper's values, and needs days. What it would take
    here: esbas reproduce qbert --profile paper --estimate. A first look, in minutes: esbas
    reproduce qbert --steps 20000.
    """

    command: ClassVar[str] = "esbas reproduce qbert"

    profile: Literal["laptop", "paper"] = "laptop"
    """All hyperparameters: laptop, or paper. docs/qbert.md lists both."""
    steps: int | None = None
    """Agent steps of each run, with one action each. Schedules shrink in proportion if they are
    fewer than the profile's. Default: that of the profile (laptop: 300,000, paper: 10,000,000)."""
    game: str = "Qbert"
    """The Atari game: any of ale-py's, such as Breakout or ALE/Breakout-v5."""
    selector: str = "ssbas"
    """How networks are chosen, as in esbas train: ssbas, esbas, uniform, "ssbas(xi=1)", any of
    esbas bandits, or module:Class."""
    alone: bool = False
    """Also train each of the six networks by itself, from its own games alone: six more runs, each
    of which updates one network. It can be added to finished results."""
    memory: int | None = None
    """Frames in the replay memory, 7 KB each. Default: that of the profile (laptop: 100,000, paper:
    1,000,000)."""
    action_repeat: int | None = None
    """Frames per action. Default: that of the profile (laptop: 4, paper: 20 as printed)."""
    update_every: int | None = None
    """Agent steps per update of each network. Default: that of the profile (laptop: 16, paper: 20
    as printed)."""
    runs: int = 1
    """Independent runs of each method, with the seeds SEED, SEED + 1, ... The paper has one.
    Several give bands and intervals."""
    device: str | None = None
    """Where networks are trained: cpu, cuda or mps. Default: cuda if there is a GPU, otherwise
    cpu."""
    processes: int | None = None
    """Processes that train the networks of a run beside the acting. The results do not depend on
    it. Default: the number of usable cores divided by the number of runs at the same time."""
    jobs: int = 1
    """Runs of a method that execute at the same time. The results do not depend on it. One run uses
    all processes."""
    checkpoint_every: float = 180.0
    """Seconds between two checkpoints. After a kill, the same command continues from the last one,
    with the same results."""
    tensorboard: bool = True
    """Write TensorBoard logs into OUT/METHOD/runs/seed-N/tensorboard, if TensorBoard is
    installed."""
    estimate: bool = False
    """Only measure the speed of this machine, for some seconds, and print what the profile would
    take: time, memory, disk. Default folder: ./esbas-qbert-estimate."""

    @cached_property
    def values(self) -> Profile:
        """The profile with the given options."""
        return find_profile(self.profile).with_options(
            steps=self.steps,
            memory=self.memory,
            action_repeat=self.action_repeat,
            update_every=self.update_every,
        )

    @cached_property
    def setup(self) -> "QbertSetup":
        """What is compared."""
        from esbas.experiments.qbert.setup import QbertSetup, find_game

        return QbertSetup(
            profile=self.values,
            game=find_game(self.game),
            selector=self.selector,
            device=self.device,
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.runs))

    def check(self) -> None:
        super().check()
        self.setup  # noqa: B018  # raises an error if the profile or the game is invalid

    def settings(self) -> dict[str, object]:
        settings = super().settings()
        for name in _NOT_DECISIVE:
            settings.pop(name, None)
        for name in ("steps", "memory", "action_repeat", "update_every"):
            settings[name] = getattr(self.values, name)
        settings["game"] = self.setup.game
        settings["alone"] = self.alone or None
        return settings

    def trainings(self, folder: Path) -> "dict[str, TrainingFolder]":
        """Return the training of each method, each in its own folder."""
        options: dict[str, Any] = {
            "seeds": self.seeds,
            "jobs": self.jobs,
            "engine": self.engine,
            "processes": self.processes,
            "resources": self.resources,
            "checkpoint_every": self.checkpoint_every,
            "tensorboard": self.tensorboard,
        }
        trainings = {}
        for name, learners in self.setup.methods(alone=self.alone).items():
            trainings[name] = self.setup.training(name, learners, folder, **options)
        return trainings

    def run(self) -> None:
        from esbas.experiments.qbert import cost, report, sweep

        if self.estimate:
            cost.publish(self)
            return
        results = sweep.open_results(self)
        random = sweep.run_sweep(self, results)
        report.publish(results, self, random)


EXPERIMENT = Qbert
