"""`esbas export FOLDER`: writes a policy of a training for use without esbas."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Export:
    """Write the best policy of a training for use without esbas.

    Models of Stable-Baselines3 become a .zip that their own `load` reads. DQNs, tables and linear
    values become an .npz with arrays and a description as JSON: docs/policies.md.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder that `esbas train` wrote."""
    _: KW_ONLY
    learner: str | None = None
    """The learner, as it is in the last checkpoint. Default: the best policy."""
    seed: int | None = None
    """The seed of the run from which the policy is taken. Default: that of the best policy; with
    --learner, that of the run with the best end."""
    out: Path | None = None
    """The file. Default: FOLDER/policy.zip or FOLDER/policy.npz."""
    trust: bool = False
    """Import the modules that the folder names. They can run any code: docs/safety.md."""


def main(config: Export) -> None:
    """Run `esbas export` with these options."""
    # Imported here, so that the first line of output is not waiting for it.
    from esbas.reporting.terminal import print_text
    from esbas.training.folder import open_folder
    from esbas.training.policies.exporting import export_policy
    from esbas.training.policies.loaded import stored_policy

    training = open_folder(config.folder, trust=config.trust, needs_env=False)
    stored = stored_policy(training, learner=config.learner, seed=config.seed)
    written = export_policy(training, stored, config.out)
    about = f"{stored.learner}, seed {stored.seed}, after {stored.steps:,} steps"
    print_text(f"Wrote {written.path}: {about}. To use it: {written.usage}")
