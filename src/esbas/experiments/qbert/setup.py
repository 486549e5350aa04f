"""What is compared: a selector over six DQNs and, if wanted, each of them alone."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium

from esbas.envs import atari
from esbas.errors import unknown
from esbas.experiments.qbert.profiles import NETWORKS, Network, Profile
from esbas.training import Recipe, Train, make_task, read_recipe
from esbas.training.config import file_name
from esbas.training.folder import PORTFOLIO, TrainingFolder

COPIES = 2  # initialisations of each network
MEMBERS = tuple(f"{network.name} {copy}" for network in NETWORKS for copy in range(1, COPIES + 1))
EVALUATED = 10  # episodes of each network's greedy policy at the end of a run
_OPTIONS = {
    **{name: name for name in ("rate", "gamma", "double", "n_step", "optimizer", "initialization", "batch", "sync_every")},
    "train_every": "update_every",
    "learning_starts": "replay_start",
}
"""Options of a DQN, and what they are called in a profile."""


def find_game(name: str) -> str:
    """The name of an Atari game as in its Gymnasium id: "Qbert" for "qbert", "Qbert-v5" and "ALE/Qbert-v5"."""
    games = {_letters(game): game for game in _games()}
    wanted = _letters(re.sub(r"^ALE/|-v\d+$", "", name, flags=re.IGNORECASE))
    if wanted not in games:
        raise unknown("Atari game", name, games.values(), "name one of ale-py's, such as Qbert, Breakout or SpaceInvaders")
    return games[wanted]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _games() -> list[str]:
    atari.register()
    return [found[1] for each in gymnasium.registry if (found := re.fullmatch(r"ALE/(\w+)-v5", each))]


@dataclass(frozen=True, kw_only=True)
class QbertSetup:
    """Everything that determines the results except the seeds."""

    profile: Profile
    game: str = "Qbert"
    selector: str = "ssbas"
    device: str | None = None

    @property
    def title(self) -> str:
        """The name of the selector in tables and figures."""
        return self.selector.upper() if self.selector.lower() in ("ssbas", "esbas") else self.selector

    def methods(self, *, alone: bool) -> dict[str, tuple[str, ...]]:
        """The networks of each method."""
        return {self.title: MEMBERS} | ({name: (name,) for name in MEMBERS} if alone else {})

    @property
    def task(self) -> str:
        return f"ALE/{self.game}-v5(frameskip=1, repeat_action_probability={self.profile.sticky!r})"

    @property
    def wrappers(self) -> tuple[str, ...]:
        profile = self.profile
        options = f"noop_max={profile.noop_max}, frame_skip={profile.action_repeat}, screen_size=84"
        preprocessing = f"AtariPreprocessing({options}, terminal_on_life_loss={profile.life_loss})"
        return preprocessing, f"FrameStackObservation(stack_size={profile.history})"

    def make_task(self, *, render_mode: str | None = None) -> Any:
        """The game as the networks play it."""
        return make_task(self.task, wrappers=self.wrappers, render_mode=render_mode)

    def recipe(self, members: tuple[str, ...] = MEMBERS) -> Recipe:
        """The portfolio with these networks."""
        profile = self.profile
        lines = ["[replay]", f"capacity = {profile.memory}", f"stack = {profile.history}"]
        lines += [f"clip_rewards = {_toml(profile.clip_rewards)}"]
        for name in members:
            lines += ["", "[[member]]", 'algorithm = "dqn"', f"name = {_toml(name)}"]
            lines += [f"{option} = {_toml(value)}" for option, value in self._options(name).items()]
        return read_recipe("\n".join(lines) + "\n", source="the portfolio of the experiment")

    def _options(self, name: str) -> dict[str, Any]:
        profile, network = self.profile, network_of(name)
        epsilon = [profile.epsilon_first, profile.epsilon_last, profile.epsilon_steps]
        shape = {"hidden": [network.hidden], "convolutions": [list(layer) for layer in network.convolutions]}
        same = {option: getattr(profile, own) for option, own in _OPTIONS.items()}
        return same | shape | {"corrected": False, "epsilon": epsilon, "overlap": True}

    def training(self, method: str, members: tuple[str, ...], folder: Path, **options: Any) -> TrainingFolder:
        """The training of one method, in a folder of its own, which all commands for trainings can open.

        Args:
            method: its name.
            members: its networks.
            folder: of the experiment.
            options: of `Train`: seeds, and those that do not affect the results.
        """
        config = Train(
            self.task,
            portfolio=Path(PORTFOLIO),  # in the folder of the training
            wrappers=self.wrappers,
            selector=self.selector if len(members) > 1 else f"fixed:{members[0]}",
            scale=self.profile.scale,
            steps=self.profile.steps,
            eval_episodes=EVALUATED,
            device=self.device or _gpu(),
            out=folder / method_folder(method),
            **options,
        )
        return TrainingFolder(config.folder, config, config.plan(self.recipe(members)))


def method_folder(method: str) -> str:
    """The name of a method's folder.

    >>> method_folder("small 1")
    'small-1'
    """
    return file_name(method)


def network_of(member: str) -> Network:
    """The shape of a member's network."""
    return next(network for network in NETWORKS if network.name == member.rpartition(" ")[0])


def _gpu() -> str | None:
    """The device of networks if there is a GPU; otherwise none is named, and they are on the CPU."""
    from esbas.learners.deep.pytorch import find_device

    found = find_device("auto").type
    return None if found == "cpu" else found


def _toml(value: object) -> str:
    return json.dumps(value)  # texts, numbers, lists and Booleans are written alike
