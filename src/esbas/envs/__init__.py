"""The paper's tasks and small ones as Gymnasium environments, and wrappers for spaces with discrete parts."""

from esbas.envs.dialogue.features import DialogueFeatures
from esbas.envs.dialogue.log import Act, Dialogue, read_dialogues, write_dialogues
from esbas.envs.dialogue.negotiation import NegotiationDialogue, ScoreModel, negotiation_return
from esbas.envs.dialogue.transcript import transcript
from esbas.envs.dialogue.user import User, UserAct, UserModel, UserParameters
from esbas.envs.fruit_grid.environment import FruitGrid
from esbas.envs.fruit_grid.map import FruitMap
from esbas.envs.tables.four_rooms import FourRooms
from esbas.envs.tables.inventory import Inventory
from esbas.envs.tables.river_swim import RiverSwim
from esbas.envs.tables.table_task import Outcome, TableTask
from esbas.envs.wrappers import DiscreteActions, DiscreteObservations

__all__ = [
    "Act",
    "Dialogue",
    "DialogueFeatures",
    "DiscreteActions",
    "DiscreteObservations",
    "FourRooms",
    "FruitGrid",
    "FruitMap",
    "Inventory",
    "NegotiationDialogue",
    "Outcome",
    "RiverSwim",
    "ScoreModel",
    "TableTask",
    "User",
    "UserAct",
    "UserModel",
    "UserParameters",
    "negotiation_return",
    "read_dialogues",
    "transcript",
    "write_dialogues",
]
