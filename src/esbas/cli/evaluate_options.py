"""The options of `esbas evaluate`. Reading them loads nothing that takes seconds."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Evaluate:
    """Play the best policy of a training without exploration, and show a table of its results.

    The best policy is the one that the training kept: it was the best in an evaluation, and scored
    again on fresh episodes.

    The command writes evaluation.json, evaluation.csv and, if the environment renders images,
    evaluation.gif into the folder. Other files do not change: an unfinished training can continue
    afterwards.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder that `esbas train` wrote."""
    _: KW_ONLY
    learner: str | None = None
    """The learner that plays, as it is in the last checkpoint; "all" for a table of all learners.
    Default: the best policy."""
    seed: int | None = None
    """The seed of the run from which the policy is taken. Default: that of the best policy; with
    --learner, that of the run with the best end."""
    episodes: int = 20
    """The number of episodes."""
    explore: bool = False
    """Explore as in training; the learner is then taken from the last checkpoint."""
    render: bool = False
    """Show all episodes in a window, or as text if the environment has no window."""
    video: Path | None = None
    """The GIF file for the first episode. Default: FOLDER/evaluation.gif, if the environment
    renders images."""
    eval_seed: int = 0
    """The seed of the episodes; they differ from those of the training."""
    offline: bool = False
    """Play nothing: estimate the values of all learners, or of --learner, from the trajectories
    that the training kept."""
    trust: bool = False
    """Import the modules that the folder names. They can run any code: docs/safety.md."""
