"""The result of a training: its score, tables, figure, episodes and policies."""

import html
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esbas._internal import values
from esbas.errors import SaveFileError, counted
from esbas.reporting import Columns, Estimate, Table
from esbas.training.config import TrainingConfig
from esbas.training.evaluating import (
    PolicyEvaluation,
    evaluate_learners,
    evaluate_offline,
    evaluate_policy,
)
from esbas.training.extending import extend
from esbas.training.extension import Extension
from esbas.training.folder import TrainingFolder, open_folder
from esbas.training.options_of import method_takes_options_of
from esbas.training.policies.exporting import export_policy
from esbas.training.policies.loaded import LoadedPolicy, stored_policy
from esbas.training.reports.training_report import LEARNER_HEADER, RUN_HEADER, TrainingSummary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Training:
    """A training: runs with several seeds, their folder and their report.

    `esbas.train` and `esbas.load_training` return one. Every property and method reads the files
    of the training again, so it also shows what another process is doing.

    Attributes:
        folder: has all files.
        config: the options.
    """

    def __init__(self, training: TrainingFolder) -> None:
        self._training = training

    @property
    def folder(self) -> Path:
        return self._training.folder

    @property
    def config(self) -> TrainingConfig:
        return self._training.config

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the runs."""
        return self._training.seeds

    @property
    def learners(self) -> tuple[str, ...]:
        """The names of the learners."""
        return self._training.names

    @property
    def finished(self) -> bool:
        """Whether all runs have used up their budgets, or were stopped."""
        return self._training.finished

    @property
    def report(self) -> Path:
        """The page with all tables and figures."""
        return self.folder / "report.html"

    @property
    def score(self) -> Estimate:
        """The mean value of recent episodes at the end of the runs, with its 95 % interval.

        The interval is over runs. If there is a single run, it is over the episodes of that run,
        and does not cover other seeds.
        """
        return self._summary().score

    def summary(self) -> dict[str, Any]:
        """Return all numbers as plain data, as in summary.json."""
        return self._summary().summary()

    def table(self) -> Table:
        """Return a row per learner: shares of control, values and faults."""
        return Table(LEARNER_HEADER, self._summary().learner_rows())

    def runs(self) -> Table:
        """Return a row per run: episodes, steps, values, seconds and faults."""
        return Table(RUN_HEADER, self._summary().run_rows())

    def episodes(self) -> Columns:
        """Return all episodes of all runs as columns: run, number, learner, value, length, ..."""
        return self._summary().episodes()

    def figure(self) -> "Figure":
        """Draw the values of episodes and the shares of control over the environment steps."""
        return self._summary().figure()

    def policy(self, learner: str | None = None, *, seed: int | None = None) -> LoadedPolicy:
        """Return the best policy that was kept, or that of a learner at the last checkpoint.

        Args:
            learner: its name. Default: the best policy, of any learner and time.
            seed: the run. Default: all runs for the best policy; for a learner, the run with the
                best end.
        """
        stored = stored_policy(self._training, learner=learner, seed=seed)
        return LoadedPolicy(stored, self._training)

    def evaluate(
        self,
        *,
        learner: str | None = None,
        seed: int | None = None,
        episodes: int = 20,
        explore: bool = False,
        render: bool = False,
        video: str | os.PathLike[str] | None = None,
        eval_seed: int = 0,
        progress: bool = True,
    ) -> PolicyEvaluation:
        """Play fresh episodes with the best policy, or with a learner's, and return its mean value.

        Writes evaluation.csv, evaluation.json and, if the environment renders images,
        evaluation.gif.

        Args:
            learner: plays as it is in the last checkpoint. Default: the best policy that was kept.
            seed: the run from which the policy is taken. Default: that of the best policy.
            episodes: how many.
            explore: explore as in training; the learner is then taken from the last checkpoint.
            render: show all episodes in a window, or as text if the environment has no window.
            video: the GIF file for the first episode. Default: evaluation.gif in the folder.
            eval_seed: the seed of the episodes; they differ from those of the training.
            progress: show progress.
        """
        return evaluate_policy(
            self._training,
            learner=learner,
            seed=seed,
            episodes=episodes,
            explore=explore,
            render=render,
            video=video,
            eval_seed=eval_seed,
            progress=progress,
        )

    def evaluate_learners(
        self,
        *,
        seed: int | None = None,
        episodes: int = 20,
        explore: bool = False,
        eval_seed: int = 0,
    ) -> Table:
        """Let all learners, as they are in the last checkpoint, play the same fresh episodes.

        Args:
            seed: the run. Default: that of the best policy.
            episodes: of each learner.
            explore: explore as in training.
            eval_seed: the seed of the episodes.
        """
        table, _, _ = evaluate_learners(
            self._training, seed=seed, episodes=episodes, explore=explore, eval_seed=eval_seed
        )
        return table

    def evaluate_offline(self, *, learner: str | None = None, seed: int | None = None) -> Table:
        """Estimate the values of policies from the trajectories that the training kept.

        Nothing is played.

        Args:
            learner: its name. Default: all.
            seed: the run. Default: the one with the best end.
        """
        table, _, _ = evaluate_offline(self._training, learner=learner, seed=seed)
        return table

    def export(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        learner: str | None = None,
        seed: int | None = None,
    ) -> Path:
        """Write the best policy, or a learner's, for use without esbas, and return the file.

        Models of Stable-Baselines3 become a .zip that their own `load` reads. DQNs, tables and
        linear values become an .npz with arrays and a description: docs/policies.md.

        Args:
            path: of the file; without a suffix, it gets the right one. Default: policy.zip or
                policy.npz in the folder.
            learner: its name. Default: the best policy.
            seed: the run. Default: that of the best policy; for a learner, the run with the best
                end.
        """
        given = None if path is None else values.path("path", path)
        stored = stored_policy(self._training, learner=learner, seed=seed)
        return export_policy(self._training, stored, given).path

    @method_takes_options_of(Extension)
    def extend(self, extension: Extension) -> "Training":
        """Continue the training, with a new budget or more runs if they are given, and return it.

        Without a new budget, an interrupted training continues with the same results as if it had
        not been interrupted.
        """
        # `train` imports this module.
        from esbas.training.train import check_options, continue_training

        longer = extend(self._training, extension)
        check_options(longer.config)
        self._training = longer
        continue_training(longer)
        return self

    def _summary(self) -> TrainingSummary:
        summary = TrainingSummary(self._training)
        if not summary.runs:
            message = f"The training in {str(self.folder)!r} has no episode yet"
            raise SaveFileError(f"{message}: wait for the first one, or continue it.")
        return summary

    def __repr__(self) -> str:
        about = f"Training of {counted(len(self.learners), 'learner')} on {self.config.env_name}"
        state = "" if self.finished else ", unfinished"
        try:
            summary = self._summary()
            result = str(summary.score)
            if summary.stops():
                state += ", stopped early"
        except Exception:  # there is no episode yet, or files cannot be read now
            result = "no result yet"
        return f"<{about}: {result}{state}; folder {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        """Show the score, the table and the figure in a notebook."""
        try:
            summary = self._summary()
        except SaveFileError as error:
            return f"<p>{html.escape(str(error))}</p>"
        image = io.BytesIO()
        summary.figure().savefig(image, format="svg")
        svg = image.getvalue().decode()
        results = " ".join([summary.best_policy(), summary.result(), *summary.stops()]).strip()
        parts = [
            f"<p><b>{html.escape(self.config.env_name)}</b>: {html.escape(results)}</p>",
            Table(LEARNER_HEADER, summary.learner_rows())._repr_html_(),
            svg[svg.index("<svg") :],
            f"<p>Folder: <code>{html.escape(str(self.folder))}</code></p>",
        ]
        return "\n".join(parts)


def load_training(folder: str | os.PathLike[str], *, trust: bool = False) -> Training:
    """Load a training from its folder: one that has ended, or one that another process is running.

    Args:
        folder: written by `esbas.train` or `esbas train`.
        trust: import the modules that the folder names. Imported modules can run any code:
            docs/safety.md.
    """
    path = values.path("folder", folder)
    return Training(open_folder(path, trust=values.truth("trust", trust)))
