"""`esbas evaluate FOLDER`: the best policy of a training plays, without exploration, and is shown."""

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
from esbas.objective import Objective
from esbas.reporting import estimate
from esbas.reporting.files import write_csv, write_json
from esbas.reporting.terminal import print_table, print_text
from esbas.training import curves
from esbas.training.film import Stage
from esbas.training.folder import Opened, open_folder
from esbas.training.log import Episodes, read_episodes
from esbas.training.plan import OBJECTIVES, Plan, close
from esbas.training.single import run_folder

HEADER = "an episode's", "mean", "min", "max"


@dataclass(frozen=True)
class Evaluate:
    """Play the best policy of a training, without exploration: a table of what it gets, and a GIF of an episode.

    It writes evaluation.json, evaluation.csv and, for tasks that render pictures, evaluation.gif into the folder. Nothing else in
    there changes: a training that is not finished can go on afterwards.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """What `esbas train` wrote to."""
    _: KW_ONLY
    member: str | None = None
    """Who plays. By default whom the selector trusted most: who controlled most episodes of the last quarter."""
    seed: int | None = None
    """The run that it is taken from. By default the one with the best mean of its last 50 episodes."""
    episodes: int = 20
    """How many to play."""
    explore: bool = False
    """Keep the exploration of training."""
    render: bool = False
    """Watch all episodes: in a window, or as text, whatever the task has."""
    video: Path | None = None
    """Where to write the GIF of the first episode. By default it is FOLDER/evaluation.gif, if the task can be filmed."""
    eval_seed: int = 0
    """Of the episodes, which are none of those of training. Same seed, same episodes."""


def main(config: Evaluate) -> None:
    """Play, write, print."""
    require(config.episodes >= 1, "episodes >= 1", episodes=config.episodes)
    require(config.eval_seed >= 0, "eval_seed >= 0", eval_seed=config.eval_seed)
    both = config.render and config.video is not None
    require(not both, "episodes are watched or filmed", "give --render or --video", render=config.render, video=str(config.video))
    fits = config.video is None or (config.video.suffix.lower() == ".gif" and config.video.parent.is_dir())
    require(fits, "the video is a .gif in a folder that exists", video=str(config.video))
    opened = open_folder(config.folder)
    seed = _find_run(opened, config.seed)
    home = run_folder(opened.folder, seed)
    run = opened.plan.resume(home / "checkpoint.npz", seed)
    try:
        learner = _find_member(run, read_episodes(home), config.member)
        policy = learner.policy() if config.explore else getattr(learner, "greedy_policy", learner.policy)()
        stage = Stage(lambda mode: opened.plan.task(render_mode=mode), window=config.render, film=config.video is not None)
        try:
            trajectories = _play(policy, stage, opened.plan, config, learner.name)
        finally:
            stage.close()
    finally:
        close(run)
    explores = config.explore or not (hasattr(learner, "greedy_policy") or learner.stationary)
    measures = run.loop.objective, esbas.total_return(), esbas.episode_length()
    about = {"learner": learner.name, "seed": seed, "steps of training": run.loop.steps, "explores": explores}
    _publish(opened.folder, about | {"eval_seed": config.eval_seed}, measures, trajectories)
    if explores and not config.explore:
        print_text(f"Learner {learner.name!r} has no greedy_policy(): it played as it does in training.")
    _show(stage, config.video or opened.folder / "evaluation.gif")


def _find_run(opened: Opened, seed: int | None) -> int:
    """The run with the best end, unless one is named."""
    require(seed is None or seed in opened.seeds, "the seed is one of the training's", seed=seed, seeds=opened.seeds)
    wanted = opened.seeds if seed is None else (seed,)
    homes = {each: run_folder(opened.folder, each) for each in wanted}
    runs = {each: read_episodes(home) for each, home in homes.items() if (home / "checkpoint.npz").exists()}
    if not any(map(len, runs.values())):
        which = "a run" if seed is None else f"the run of seed {seed}"
        told = f"{which} must have a checkpoint to be evaluated, but there is none in {str(opened.folder)!r} yet"
        raise SaveFileError(f"{told}: wait for the first one, or `esbas resume {opened.folder}`")
    objective = OBJECTIVES[opened.plan.objective]()
    return max((each for each in runs if len(runs[each])), key=lambda each: objective.score(curves.last_mean(runs[each])))


def _find_member(run: esbas.Run, episodes: Episodes, name: str | None) -> Learner:
    """Who was trusted most at the end, unless one is named."""
    members, objective = {learner.name: learner for learner in run.loop.roster.learners}, run.loop.objective
    if name is None:
        late = slice(run.number - curves.late(run.number), run.number)  # what came behind the checkpoint is played again
        arms, values = episodes.learners[late], episodes.values[late]
        own = {each: values[arms == each] for each in members}
        name = max(members, key=lambda each: (len(own[each]), objective.score(own[each].mean()) if len(own[each]) else 0.0))
    if name not in members:
        raise unknown("learner", name, members)
    return members[name]


def _play(policy: Policy, stage: Stage, plan: Plan, config: Evaluate, name: str) -> list[esbas.Trajectory]:
    """The episodes, each from a stream of its own."""
    trajectories = []
    with Progress(f"{plan.env_id}, {name}", total=config.episodes) as progress:
        for number in range(1, config.episodes + 1):
            rng = seeding.generator(config.eval_seed, "evaluation", number)
            getattr(policy, "start", lambda: None)()
            env, seed = stage.for_episode(number), int(rng.integers(2**31))
            try:
                trajectories.append(esbas.play(env, policy, rng=rng, seed=seed, max_steps=plan.max_steps))
            except NotEpisodicError as error:
                told = f"an episode must end within the training's max_steps={plan.max_steps}, but went on"
                raise NotEpisodicError(f"{told}: a policy may get stuck without exploration, try --explore") from error
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
    columns = {measure.name: np.array([measure(each) for each in trajectories]) for measure in measures}  # equal names: once
    header, numbers = ["episode", *columns, *ends], range(1, len(trajectories) + 1)
    lines = zip(numbers, *(column.tolist() for column in columns.values()), *ends.values(), strict=True)
    write_csv(folder / "evaluation.csv", header, lines)
    rows = [(name, estimate(values), float(values.min()), float(values.max())) for name, values in columns.items()]
    results = {name: {"mean": mean.mean, "ci95": mean.ci95, "min": least, "max": most} for name, mean, least, most in rows}
    write_json(folder / "evaluation.json", dict(about) | {"episodes": len(trajectories), "results": results})
    how = "with" if about["explores"] else "without"
    who = f"{about['learner']}, seed {about['seed']}, trained for {about['steps of training']:,} steps"
    count = "one episode" if len(trajectories) == 1 else f"{len(trajectories)} episodes"
    print_table(f"{who}: {count} {how} exploration", HEADER, rows)
    print_text(
        f"Intervals are over episodes of this one policy. Files: {folder / 'evaluation.csv'}, {folder / 'evaluation.json'}"
    )


def _show(stage: Stage, path: Path) -> None:
    """What there is to see of the first episode."""
    if stage.film.text:
        print(f"How the first episode ended:\n{stage.film.text}")
    if stage.trouble:
        print_text(f"The first episode is not shown: {stage.trouble}")
    elif stage.film.pictures:
        stage.film.write(path)
        print_text(f"The first episode: {path}")
