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
from esbas.training import Plan, Recipe, make_env, read_recipe
from esbas.training.config import TrainingConfig, file_name
from esbas.training.folder import PORTFOLIO, TrainingFolder

COPIES = 2  # initializations of each network
LEARNERS = tuple(f"{network.name} {copy}" for network in NETWORKS for copy in range(1, COPIES + 1))
EVALUATED = 10  # episodes of each network's greedy policy at the end of a run
_OPTIONS = {
    "learning_rate": "learning_rate",
    "gamma": "gamma",
    "double": "double",
    "n_steps": "n_steps",
    "optimizer": "optimizer",
    "initialization": "initialization",
    "batch_size": "batch_size",
    "sync_every": "sync_every",
    "train_freq": "update_every",
    "learning_starts": "replay_start",
}
"""Options of a DQN, and what they are called in a profile."""


def find_game(name: str) -> str:
    """Return the name of an Atari game as in its Gymnasium id.

    It is "Qbert" for "qbert", "Qbert-v5" and "ALE/Qbert-v5".
    """
    games = {_letters(game): game for game in _games()}
    wanted = _letters(re.sub(r"^ALE/|-v\d+$", "", name, flags=re.IGNORECASE))
    if wanted not in games:
        raise unknown(
            "Atari game",
            name,
            games.values(),
            "name one of ale-py's, such as Qbert, Breakout or SpaceInvaders",
        )
    return games[wanted]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _games() -> list[str]:
    atari.register()
    games = []
    for name in gymnasium.registry:
        found = re.fullmatch(r"ALE/(\w+)-v5", name)
        if found is not None:
            games.append(found[1])
    return games


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
        if self.selector.lower() in ("ssbas", "esbas"):
            return self.selector.upper()
        return self.selector

    def methods(self, *, alone: bool) -> dict[str, tuple[str, ...]]:
        """Return the networks of each method."""
        methods = {self.title: LEARNERS}
        if alone:
            for name in LEARNERS:
                methods[name] = (name,)
        return methods

    @property
    def env(self) -> str:
        """The environment as text, without its wrappers."""
        return f"ALE/{self.game}-v5(frameskip=1, repeat_action_probability={self.profile.sticky!r})"

    @property
    def wrappers(self) -> tuple[str, ...]:
        profile = self.profile
        options = f"noop_max={profile.noop_max}, frame_skip={profile.action_repeat}, screen_size=84"
        preprocessing = f"AtariPreprocessing({options}, terminal_on_life_loss={profile.life_loss})"
        return preprocessing, f"FrameStackObservation(stack_size={profile.history})"

    def make_env(self, *, render_mode: str | None = None) -> Any:
        """Return the game as the networks play it."""
        return make_env(self.env, wrappers=self.wrappers, render_mode=render_mode)

    def recipe(self, learners: tuple[str, ...] = LEARNERS) -> Recipe:
        """Return the portfolio with these networks."""
        profile = self.profile
        lines = [
            "[replay]",
            f"buffer_size = {profile.memory}",
            f"stack = {profile.history}",
            f"clip_rewards = {_toml(profile.clip_rewards)}",
        ]
        for name in learners:
            lines += ["", "[[learner]]", 'algorithm = "dqn"', f"name = {_toml(name)}"]
            for option, value in self._options(name).items():
                lines.append(f"{option} = {_toml(value)}")
        return read_recipe("\n".join(lines) + "\n", source="the portfolio of the experiment")

    def _options(self, name: str) -> dict[str, Any]:
        """Return the options of a network in the portfolio."""
        profile = self.profile
        network = network_of(name)
        options = {option: getattr(profile, own) for option, own in _OPTIONS.items()}
        options["hidden"] = [network.hidden]
        options["convolutions"] = [list(layer) for layer in network.convolutions]
        options["corrected"] = False
        options["epsilon"] = [profile.epsilon_first, profile.epsilon_last, profile.epsilon_steps]
        options["overlap"] = True
        return options

    def training(
        self, method: str, learners: tuple[str, ...], folder: Path, **options: Any
    ) -> TrainingFolder:
        """Return the training of one method.

        It has a separate folder, which all commands for trainings can open.

        Args:
            method: the name of the method.
            learners: the networks of the method.
            folder: the folder of the experiment.
            options: options of the training: seeds, and those that do not affect the results.
        """
        device = self.device or _gpu()
        config = TrainingConfig(
            self.env,
            portfolio=Path(PORTFOLIO),  # in the folder of the training
            wrappers=self.wrappers,
            selector=self.selector if len(learners) > 1 else f"fixed:{learners[0]}",
            scale=self.profile.scale,
            steps=self.profile.steps,
            eval_episodes=EVALUATED,
            device=device,
            out=folder / method_folder(method),
            **options,
        )
        recipe = self.recipe(learners)
        if device is not None:
            recipe = recipe.on_device(device)
        return TrainingFolder(config.folder, Plan(config, recipe))


def method_folder(method: str) -> str:
    """Return the name of a method's folder.

    >>> method_folder("small 1")
    'small-1'
    """
    return file_name(method)


def network_of(learner: str) -> Network:
    """Return the shape of a learner's network."""
    name, _, _ = learner.rpartition(" ")
    by_name = {network.name: network for network in NETWORKS}
    return by_name[name]


def _gpu() -> str | None:
    """Return the device of networks if there is a GPU; None stands for the CPU."""
    from esbas.learners.dqn.on_pytorch.pytorch import find_device

    found = find_device("auto").type
    return None if found == "cpu" else found


def _toml(value: object) -> str:
    return json.dumps(value)  # texts, numbers, lists and Booleans are written alike
