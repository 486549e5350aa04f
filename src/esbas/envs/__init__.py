"""The paper's tasks as Gymnasium environments."""

from esbas.envs.dialogue_log import Act, Dialogue, read_dialogues, write_dialogues
from esbas.envs.dialogue_transcript import transcript
from esbas.envs.dialogue_user import User, UserAct, UserModel, UserParameters
from esbas.envs.fruit_grid import FruitGrid
from esbas.envs.fruit_map import FruitMap
from esbas.envs.negotiation import NegotiationDialogue, ScoreModel, negotiation_return

__all__ = [
    "Act",
    "Dialogue",
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
