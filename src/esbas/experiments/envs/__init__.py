"""The paper's environments, and small ones with tables, as Gymnasium environments."""

from esbas.experiments.envs.dialogue.features import DialogueFeatures
from esbas.experiments.envs.dialogue.log import Act, Dialogue, read_dialogues, write_dialogues
from esbas.experiments.envs.dialogue.negotiation import (
    NegotiationDialogue,
    ScoreModel,
    negotiation_return,
)
from esbas.experiments.envs.dialogue.transcript import transcript
from esbas.experiments.envs.dialogue.user import User, UserAct, UserModel, UserParameters
from esbas.experiments.envs.fruit_grid.environment import FruitGrid
from esbas.experiments.envs.fruit_grid.map import FruitMap
from esbas.experiments.envs.tables.four_rooms import FourRooms
from esbas.experiments.envs.tables.inventory import Inventory
from esbas.experiments.envs.tables.river_swim import RiverSwim
from esbas.experiments.envs.tables.table_env import TableEnv, TableOutcome

__all__ = [
    "Act",
    "Dialogue",
    "DialogueFeatures",
    "FourRooms",
    "FruitGrid",
    "FruitMap",
    "Inventory",
    "NegotiationDialogue",
    "RiverSwim",
    "ScoreModel",
    "TableEnv",
    "TableOutcome",
    "User",
    "UserAct",
    "UserModel",
    "UserParameters",
    "negotiation_return",
    "read_dialogues",
    "transcript",
    "write_dialogues",
]
