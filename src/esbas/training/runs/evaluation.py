"""Evaluation during training.

Evaluation plays the greedy policies without learning and keeps the best one.
"""

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import esbas
from esbas import seeding
from esbas.errors import EsbasError, SaveFileError, describe
from esbas.learner import Learner, Policy
from esbas.loop import EpisodeRecord
from esbas.reporting import estimate
from esbas.training.callbacks import Evaluation
from esbas.training.policies.policy_file import (
    BEST,
    StoredPolicy,
    read_policy,
    state_of,
    write_policy,
)
from esbas.training.policies.racing import ALLOWANCE, Race
from esbas.training.policies.scoring import Score, Scorer, greedy
from esbas.training.recent import RecentEpisodes
from esbas.training.runs.cuts import CutEpisodes
from esbas.training.runs.episode_log import (
    EVALUATIONS,
    CsvLog,
    Episodes,
    EvaluationRow,
    one_line,
    read_episodes,
    read_evaluations,
)
from esbas.training.runs.plan import Plan

# Parts of the seeds of the episodes. The last evaluation has episodes of its own: in those of
# earlier ones, the best policy so far was lucky.
SELECTION = "evaluation in training"
RACE = "race at the end of a training"
FRESH = "best policy"
END_SHARE = 0.5  # of the training's steps may be taken by the evaluation at its end, in all
# Parts of these steps; what is left of them is for scoring the best policy again:
RACE_PART = 0.6  # to find the best learner
DUEL_PART = 0.2  # to compare it with the best policy of earlier evaluations
# Steps that it may take, also if the share is smaller:
FEWEST_STEPS = 500
LONGEST_FEWEST = 1000  # with a time limit, for an episode twice as long as those of the training
FRESH_EPISODES = 20  # of the best policy, at least
USEFUL = 0.05  # half of the width of its interval, as a share of what was gained by learning
FIRST = 20  # episodes at the start of the training, from which this gain is measured
SHORTEST_LIMIT = 1000  # steps until an episode of an evaluation is given up
GROWTH = 1.1  # the interval is computed again after this many times as many episodes


class Evaluator:
    """The evaluations of one run, in `evaluations.csv`, and its best policy so far, in `best.npz`.

    A context manager. When evaluations are due depends on the steps of the training alone, so a run
    that continues repeats those after its checkpoint, with the same results.
    """

    def __init__(self, plan: Plan, seed: int, directory: Path, run: esbas.Run) -> None:
        self._plan = plan
        self._seed = seed
        self._directory = directory
        self._run = run
        self._env = run.env  # it is free between two episodes of the training
        self._rows: list[EvaluationRow] = []
        self._first: list[float] = []  # values of the first episodes of the training
        self._recent = RecentEpisodes()
        self._lengths = RecentEpisodes()
        self._cuts = CutEpisodes(plan.config, run.env)
        if run.number:
            self._rows = read_evaluations(directory, upto=run.steps)
            self._add_earlier(read_episodes(directory, upto=run.number))
        self._best: StoredPolicy | None = None  # without its state, which is in the file
        self._fresh_steps = 0  # of scoring the best policy again
        if any(not row.problem for row in self._rows):
            self._best = self._read_best()
            self._fresh_steps = self._best.rescored_steps
        # At the end of the run: the winner of the last evaluation, and the values of its episodes.
        self._winner: tuple[StoredPolicy, list[float]] | None = None

    def __enter__(self) -> "Evaluator":
        rows = [row.cells for row in self._rows]
        self._log = CsvLog(self._directory / "evaluations.csv", EVALUATIONS, rows)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._log.close()

    @property
    def played(self) -> int:
        """The environment steps of all evaluations."""
        return sum(row.played for row in self._rows) + self._fresh_steps

    def flush(self) -> None:
        self._log.flush(to_disk=True)

    def after(
        self, record: EpisodeRecord, *, tick: Callable[[int], None] = lambda _: None
    ) -> list[Evaluation]:
        """Make the evaluations that are due after this episode, and return them.

        Args:
            record: the episode.
            tick: called before each step of an evaluation, with the number of those steps so far.
        """
        self._start_counting(tick)
        every = self._plan.config.eval_every
        steps = self._run.steps
        self._add(steps, record.learner, record.value, record.length)
        is_due = every and steps // every > (steps - record.length) // every
        if not is_due and not self._run.done:
            return []
        scores = self._evaluate_at_end() if self._run.done else self._evaluate()
        evaluations = []
        for name, score in scores.items():
            if score.values:
                values = tuple(score.values)
                evaluations.append(
                    Evaluation(learner=name, steps=steps, values=values, played=score.played)
                )
        return evaluations

    def _evaluate(self) -> dict[str, Score]:
        """Let all learners play, and keep the best policy if it is better than those before."""
        one_episode_each = len(self._learners()) * self._episode_allowance
        budget = max(self._plan.config.eval_every, one_episode_each)
        with self._scorer_of_learners(SELECTION, budget) as scorer:
            scorer.play(self._plan.config.eval_episodes)
        scores = scorer.scores

        def rank(name: str) -> tuple[int, float, float]:
            values = scores[name].values
            mean = self._run.objective.score(float(np.mean(values)))
            return len(values), mean, self._recent.share(name)

        order = sorted(scorer.valid, key=rank, reverse=True)
        best = self._best
        if best is not None:
            bar = self._run.objective.score(best.mean)
            order = [name for name in order if rank(name)[1] > bar]
        policy = self._first_storable(order, scores)
        self._log_rows(scores)
        if policy is not None:
            self._write_best(policy)
        return scores

    def _evaluate_at_end(self) -> dict[str, Score]:
        """Let all learners race, and keep the policy of the winner.

        If there is a best policy of an earlier evaluation, it stays until `score_best`, because a
        run that is killed before its last checkpoint needs it again.
        """
        scores, self._winner = self._race()
        self._log_rows(scores)
        if self._winner is not None and (self._best is None or self._is_new(self._best)):
            policy, _ = self._winner
            self._write_best(policy)
        return scores

    def _race(self) -> tuple[dict[str, Score], tuple[StoredPolicy, list[float]] | None]:
        """Let all learners race; return their scores, and the winner with its values."""
        shares = {name: self._recent.share(name) for name in self._learners()}
        with self._scorer_of_learners(RACE, RACE_PART * self._end_steps) as scorer:
            race = Race(
                scorer,
                episodes=self._plan.config.eval_episodes,
                shares=shares,
                start=self._start_value,
                length=min(self._lengths.mean, self._limit),
            )
            order = race.run()
        policy = self._first_storable(order, scorer.scores)
        if policy is None:
            return scorer.scores, None
        return scorer.scores, (policy, scorer.scores[policy.learner].values)

    @contextmanager
    def _scorer_of_learners(self, stream: str, budget: float) -> Iterator[Scorer]:
        """Return what lets all learners play; afterwards they are as they were before."""
        learners = self._learners()
        states_before: dict[str, dict[str, Any]] = {}
        policies = {}
        for name, learner in learners.items():
            policies[name] = partial(_policy_of, learner, states_before)
        yield self._scorer(stream, policies, budget)
        for name, state in states_before.items():
            # A learner that cannot load its own state will fail when it learns.
            with suppress(Exception):
                learners[name].load_state_dict(state)

    def _first_storable(
        self, order: Iterable[str], scores: Mapping[str, Score]
    ) -> StoredPolicy | None:
        """Return the policy of the first of these learners that can be saved.

        Those that cannot get a problem.
        """
        learners = self._learners()
        algorithms = {spec.name: spec.algorithm for spec in self._plan.portfolio.learners}
        for name in order:
            try:
                state, whole = state_of(learners[name])
            except Exception as error:
                scores[name].problem = one_line(f"its policy cannot be saved: {describe(error)}")
                continue
            return StoredPolicy(
                learner=name,
                algorithm=algorithms[name],
                seed=self._seed,
                steps=self._run.steps,
                mean=float(np.mean(scores[name].values)),
                whole=whole,
                state=state,
            )
        return None

    def _log_rows(self, scores: Mapping[str, Score]) -> None:
        rows = [_row(self._run.steps, name, score) for name, score in scores.items()]
        for row in rows:
            self._log.add(*row.cells)
        self._log.flush()
        self._rows += rows

    def _write_best(self, policy: StoredPolicy) -> None:
        write_policy(self._directory / BEST, policy)
        self._best = replace(policy, state={})
        self._fresh_steps = policy.rescored_steps

    def score_best(self, *, tick: Callable[[int], None] = lambda _: None) -> None:
        """Score the best policy on fresh episodes, because the maximum of noisy means is too high.

        Before that, the winner at the end of the run has to be better than the best policy of
        earlier evaluations. Policies are loaded into the run's own learners, so the run must have
        been saved before.
        """
        if self._best is None:
            return
        self._start_counting(tick)
        kept = read_policy(self._directory / BEST)
        duel_steps = 0
        if not self._is_new(kept):
            if self._winner is None:  # the run was killed after its last checkpoint
                _, self._winner = self._race()
            if self._winner is not None:
                kept, duel_steps = self._duel(kept, *self._winner)
                # Whatever was known of it before, the same is done again after a kill.
                kept = replace(kept, rescored=(), rescored_steps=0, problem="")
        if kept.rescored or kept.problem:  # it was scored before the run was extended
            return
        score = self._score_again(kept, duel_steps)
        rescored = replace(
            kept,
            rescored=() if score.problem else tuple(score.values),
            rescored_steps=duel_steps + score.played,
            problem=score.problem,
        )
        self._write_best(rescored)

    def _is_new(self, policy: StoredPolicy) -> bool:
        """Return whether this is a policy of the end of the run, not of an earlier evaluation."""
        return policy.steps >= self._run.steps

    def _duel(
        self, earlier: StoredPolicy, winner: StoredPolicy, values: list[float]
    ) -> tuple[StoredPolicy, int]:
        """Return the better of two policies, and the environment steps that it took.

        The earlier one plays the episodes of the race. Its mean value so far is no evidence,
        because it was the largest of many.
        """
        scorer = self._scorer(
            RACE,
            {earlier.learner: partial(self._load, earlier)},
            DUEL_PART * self._end_steps,
        )
        scorer.play(len(values))
        score = scorer.scores[earlier.learner]
        count = len(score.values)
        if score.problem or not count:
            return winner, score.played
        gain = float(np.mean(score.values)) - float(np.mean(values[:count]))
        is_better = self._run.objective.score(gain) > 0.0
        return (earlier if is_better else winner), score.played

    def _score_again(self, kept: StoredPolicy, duel_steps: int) -> Score:
        """Let the best policy play fresh episodes until the interval of its mean is useful."""
        at_end = [row.played for row in self._rows if row.steps == self._run.steps]
        left = self._end_steps - sum(at_end) - duel_steps
        policies = {kept.learner: partial(self._load, kept)}
        scorer = self._scorer(FRESH, policies, left)
        scorer.play(FRESH_EPISODES)
        score = scorer.scores[kept.learner]
        next_check = FRESH_EPISODES
        while not score.problem and len(score.values) >= FRESH_EPISODES:
            if len(score.values) >= next_check:
                mean = estimate(score.values)
                if mean.ci95 <= USEFUL * abs(mean.mean - self._start_value):
                    break
                next_check = math.ceil(GROWTH * len(score.values))
            if not scorer.play_round([kept.learner]):
                break
        return score

    def _load(self, policy: StoredPolicy) -> Policy:
        learner = self._learners()[policy.learner]
        policy.load_into(learner)
        return greedy(learner)

    def _scorer(
        self, stream: str, policies: Mapping[str, Callable[[], Policy]], budget: float
    ) -> Scorer:
        def generator(number: int) -> np.random.Generator:
            return seeding.generator(self._seed, stream, number)

        return Scorer(
            self._cuts.limited(self._env, self._limit),
            self._run.objective,
            policies,
            stream=generator,
            limit=self._limit,
            budget=budget,
            tick=self._count,
        )

    @property
    def _limit(self) -> int:
        """The steps after which an episode of an evaluation is given up, or cut.

        If no episode of the training has ended, any limit is arbitrary. Then it is one that all
        learners can afford, because otherwise none would be evaluated, and no policy kept.
        """
        longest = self._cuts.longest
        limit = episode_limit(self._plan.config.max_episode_steps, self._env, longest=longest)
        if not self._cuts.is_endless:
            return limit
        affordable = RACE_PART * self._end_steps / (ALLOWANCE * len(self._learners()))
        return min(limit, max(1, int(affordable)))

    @property
    def _end_steps(self) -> float:
        """The steps that the evaluation at the end of the run may take in all."""
        return max(END_SHARE * self._run.steps, self._fewest_steps)

    @property
    def _fewest_steps(self) -> float:
        """The steps that the evaluation at the end may take, however short the training is."""
        return max(FEWEST_STEPS, min(self._episode_allowance, LONGEST_FEWEST))

    @property
    def _episode_allowance(self) -> float:
        """The steps of an episode twice as long as those of the training; 0 without a time limit.

        Without one, a policy can be stuck forever, so nothing is reserved for it.
        """
        return min(own_limit(self._env), 2.0 * self._lengths.mean)

    @property
    def _start_value(self) -> float:
        """The mean value of the first episodes of the training."""
        return float(np.mean(self._first))

    def _add_earlier(self, episodes: Episodes) -> None:
        """Add the episodes from before an interruption."""
        steps = episodes.steps.tolist()
        learners = episodes.learners.tolist()
        values = episodes.values.tolist()
        lengths = episodes.lengths.tolist()
        for each in zip(steps, learners, values, lengths, strict=True):
            self._add(*each)

    def _add(self, steps: int, learner: str, value: float, length: int) -> None:
        """Add an episode of the training, after which it has this many steps."""
        if len(self._first) < FIRST:
            self._first.append(value)
        self._recent.add(steps, value, learner)
        self._lengths.add(steps, float(length))
        self._cuts.add(length)

    def _learners(self) -> dict[str, Any]:  # they may have more than `Learner` declares
        return {learner.name: learner for learner in self._run.learners}

    def _start_counting(self, tick: Callable[[int], None]) -> None:
        self._tick = tick
        self._counter = itertools.count(self.played)

    def _count(self) -> None:
        self._tick(next(self._counter))

    def _read_best(self) -> StoredPolicy:
        """Return the best policy so far, without its state.

        It is one of the evaluations, or from after the checkpoint. Then the evaluations that are
        repeated find it again, and none before is better.
        """
        path = str(self._directory / BEST)
        table = str(self._directory / "evaluations.csv")
        remedy = f"restore it, or remove it and {table!r}, which loses these evaluations"
        try:
            kept = read_policy(self._directory / BEST)
        except EsbasError as error:
            cause = str(error).removesuffix(".")
            raise SaveFileError(
                f"The best policy in {path!r} cannot be read: {cause}. To go on, {remedy}."
            ) from error
        evaluated = {(row.learner, row.steps) for row in self._rows if not row.problem}
        is_after_checkpoint = kept.steps > self._run.steps
        if (kept.learner, kept.steps) not in evaluated and not is_after_checkpoint:
            found = f"that of {kept.learner[:100]!r} at step {kept.steps}"
            wanted = f"a policy of the evaluations in {table!r}"
            raise SaveFileError(f"{path!r} must have {wanted}, but has {found}: {remedy}.")
        return replace(kept, state={})


def episode_limit(max_episode_steps: int, env: Any, *, longest: int) -> int:
    """Return the steps after which an episode of an evaluation is given up.

    Without exploration, a policy can be stuck forever.

    Args:
        max_episode_steps: of the training.
        env: the environment.
        longest: the length of the longest episode of the training that was not cut.
    """
    return min(max_episode_steps, max(SHORTEST_LIMIT, 2 * longest, own_limit(env)))


def own_limit(env: Any) -> int:
    """Return the time limit of an environment in steps; 0 if it has none."""
    return int(getattr(getattr(env, "spec", None), "max_episode_steps", None) or 0)


def _policy_of(learner: Learner, states_before: dict[str, dict[str, Any]]) -> Policy:
    """Return the policy to evaluate.

    One that explores may draw from generators of the learner. Then the learner's state is stored
    before, so that an evaluation does not change the training.
    """
    if not hasattr(learner, "greedy_policy"):
        state = learner.state_dict()  # type: ignore[attr-defined]  # checkpoints need it
        states_before[learner.name] = copy.deepcopy(state)
    return greedy(learner)


def _row(steps: int, name: str, score: Score) -> EvaluationRow:
    values = np.array(score.values) if score.values else np.array([math.nan])
    return EvaluationRow(
        steps=steps,
        learner=name,
        episodes=len(score.values),
        mean=float(values.mean()),
        min=float(values.min()),
        max=float(values.max()),
        played=score.played,
        problem=score.problem,
    )
