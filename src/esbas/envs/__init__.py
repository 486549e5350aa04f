"""The paper's tasks as Gymnasium environments, and wrappers for spaces with discrete parts."""

from esbas.envs.dialogue.features import DialogueFeatures
from esbas.envs.dialogue.log import Act, Dialogue, read_dialogues, write_dialogues
from esbas.envs.dialogue.negotiation import NegotiationDialogue, ScoreModel, negotiation_return
from esbas.envs.dialogue.transcript import transcript
from esbas.envs.dialogue.user import User, UserAct, UserModel, UserParameters
from esbas.envs.fruit_grid.environment import FruitGrid
from esbas.envs.fruit_grid.map import FruitMap
from esbas.envs.wrappers import DiscreteActions, DiscreteObservations

__all__ = [
    "Act",
    "Dialogue",
    "DialogueFeatures",
    "DiscreteActions",
    "DiscreteObservations",
    "FruitGrid",
    "FruitMap",
    "NegotiationDialogue",
    "ScoreModel",
    "User",
    "UserAct",
    "UserModel",
    "UserParameters",
    "negotiation_return",
    "read_dialogues",
    "transcript",
    "write_dialogues",
]
