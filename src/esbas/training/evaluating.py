"""Evaluations after a training: policies play fresh episodes, or are scored offline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import esbas
from esbas import seeding
from esbas._internal import values
from esbas.engine.progress import Progress
from esbas.errors import InvalidValueError, NotEpisodicError, SaveFileError, unknown
from esbas.learner import Policy
from esbas.reporting import Estimate, Table, estimate
from esbas.reporting.files import write_csv, write_json
from esbas.training.folder import TrainingFolder
from esbas.training.policies.all_learners import score_learners
from esbas.training.policies.finding import find_best, find_run, learner_at_checkpoint
from esbas.training.policies.offline import OfflineScore, score_offline
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import Score, greedy
from esbas.training.reports.recording import RenderedEnv
from esbas.training.runs.cuts import CutEpisodes
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.evaluation import episode_limit
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.plan import close_learner

SELECTION = 5  # episodes of each learner to find the best one, if the training has not done so
OFFLINE_HEADER = (
    "learner",
    "policy",
    "value",
    "low",
    "high",
    "effective sample size",
    "episodes",
    "problem",
)


@dataclass(frozen=True, kw_only=True, repr=False)
class PolicyEvaluation(Estimate):
    """The mean value of a policy over fresh episodes, with its interval over these episodes.

    Attributes:
        learner: whose policy played.
        seed: of the run that the policy comes from.
        steps: environment steps of training until then.
        values: of the episodes.
        explores: whether the policy explored as in training.
        measures: see `table`.
        video: a recording of the first episode; None if there is none.
        notes: what else is worth knowing, as sentences.
    """

    learner: str
    seed: int
    steps: int
    values: tuple[float, ...]
    explores: bool
    measures: Table
    video: Path | None
    notes: tuple[str, ...]

    def table(self) -> Table:
        """Return mean, minimum and maximum of objective, return and length of the episodes."""
        return self.measures


def evaluate_policy(
    training: TrainingFolder,
    *,
    learner: str | None,
    seed: int | None,
    episodes: int,
    explore: bool,
    render: bool,
    video: Any,
    eval_seed: int,
    progress: bool,
) -> PolicyEvaluation:
    """Let one policy play, and write evaluation.csv, evaluation.json and a recording.

    `Training.evaluate` describes the arguments.
    """
    episodes = values.whole("episodes", episodes, at_least=1)
    eval_seed = values.whole("eval_seed", eval_seed, at_least=0)
    target = _video_path(video)
    if render and target is not None:
        raise InvalidValueError("Give `render` or `video`, not both.")
    stored, notes = _find_policy(training, learner, seed, explore=explore, eval_seed=eval_seed)
    plan = training.plan
    rendered = RenderedEnv(
        lambda mode: _limited(plan.env(render_mode=mode), training, stored.seed),
        window=render,
        record=target is not None,
    )
    try:
        built = stored.build(
            plan,
            observation_space=rendered.env.observation_space,
            action_space=rendered.env.action_space,
        )
        try:
            policy = built.policy() if explore else greedy(built)
            trajectories = _play(
                training, policy, rendered, built.name, episodes, eval_seed, progress=progress
            )
        finally:
            close_learner(built)
    finally:
        rendered.close()
    is_greedy = hasattr(built, "greedy_policy") or built.stationary
    if not is_greedy and not explore:
        notes.append(f"Learner {built.name!r} has no greedy_policy(): it explored as in training.")
    notes += _notes_about_recording(rendered)
    recorded = None
    if rendered.recording.images and not rendered.problem:
        recorded = target or training.folder / "evaluation.gif"
        rendered.recording.write(recorded)
    objective = plan.objective
    found = [objective(each) for each in trajectories]
    mean = estimate(found)
    result = PolicyEvaluation(
        mean=mean.mean,
        ci95=mean.ci95,
        runs=mean.runs,
        over="episodes",
        learner=built.name,
        seed=stored.seed,
        steps=stored.steps,
        values=tuple(found),
        explores=explore or not is_greedy,
        measures=_measures(training, trajectories),
        video=recorded,
        notes=tuple(notes),
    )
    _write(training, result, trajectories, eval_seed)
    return result


def _limited(env: Any, training: TrainingFolder, seed: int) -> Any:
    """Return the environment, with a time limit if the training had to cut episodes."""
    config = training.config
    cuts = CutEpisodes(config, env)
    cuts.add_all(read_episodes(run_folder(training.folder, seed)).lengths.tolist())
    limit = episode_limit(config.max_episode_steps, env, longest=cuts.longest)
    return cuts.limited(env, limit)


def _video_path(given: Any) -> Path | None:
    if given is None:
        return None
    path = values.path("video", given)
    if path.suffix.lower() != ".gif" or not path.parent.is_dir():
        raise InvalidValueError(
            f"`video` must be a .gif file in a folder that exists, but got {str(path)!r}."
        )
    return path


def _notes_about_recording(rendered: RenderedEnv) -> list[str]:
    notes = []
    if rendered.recording.text:
        notes.append(f"Last frame of the first episode:\n{rendered.recording.text}")
    if rendered.problem:
        notes.append(f"The first episode was not recorded: {rendered.problem}")
    return notes


def _find_policy(
    training: TrainingFolder,
    learner: str | None,
    seed: int | None,
    *,
    explore: bool,
    eval_seed: int,
) -> tuple[StoredPolicy, list[str]]:
    """Return the policy that plays, and sentences about its origin."""
    # Also if the run is not needed below: this refuses a damaged folder.
    run = find_run(training, seed)
    if learner is not None:
        return learner_at_checkpoint(training, run, learner), []
    best = find_best(training, seed)
    if best is None:
        return _select(training, run, explore=explore, eval_seed=eval_seed)
    if explore:  # the policy was kept without its exploration, which is in the checkpoint
        return learner_at_checkpoint(training, best.seed, best.learner), []
    return best, [f"This is the best policy that the training found, after {best.steps:,} steps."]


def _select(
    training: TrainingFolder, seed: int, *, explore: bool, eval_seed: int
) -> tuple[StoredPolicy, list[str]]:
    """Let all learners in the last checkpoint play, and return the best one with a note."""
    objective = training.plan.objective
    # The text is part of the seed, so it stays as it was when learners were called members.
    stream = partial(seeding.generator, eval_seed, "selection of a member")
    stored, scores = score_learners(
        training, seed, episodes=SELECTION, explore=explore, stream=stream
    )
    ranks = {}
    for name, score in scores.items():
        if not score.problem:
            ranks[name] = objective.score(float(np.mean(score.values)))
    if not ranks:
        problems = "; ".join(f"{name}: {score.problem}" for name, score in scores.items())
        remedy = "try to explore, or continue the training"
        raise NotEpisodicError(f"No learner was able to play ({problems[:500]}): {remedy}.")
    best = max(ranks, key=ranks.__getitem__)
    note = (
        "The training has not evaluated its policies yet. Of all learners in the last checkpoint, "
        f"{best!r} was the best in {SELECTION} other episodes each."
    )
    return stored[best], [note]


def _play(
    training: TrainingFolder,
    policy: Policy,
    rendered: RenderedEnv,
    name: str,
    episodes: int,
    eval_seed: int,
    *,
    progress: bool,
) -> list[esbas.Trajectory]:
    """Play the episodes, each with its own random stream."""
    config = training.config
    objective = training.plan.objective
    trajectories = []
    console = None if progress else Console(quiet=True)
    with Progress(f"{config.env_name}, {name}", total=episodes, console=console) as shown:
        for number in range(1, episodes + 1):
            rng = seeding.generator(eval_seed, "evaluation", number)
            env = rendered.for_episode(number)
            episode_seed = int(rng.integers(2**31))
            try:
                trajectory = esbas.play(
                    env,
                    policy,
                    rng=rng,
                    seed=episode_seed,
                    max_episode_steps=config.max_episode_steps,
                    infos=objective.infos,
                )
            except NotEpisodicError as error:
                limit = f"`max_episode_steps` of the training ({config.max_episode_steps:,})"
                reason = "the policy may be stuck without exploration, so try to explore"
                raise NotEpisodicError(
                    f"An episode did not end within {limit}: {reason}."
                ) from error
            trajectories.append(trajectory)
            shown.advance(f"return {trajectory.rewards.sum():.4g}")
    return trajectories


def _measures(training: TrainingFolder, trajectories: Sequence[esbas.Trajectory]) -> Table:
    rows: list[list[object]] = []
    for measure in _objectives(training):
        found = np.array([measure(each) for each in trajectories])
        mean = estimate(found, over="episodes")
        rows.append([measure.name, mean, float(found.min()), float(found.max())])
    return Table(("an episode's", "mean", "min", "max"), rows)


def _objectives(training: TrainingFolder) -> list[esbas.Objective]:
    """Return what is measured, each once.

    The objective of the training, its details, return and length. Of those with the same name, the
    first one is measured.
    """
    objective = training.plan.objective
    standard = [esbas.total_return(), esbas.episode_length()]
    if objective.name in [measure.name for measure in standard]:
        standard = [objective if each.name == objective.name else each for each in standard]
        listed = [*standard, *objective.details]
    else:
        listed = [objective, *objective.details, *standard]
    by_name: dict[str, esbas.Objective] = {}
    for measure in listed:
        by_name.setdefault(measure.name, measure)
    return list(by_name.values())


def _write(
    training: TrainingFolder,
    result: PolicyEvaluation,
    trajectories: Sequence[esbas.Trajectory],
    eval_seed: int,
) -> None:
    """Write evaluation.csv and evaluation.json."""
    measures = _objectives(training)
    header = ["episode", *(measure.name for measure in measures), "terminated", "truncated"]
    lines = []
    for number, each in enumerate(trajectories, 1):
        measured = [measure(each) for measure in measures]
        lines.append([number, *measured, int(each.terminated), int(each.truncated)])
    write_csv(training.folder / "evaluation.csv", header, lines)
    found = {}
    for name, mean, least, most in result.measures.rows:
        assert isinstance(mean, Estimate)
        found[str(name)] = {"mean": mean.mean, "ci95": mean.ci95, "min": least, "max": most}
    about = {
        "learner": result.learner,
        "seed": result.seed,
        "steps of training": result.steps,
        "explores": result.explores,
        "eval_seed": eval_seed,
        "episodes": len(trajectories),
        "results": found,
    }
    write_json(training.folder / "evaluation.json", about)


def evaluate_learners(
    training: TrainingFolder, *, seed: int | None, episodes: int, explore: bool, eval_seed: int
) -> tuple[Table, int, int]:
    """Let all learners play the same episodes. Writes evaluation.csv and evaluation.json.

    Returns a table, the seed of the run, and its environment steps of training.
    """
    episodes = values.whole("episodes", episodes, at_least=1)
    eval_seed = values.whole("eval_seed", eval_seed, at_least=0)
    best = find_best(training, seed)
    run = find_run(training, seed if best is None else best.seed)
    stream = partial(seeding.generator, eval_seed, "evaluation")
    stored, scores = score_learners(
        training, run, episodes=episodes, explore=explore, stream=stream
    )
    objective = training.plan.objective
    header = "learner", f"mean {objective.name}", "min", "max", "mean length", "problem"
    rows = [_row(name, score) for name, score in scores.items()]
    lines = []
    for name, score in scores.items():
        for number, (value, length) in enumerate(zip(score.values, score.lengths, strict=True), 1):
            lines.append((name, number, value, length))
    columns = ["learner", "episode", objective.name, "episode length"]
    write_csv(training.folder / "evaluation.csv", columns, lines)
    steps = max(policy.steps for policy in stored.values())
    about = {
        "seed": run,
        "steps of training": steps,
        "explores": explore,
        "eval_seed": eval_seed,
        "episodes": episodes,
        "learners": [dict(zip(header, row, strict=True)) for row in rows],
    }
    write_json(training.folder / "evaluation.json", about)
    return Table(header, rows), run, steps


def _row(name: str, score: Score) -> list[object]:
    if not score.values:
        return [name, math.nan, math.nan, math.nan, math.nan, score.problem]
    mean = estimate(score.values, over="episodes")
    mean_length = float(np.mean(score.lengths))
    return [name, mean, min(score.values), max(score.values), mean_length, score.problem]


def evaluate_offline(
    training: TrainingFolder, *, learner: str | None, seed: int | None
) -> tuple[Table, int, list[str]]:
    """Estimate values from the trajectories that the training kept.

    Writes offline.csv and offline.json. Returns a table, the seed of the run, and sentences about
    what the numbers mean.
    """
    names = training.names
    if learner is not None and learner not in names:
        raise unknown("learner", learner, names)
    run = find_run(training, seed)
    found = score_offline(training, run, names=names if learner is None else [learner])
    if not found.scores:
        message = f"Learner {learner!r} is not in the checkpoint, because it could not be saved"
        raise SaveFileError(f"{message}: see faults.csv.")
    rows = [_offline_row(score) for score in found.scores]
    about = {
        "seed": run,
        "objective": training.plan.objective.name,
        "frozen": found.frozen,
        "episodes without probabilities": found.unknown,
        "policies": [dict(zip(OFFLINE_HEADER, row, strict=True)) for row in rows],
    }
    write_csv(training.folder / "offline.csv", OFFLINE_HEADER, rows)
    write_json(training.folder / "offline.json", about)
    notes = []
    if not found.frozen:
        cause = "The policies have learnt from these episodes, or from others since"
        notes.append(f"{cause}: the values are likely too good.")
    if found.unknown:
        cause = "because the probabilities of their actions are not known"
        notes.append(f"{found.unknown:,} episodes were left out, {cause}.")
    return Table(OFFLINE_HEADER, rows), run, notes


def _offline_row(score: OfflineScore) -> list[object]:
    found = score.estimate
    numbers: list[float | None] = [math.nan, math.nan, math.nan, math.nan, None]
    if found is not None:
        numbers = [found.value, found.low, found.high, found.effective_sample_size, found.n]
    return [score.learner, score.policy, *numbers, score.problem]
