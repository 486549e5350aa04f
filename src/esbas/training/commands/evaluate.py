"""`esbas evaluate FOLDER`: plays the best policy of a training, or all its members, without exploration."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

import esbas
from esbas import seeding
from esbas.engine.progress import Progress
from esbas.errors import NotEpisodicError, require
from esbas.learner import Policy
from esbas.objective import Objective, make_objective
from esbas.reporting import estimate
from esbas.reporting.files import write_csv, write_json
from esbas.reporting.terminal import print_table, print_text
from esbas.training.commands.evaluate_offline import evaluate_offline
from esbas.training.folder import TrainingFolder, open_folder, open_without_task
from esbas.training.policies.all_members import score_members
from esbas.training.policies.finding import find_best, find_run, member_at_checkpoint
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import greedy
from esbas.training.reports.recording import RenderedTask
from esbas.training.runs.plan import Plan

HEADER = "an episode's", "mean", "min", "max"
ALL = "all"
SELECTION = 5  # episodes of each member to find the best one, if the training has not done so


@dataclass(frozen=True)
class Evaluate:
    """Play the best policy of a training without exploration: a table of its results, and a GIF of an episode.

    The best policy is the one that the training kept: it was the best in an evaluation, and scored again on fresh episodes.

    It writes evaluation.json, evaluation.csv and, if the task renders images, evaluation.gif into the folder. Other files do not
    change: an unfinished training can continue afterwards.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder that `esbas train` wrote."""
    _: KW_ONLY
    member: str | None = None
    """The learner that plays, as it is in the last checkpoint; "all" for a table of all learners. Default: the best policy."""
    seed: int | None = None
    """The run from which the policy is taken. Default: that of the best policy; for --member, the run with the best end."""
    episodes: int = 20
    """The number of episodes."""
    explore: bool = False
    """Explore as in training; the learner is then taken from the last checkpoint."""
    render: bool = False
    """Show all episodes in a window, or as text if the task has no window."""
    video: Path | None = None
    """The GIF file for the first episode. Default: FOLDER/evaluation.gif, if the task renders images."""
    eval_seed: int = 0
    """The seed of the episodes; they differ from those of the training."""
    offline: bool = False
    """Play nothing: estimate the values of all members, or of --member, from the trajectories that the training kept."""
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
    if config.offline:
        playing = {name: getattr(config, name) for name in ("explore", "render", "video") if getattr(config, name)}
        require(not playing, "nothing is played offline", "leave out these options, or --offline", **playing)
        member = None if config.member == ALL else config.member
        evaluate_offline(open_without_task(config.folder, trust=config.trust), member=member, seed=config.seed)
        return
    training = open_folder(config.folder, trust=config.trust)
    if config.member == ALL:
        shown = config.render or config.video is not None
        require(not shown, "one member is shown or recorded", "name it", member=ALL)
        _evaluate_all(training, config)
    else:
        stored, source = _find_policy(training, config)
        _evaluate_one(training, config, stored, source)


def _find_policy(training: TrainingFolder, config: Evaluate) -> tuple[StoredPolicy, str]:
    """The policy that plays, and a sentence about where it comes from."""
    run = find_run(training, config.seed)  # also if it is not needed: a damaged folder is refused
    if config.member is not None:
        return member_at_checkpoint(training, run, config.member), ""
    best = find_best(training, config.seed)
    if best is None:
        return _select(training, config, run)
    if config.explore:  # what was kept is the policy alone: the exploration is in the checkpoint
        return member_at_checkpoint(training, best.seed, best.learner), ""
    return best, f"This is the best policy that the training found, after {best.steps:,} steps."


def _select(training: TrainingFolder, config: Evaluate, seed: int) -> tuple[StoredPolicy, str]:
    """The best member in the last checkpoint, if the training has not evaluated any policy yet."""
    objective = make_objective(training.plan.objective)
    stream = partial(seeding.generator, config.eval_seed, "selection of a member")
    members, scores = score_members(training, seed, episodes=SELECTION, explore=config.explore, stream=stream)
    means = {name: float(np.mean(score.values)) for name, score in scores.items() if not score.problem}
    if not means:
        problems = "; ".join(f"{name}: {score.problem}" for name, score in scores.items())[:500]
        raise NotEpisodicError(
            f"a member must be able to play, but none is ({problems}): try --explore, or continue the training"
        )
    name = max(means, key=lambda each: objective.score(means[each]))
    text = f"The training has not evaluated its policies yet. Of all members in the last checkpoint, {name!r} was the best in "
    return members[name], f"{text}{SELECTION} other episodes each."


def _evaluate_one(training: TrainingFolder, config: Evaluate, stored: StoredPolicy, source: str) -> None:
    """Let one policy play, and show its first episode."""
    rendered = RenderedTask(
        lambda mode: training.plan.task(render_mode=mode), window=config.render, record=config.video is not None
    )
    try:
        env = rendered.env
        learner = stored.build(training.plan, observation_space=env.observation_space, action_space=env.action_space)
        try:
            policy = learner.policy() if config.explore else greedy(learner)
            trajectories = _play(policy, rendered, training.plan, config, learner.name)
        finally:
            getattr(learner, "close", lambda: None)()
    finally:
        rendered.close()
    explores = config.explore or not (hasattr(learner, "greedy_policy") or learner.stationary)
    measures = make_objective(training.plan.objective), esbas.total_return(), esbas.episode_length()
    about = {"learner": learner.name, "seed": stored.seed, "steps of training": stored.steps, "explores": explores}
    _publish(training.folder, about | {"eval_seed": config.eval_seed}, measures, trajectories)
    if source:
        print_text(source)
    if explores and not config.explore:
        print_text(f"Learner {learner.name!r} has no greedy_policy(): it explored as in training.")
    _show(rendered, config.video or training.folder / "evaluation.gif")


def _evaluate_all(training: TrainingFolder, config: Evaluate) -> None:
    """Let all members play the same episodes; write evaluation.csv and evaluation.json, and print the table."""
    best = find_best(training, config.seed)
    seed = find_run(training, config.seed if best is None else best.seed)
    stream, folder = partial(seeding.generator, config.eval_seed, "evaluation"), training.folder
    members, scores = score_members(training, seed, episodes=config.episodes, explore=config.explore, stream=stream)
    objective = make_objective(training.plan.objective)
    rows: list[tuple[object, ...]] = []
    for name, score in scores.items():
        values = score.values or [math.nan]
        mean = estimate(values) if score.values else math.nan
        rows.append(
            (name, mean, min(values), max(values), float(np.mean(score.lengths)) if score.values else math.nan, score.problem)
        )
    valid = {k: float(np.mean(score.values)) for k, score in enumerate(scores.values()) if not score.problem}
    first = [max(valid, key=lambda k: objective.score(valid[k]))] if valid else []
    header = "learner", f"mean {objective.name}", "min", "max", "mean length", "problem"
    lines = [
        (name, number, value, length)
        for name, score in scores.items()
        for number, (value, length) in enumerate(zip(score.values, score.lengths, strict=True), 1)
    ]
    write_csv(folder / "evaluation.csv", ["learner", "episode", objective.name, "episode length"], lines)
    steps = max(member.steps for member in members.values())
    about = {"seed": seed, "steps of training": steps, "explores": config.explore, "eval_seed": config.eval_seed}
    results = [dict(zip(header, row, strict=True)) for row in rows]
    write_json(folder / "evaluation.json", about | {"episodes": config.episodes, "members": results})
    shown = header if any(row[-1] for row in rows) else header[:-1]
    mode = "with" if config.explore else "without"
    title = f"Seed {seed}, trained for {steps:,} steps: {config.episodes} episodes of each member {mode} exploration"
    print_table(title, shown, [row[: len(shown)] for row in rows], bold=first)
    files = f"{folder / 'evaluation.csv'}, {folder / 'evaluation.json'}"
    print_text(f"All play the same episodes; intervals are over episodes. Files: {files}")


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
