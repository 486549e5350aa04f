"""`esbas evaluate FOLDER`: plays the best policy of a training without exploration, and renders it."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import esbas
from esbas import seeding
from esbas.engine.progress import Progress
from esbas.errors import NotEpisodicError, SaveFileError, require, unknown
from esbas.learner import Learner, Policy
from esbas.objective import Objective, make_objective
from esbas.reporting import estimate
from esbas.reporting.files import write_csv, write_json
from esbas.reporting.terminal import print_table, print_text
from esbas.training.folder import TrainingFolder, open_folder
from esbas.training.reports import curves
from esbas.training.reports.recording import RenderedTask
from esbas.training.runs.episode_log import Episodes, read_episodes
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.plan import Plan

HEADER = "an episode's", "mean", "min", "max"


@dataclass(frozen=True)
class Evaluate:
    """Play the best policy of a training without exploration: a table of its results, and a GIF of an episode.

    It writes evaluation.json, evaluation.csv and, if the task renders images, evaluation.gif into the folder. Other files do not
    change: an unfinished training can continue afterwards.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder that `esbas train` wrote."""
    _: KW_ONLY
    member: str | None = None
    """The learner that plays. Default: the one that controlled most episodes in the last quarter of the run."""
    seed: int | None = None
    """The run from which the learner is taken. Default: the run with the best mean of its last 50 episodes."""
    episodes: int = 20
    """The number of episodes."""
    explore: bool = False
    """Explore as in training."""
    render: bool = False
    """Show all episodes in a window, or as text if the task has no window."""
    video: Path | None = None
    """The GIF file for the first episode. Default: FOLDER/evaluation.gif, if the task renders images."""
    eval_seed: int = 0
    """The seed of the episodes; they differ from those of the training."""
    trust: bool = False
    """Import the modules that the folder names. Imported modules can run any code: docs/safety.md."""


def main(config: Evaluate) -> None:
    """Run `esbas evaluate` with these options."""
    require(config.episodes >= 1, "episodes >= 1", episodes=config.episodes)
    require(config.eval_seed >= 0, "eval_seed >= 0", eval_seed=config.eval_seed)
    both = config.render and config.video is not None
    require(not both, "episodes are shown or recorded", "give --render or --video", render=config.render, video=str(config.video))
    fits = config.video is None or (config.video.suffix.lower() == ".gif" and config.video.parent.is_dir())
    require(fits, "the video is a .gif in a folder that exists", video=str(config.video))
    training = open_folder(config.folder, trust=config.trust)
    seed = _find_run(training, config.seed)
    directory = run_folder(training.folder, seed)
    run = training.plan.resume(directory / "checkpoint.npz", seed)
    try:
        learner = _find_member(run, read_episodes(directory), config.member)
        policy = learner.policy() if config.explore else getattr(learner, "greedy_policy", learner.policy)()
        rendered = RenderedTask(
            lambda mode: training.plan.task(render_mode=mode), window=config.render, record=config.video is not None
        )
        try:
            trajectories = _play(policy, rendered, training.plan, config, learner.name)
        finally:
            rendered.close()
    finally:
        run.close()
    explores = config.explore or not (hasattr(learner, "greedy_policy") or learner.stationary)
    measures = run.objective, esbas.total_return(), esbas.episode_length()
    about = {"learner": learner.name, "seed": seed, "steps of training": run.steps, "explores": explores}
    _publish(training.folder, about | {"eval_seed": config.eval_seed}, measures, trajectories)
    if explores and not config.explore:
        print_text(f"Learner {learner.name!r} has no greedy_policy(): it explored as in training.")
    _show(rendered, config.video or training.folder / "evaluation.gif")


def _find_run(training: TrainingFolder, seed: int | None) -> int:
    """The given seed, or that of the run with the best end."""
    require(
        seed is None or seed in training.seeds, "the seed is one of the seeds of the training", seed=seed, seeds=training.seeds
    )
    wanted = training.seeds if seed is None else (seed,)
    directories = {each: run_folder(training.folder, each) for each in wanted}
    runs = {each: read_episodes(directory) for each, directory in directories.items() if (directory / "checkpoint.npz").exists()}
    if not any(map(len, runs.values())):
        which = "a run" if seed is None else f"the run of seed {seed}"
        message = f"{which} must have a checkpoint, but there is none in {str(training.folder)!r} yet"
        raise SaveFileError(f"{message}: wait for the first one, or `esbas resume {training.folder}`")
    objective = make_objective(training.plan.objective)
    return max((each for each in runs if len(runs[each])), key=lambda each: objective.score(curves.last_mean(runs[each])))


def _find_member(run: esbas.Run, episodes: Episodes, name: str | None) -> Learner:
    """The learner with the given name, or the one that controlled most episodes at the end."""
    members, objective = {learner.name: learner for learner in run.learners}, run.objective
    if name is None:
        late = slice(run.number - curves.late(run.number), run.number)  # episodes after the checkpoint do not count
        arms, values = episodes.learners[late], episodes.values[late]
        own = {each: values[arms == each] for each in members}
        name = max(members, key=lambda each: (len(own[each]), objective.score(own[each].mean()) if len(own[each]) else 0.0))
    if name not in members:
        raise unknown("learner", name, members)
    return members[name]


def _play(policy: Policy, rendered: RenderedTask, plan: Plan, config: Evaluate, name: str) -> list[esbas.Trajectory]:
    """Play the episodes, each with its own random stream."""
    trajectories = []
    with Progress(f"{plan.env_id}, {name}", total=config.episodes) as progress:
        for number in range(1, config.episodes + 1):
            rng = seeding.generator(config.eval_seed, "evaluation", number)
            env, seed = rendered.for_episode(number), int(rng.integers(2**31))
            try:
                trajectories.append(esbas.play(env, policy, rng=rng, seed=seed, max_steps=plan.max_steps))
            except NotEpisodicError as error:
                message = f"an episode must end within max_steps={plan.max_steps} of the training, but did not"
                raise NotEpisodicError(f"{message}: the policy may be stuck without exploration, try --explore") from error
            progress.advance(f"return {trajectories[-1].rewards.sum():.4g}")
    return trajectories


def _publish(
    folder: Path, about: Mapping[str, Any], measures: Sequence[Objective], trajectories: Sequence[esbas.Trajectory]
) -> None:
    """Write evaluation.csv and evaluation.json, and print the table."""
    ends = {
        "terminated": [int(each.terminated) for each in trajectories],
        "truncated": [int(each.truncated) for each in trajectories],
    }
    columns = {measure.name: np.array([measure(each) for each in trajectories]) for measure in measures}
    header, numbers = ["episode", *columns, *ends], range(1, len(trajectories) + 1)
    lines = zip(numbers, *(column.tolist() for column in columns.values()), *ends.values(), strict=True)
    write_csv(folder / "evaluation.csv", header, lines)
    rows = [(name, estimate(values), float(values.min()), float(values.max())) for name, values in columns.items()]
    results = {name: {"mean": mean.mean, "ci95": mean.ci95, "min": least, "max": most} for name, mean, least, most in rows}
    write_json(folder / "evaluation.json", dict(about) | {"episodes": len(trajectories), "results": results})
    mode = "with" if about["explores"] else "without"
    player = f"{about['learner']}, seed {about['seed']}, trained for {about['steps of training']:,} steps"
    count = "one episode" if len(trajectories) == 1 else f"{len(trajectories)} episodes"
    print_table(f"{player}: {count} {mode} exploration", HEADER, rows)
    print_text(
        f"Intervals are over episodes of this one policy. Files: {folder / 'evaluation.csv'}, {folder / 'evaluation.json'}"
    )


def _show(rendered: RenderedTask, path: Path) -> None:
    """Print or write the recording of the first episode."""
    if rendered.recording.text:
        print(f"Last frame of the first episode:\n{rendered.recording.text}")
    if rendered.trouble:
        print_text(f"The first episode was not recorded: {rendered.trouble}")
    elif rendered.recording.images:
        rendered.recording.write(path)
        print_text(f"The first episode: {path}")
