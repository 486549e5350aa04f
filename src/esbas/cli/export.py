"""`esbas export FOLDER`: writes a policy of a training for use without esbas."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.errors import require
from esbas.files import write_atomically
from esbas.reporting.terminal import print_text
from esbas.training.folder import open_without_task
from esbas.training.policies.exporting import export
from esbas.training.policies.layers import read_layers
from esbas.training.policies.loaded import stored_policy


@dataclass(frozen=True)
class Export:
    """Write the best policy of a training for use without esbas.

    Members of Stable-Baselines3 become a .zip that their own `load` reads. DQNs, tables and linear values become an .npz with
    arrays and a description as JSON: docs/policies.md.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder that `esbas train` wrote."""
    _: KW_ONLY
    member: str | None = None
    """The learner, as it is in the last checkpoint. Default: the best policy."""
    seed: int | None = None
    """The run from which the policy is taken. Default: that of the best policy; for --member, the run with the best end."""
    out: Path | None = None
    """The file. Default: FOLDER/policy.zip or FOLDER/policy.npz."""
    trust: bool = False
    """Import the modules that the folder names. Imported modules can run any code: docs/safety.md."""


def main(config: Export) -> None:
    """Run `esbas export` with these options."""
    training = open_without_task(config.folder, trust=config.trust)
    stored, layers = stored_policy(training, member=config.member, seed=config.seed), read_layers(config.folder, training.plan)
    spaces = {"observation_space": layers[-1].observation_space, "action_space": layers[-1].action_space}
    exported = export(stored.build(training.plan, **spaces, isolate=False), stored, layers)
    path = config.out or config.folder / f"policy{exported.suffix}"
    fits = path.suffix == exported.suffix and path.parent.is_dir()
    require(fits, f"the file is a {exported.suffix} in a folder that exists", out=str(path))
    write_atomically(path, exported.content)
    about = f"{stored.learner}, seed {stored.seed}, after {stored.steps:,} steps"
    print_text(f"Wrote {path}: {about}. To use it: {exported.usage.replace('FILE', repr(str(path)))}")
