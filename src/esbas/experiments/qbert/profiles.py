"""Every hyperparameter: what the paper prints, how we read it, and the values for a laptop."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from esbas.errors import require, unknown

HEADER = "hyperparameter", "the paper prints", "profile paper", "profile laptop", "remark"
NOT_GIVEN = "–"


def _setting(title: str, printed: str = NOT_GIVEN, remark: str = "") -> Any:
    return field(metadata={"title": title, "printed": printed, "remark": remark})


@dataclass(frozen=True, kw_only=True)
class Network:
    """The shape of a Q-network."""

    name: str
    convolutions: tuple[tuple[int, int, int], ...]  # filters, kernel, stride
    hidden: int
    printed: str

    @property
    def text(self) -> str:
        """The layers, for tables."""
        layers = []
        for filters, kernel, stride in self.convolutions:
            layers.append(f"conv {kernel}x{kernel}/{stride}, {filters} filters")
        layers.append(f"dense {self.hidden}")
        return "; ".join(layers)


NETWORKS = (
    Network(
        name="small",
        convolutions=((16, 4, 2), (32, 4, 2)),
        hidden=128,
        printed="conv 4x4/2; conv 4x4/2; dense 128",
    ),
    Network(
        name="large",
        convolutions=((16, 8, 4), (32, 4, 2)),
        hidden=256,
        printed="conv 8x8/4; conv 4x4/2; dense 256",
    ),
    Network(
        name="huge",
        convolutions=((32, 8, 4), (64, 4, 2), (64, 3, 1)),
        hidden=512,
        printed="conv 8x8/4; conv 4x4/2; conv 3x3/1; dense 512",
    ),
)
_FILTERS = {
    "small": "filters as in Mnih et al. (2013)",
    "large": "filters as in Mnih et al. (2013)",
}
_FIXED = {
    "loss": "Huber: errors clipped to [-1, 1]",
    "norm of a gradient": "at most 10",
    "image": "84x84, gray",
}
"""Hyperparameters that are not options."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The hyperparameters of all networks.

    Steps are agent steps: one action each, whatever the action repeat.
    """

    steps: int = _setting(
        "length of a run [agent steps]",
        remark="paper: 200 million frames, as in Mnih et al. (2015), at 20 frames per action",
    )
    action_repeat: int = _setting("action repeat [frames]", "20", "usually 4")
    update_every: int = _setting("update frequency [agent steps per update]", "20", "usually 4")
    batch_size: int = _setting("minibatch size", "32")
    memory: int = _setting("replay memory size [frames]", "10⁶")
    replay_start: int = _setting(
        "replay start size [agent steps]",
        "5·10⁻⁴",
        "a misprint: read as 5·10⁴; nobody learns before",
    )
    history: int = _setting("agent history length [frames]", "4")
    target_every: int = _setting(
        "target network update [agent steps]",
        "5·10⁴",
        "no unit: read as agent steps, not as updates of the network",
    )
    gamma: float = _setting("discount factor", "0.99")
    learning_rate: float = _setting("learning rate", "2.5·10⁻⁴")
    optimizer: str = _setting("optimizer", "RMSprop, ρ = 0.95, ε = 10⁻⁷", "as printed")
    epsilon_first: float = _setting(
        "exploration ε, first", "5·t⁻¹·10⁻⁶", "a misprint: it is 0 for practical purposes"
    )
    epsilon_last: float = _setting("exploration ε, last", "", "0.1 as in Mnih et al. (2015)")
    epsilon_steps: int = _setting(
        "linear decay of ε over [agent steps]", "", "10⁶ as in Mnih et al. (2015)"
    )
    noop_max: int = _setting(
        "no-op max [frames]", "30", "idle frames at the start of an episode, drawn uniformly"
    )
    initialization: str = _setting("initial weights", "He uniform", "biases are 0")
    double: bool = _setting(
        "double Q-learning", remark="neither Mnih et al. (2013) nor (2015) have it"
    )
    n_steps: int = _setting(
        "rewards in a return (n-step)", remark="not corrected for the actions of others if over 1"
    )
    clip_rewards: bool = _setting(
        "rewards clipped to [-1, 1]",
        remark="as in Mnih et al. (2015); the networks learn from them, scores are the game's own",
    )
    life_loss: bool = _setting(
        "the loss of a life ends an episode",
        remark="an episode is a whole game, so a value is a score",
    )
    sticky: float = _setting(
        "probability of repeating the last action (sticky actions)", remark="introduced in 2018"
    )
    scale: str = _setting(
        "scale of the bandit",
        remark="auto: ξ = 1/4 times the spread of recent scores; the paper's is unknown",
    )

    def __post_init__(self) -> None:
        for name in ("steps", "action_repeat", "update_every"):
            value = getattr(self, name)
            require(value >= 1, f"`{name}` must be at least 1, but got {value!r}.")
        two_batches = 2 * self.batch_size
        require(
            self.memory >= two_batches,
            f"`memory` must be at least {two_batches}, two batches, but got {self.memory!r}.",
        )

    def with_options(
        self,
        *,
        steps: int | None,
        memory: int | None,
        action_repeat: int | None,
        update_every: int | None,
    ) -> "Profile":
        """Return the profile with the given values instead of its own.

        In runs of fewer steps than the profile's, all schedules shrink in proportion, so that
        learning and exploitation start.
        """
        given = {
            "steps": steps,
            "memory": memory,
            "action_repeat": action_repeat,
            "update_every": update_every,
        }
        changes: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None
        }
        changed = replace(self, **changes)
        share = min(1.0, changed.steps / self.steps)
        return replace(
            changed,
            replay_start=max(self.batch_size, round(share * self.replay_start)),
            target_every=max(changed.update_every, round(share * self.target_every)),
            epsilon_steps=max(1, round(share * self.epsilon_steps)),
        )

    @property
    def sync_every(self) -> int:
        """Updates between two copies of a network to its target network."""
        return max(1, round(self.target_every / self.update_every))


PAPER = Profile(
    steps=10_000_000,
    action_repeat=20,
    update_every=20,
    batch_size=32,
    memory=1_000_000,
    replay_start=50_000,
    history=4,
    target_every=50_000,
    gamma=0.99,
    learning_rate=2.5e-4,
    optimizer="rmsprop",
    epsilon_first=1.0,
    epsilon_last=0.1,
    epsilon_steps=1_000_000,
    noop_max=30,
    initialization="he_uniform",
    double=False,
    n_steps=1,
    clip_rewards=True,
    life_loss=False,
    sticky=0.0,
    scale="auto",
)
LAPTOP = replace(
    PAPER,
    steps=300_000,
    action_repeat=4,
    update_every=16,
    memory=100_000,
    replay_start=5_000,
    target_every=4_000,
    epsilon_last=0.02,
    epsilon_steps=40_000,
    n_steps=10,
)
PROFILES = {"laptop": LAPTOP, "paper": PAPER}


def find_profile(name: str) -> Profile:
    """Return the profile with this name."""
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES)
    return PROFILES[name]


def hyperparameters(used: Profile | None = None) -> tuple[Sequence[str], list[list[object]]]:
    """Return all values as a table, with a column for those of a run, if they are given."""
    header = list(HEADER)
    profiles = [PAPER, LAPTOP]
    if used is not None:
        header.insert(-1, "this run")
        profiles.append(used)
    rows: list[list[object]] = []
    for each in fields(Profile):
        texts = [_text(getattr(profile, each.name)) for profile in profiles]
        about = each.metadata
        rows.append([about["title"], about["printed"], *texts, about["remark"]])
    for network in NETWORKS:
        texts = [network.text] * len(profiles)
        remark = f"two of each; {_FILTERS.get(network.name, 'filters as in Mnih et al. (2015)')}"
        rows.append([f"network {network.name}", network.printed, *texts, remark])
    for title, value in _FIXED.items():
        texts = [value] * len(profiles)
        rows.append([title, NOT_GIVEN, *texts, ""])
    return header, rows


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
