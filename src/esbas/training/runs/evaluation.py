"""Evaluation during training: greedy policies play episodes from which nobody learns, and the best one is kept."""

import copy
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import esbas
from esbas import seeding
from esbas.errors import EsbasError, SaveFileError, describe
from esbas.faults import raise_unless_fault
from esbas.learner import Learner, Policy
from esbas.runner import EpisodeRecord
from esbas.training.callbacks import Evaluation
from esbas.training.policies.policy_file import BEST, StoredPolicy, read_policy, state_of, write_policy
from esbas.training.policies.scoring import Score, Scorer, greedy
from esbas.training.runs.episode_log import EVALUATIONS, CsvLog, EvaluationRow, one_line, read_episodes, read_evaluations
from esbas.training.runs.plan import Plan

SHARE, FINAL_SHARE = 0.10, 0.05  # of the training's steps: an evaluation at the end, if none was asked for, and each final
FRESH_SHARE, FRESH_EPISODES, FEWEST = 0.05, 20, 2  # the same for the best policy, which is scored again at the end
SHORTEST_LIMIT = 1000  # steps until an episode of an evaluation is given up


class Evaluator:
    """The evaluations of one run, in `evaluations.csv`, and its best policy so far, in `best.npz`; a context manager.

    When evaluations are due depends on the steps of the training alone, so a run that continues repeats those after its
    checkpoint, with the same results.
    """

    def __init__(self, plan: Plan, seed: int, directory: Path, run: esbas.Run) -> None:
        self._plan, self._seed, self._directory, self._run = plan, seed, directory, run
        self._rows = read_evaluations(directory, upto=run.steps) if run.number else []
        self._longest = int(read_episodes(directory, upto=run.number).lengths.max()) if run.number else 0
        self._best = max(_winners(self._rows, self._rank), key=self._rank, default=None)
        self._fresh_steps = 0  # of scoring the best policy again
        if self._best is not None:
            self._check_best(self._best)

    def __enter__(self) -> "Evaluator":
        self._log = CsvLog(self._directory / "evaluations.csv", EVALUATIONS, [row.cells for row in self._rows])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._log.close()

    @property
    def played(self) -> int:
        """The environment steps of all evaluations."""
        return sum(row.played for row in self._rows) + self._fresh_steps

    def flush(self) -> None:
        self._log.flush(to_disk=True)

    def after(self, record: EpisodeRecord, *, tick: Callable[[int], None] = lambda _: None) -> list[Evaluation]:
        """The evaluations that are due after this episode; `tick` is called with the steps of evaluations before each of them."""
        self._tick, self._counter = tick, itertools.count(self.played)
        every, steps = self._plan.eval_every, self._run.steps
        self._longest = max(self._longest, record.length)
        due = every and steps // every > (steps - record.length) // every
        if not (due or self._run.done):
            return []
        scores = self._evaluate()
        if self._run.done and self._best is not None:
            self._score_again()
        return [
            Evaluation(learner=name, steps=steps, values=tuple(score.values), played=score.played)
            for name, score in scores.items()
            if score.values
        ]

    def _evaluate(self) -> dict[str, Score]:
        """Let all members play, add the rows, and keep the best policy if it is better than those before."""
        members = {learner.name: learner for learner in self._run.learners}
        before: dict[str, dict[str, Any]] = {}
        policies = {name: partial(_policy_of, learner, before) for name, learner in members.items()}
        settings = {"allowance": math.inf} if self._plan.eval_every else {"allowance": SHARE * self._run.steps}
        settings |= {"finals": FINAL_SHARE * self._run.steps if self._run.done else 0.0}
        scores = self._score("evaluation in training", policies, episodes=self._plan.eval_episodes, **settings)
        for name, state in before.items():
            with suppress(Exception):  # a learner that cannot load its own state fails when it learns
                members[name].load_state_dict(state)  # type: ignore[attr-defined]  # it has state_dict
        rows = [_row(self._run.steps, name, score) for name, score in scores.items()]
        while (row := next(_winners(rows, self._rank), None)) is not None:
            if self._best is not None and self._rank(row) <= self._rank(self._best):
                break
            problem = self._keep(row, members[row.learner])
            if not problem:
                self._best = row
                break
            rows[rows.index(row)] = dataclasses.replace(row, problem=problem)
        for row in rows:
            self._log.add(*row.cells)
        self._log.flush()
        self._rows += rows
        return scores

    def _keep(self, row: EvaluationRow, learner: Learner) -> str:
        """Write the policy to best.npz; returns why that is not possible, or nothing."""
        try:
            state, whole = state_of(learner)
        except BaseException as error:
            raise_unless_fault(error)
            return one_line(f"its policy cannot be saved: {describe(error)}")
        (algorithm,) = (member.algorithm for member in self._plan.recipe.members if member.name == row.learner)
        about: dict[str, Any] = {
            "learner": row.learner,
            "algorithm": algorithm,
            "seed": self._seed,
            "steps": row.steps,
            "mean": row.mean,
        }
        write_policy(self._directory / BEST, StoredPolicy(**about, whole=whole, state=state))
        self._fresh_steps = 0
        return ""

    def _score_again(self) -> None:
        """Score the best policy on fresh episodes, because the maximum of noisy means is too high."""
        kept = read_policy(self._directory / BEST)
        if kept.rescored or kept.problem:  # before the run was extended
            return
        spaces = {name: getattr(self._run.env, name) for name in ("observation_space", "action_space")}
        built: list[Learner] = []

        def load() -> Policy:
            built.append(kept.build(self._plan, **spaces))
            return greedy(built[0])

        settings = {"episodes": FRESH_EPISODES, "allowance": FRESH_SHARE * self._run.steps, "at_least": FEWEST}
        score = self._score("best policy", {kept.learner: load}, **settings)[kept.learner]
        for learner in built:
            getattr(learner, "close", lambda: None)()
        values = () if score.problem else tuple(score.values)
        again = dataclasses.replace(kept, rescored=values, rescored_steps=score.played, problem=score.problem)
        write_policy(self._directory / BEST, again)
        self._fresh_steps = score.played

    def _score(self, stream: str, policies: Mapping[str, Callable[[], Policy]], **settings: Any) -> dict[str, Score]:
        def generator(number: int) -> np.random.Generator:
            return seeding.generator(self._seed, stream, number)

        limit = episode_limit(self._plan, self._run.env, longest=self._longest)
        scorer = Scorer(self._plan.task, self._run.objective, stream=generator, limit=limit, tick=self._count)
        try:
            return scorer.score(policies, **settings)
        finally:
            scorer.close()

    def _count(self) -> None:
        self._tick(next(self._counter))

    def _rank(self, row: EvaluationRow) -> float:
        return self._run.objective.score(row.mean)

    def _check_best(self, best: EvaluationRow) -> None:
        """Raise an error unless best.npz has this policy, or one that is found again after the checkpoint."""
        path = self._directory / BEST
        remedy = f"restore it, or remove it and {str(self._directory / 'evaluations.csv')!r}, which loses these evaluations"
        try:
            kept = read_policy(path)
        except EsbasError as error:
            raise SaveFileError(f"the best policy must be in {str(path)!r}, but {error}; or {remedy}") from error
        if kept.steps <= self._run.steps and (kept.learner, kept.steps) != (best.learner, best.steps):
            found = f"that of {kept.learner[:100]!r} at step {kept.steps}"
            wanted = f"the policy of {best.learner[:100]!r} at step {best.steps}"
            raise SaveFileError(f"{str(path)!r} must have {wanted}, but has {found}: {remedy}")
        self._fresh_steps = kept.rescored_steps


def episode_limit(plan: Plan, env: Any, *, longest: int) -> int:
    """The steps after which an episode of an evaluation is given up: greedy policies can be stuck forever."""
    own = getattr(getattr(env, "spec", None), "max_episode_steps", None) or 0
    return min(plan.max_steps, max(SHORTEST_LIMIT, 2 * longest, own))


def _policy_of(learner: Learner, before: dict[str, dict[str, Any]]) -> Policy:
    """The policy to evaluate. One that explores may draw from generators of the learner: then `before` gets its state."""
    if not hasattr(learner, "greedy_policy"):
        before[learner.name] = copy.deepcopy(learner.state_dict())  # type: ignore[attr-defined]  # checkpoints need it
    return greedy(learner)


def _winners(rows: Iterable[EvaluationRow], rank: Callable[[EvaluationRow], float]) -> Iterator[EvaluationRow]:
    """The best row of each evaluation: of those with most episodes, which reached the finals, the one with the best mean."""
    valid = [row for row in rows if not row.problem]
    for steps in dict.fromkeys(row.steps for row in valid):
        yield max((row for row in valid if row.steps == steps), key=lambda row: (row.episodes, rank(row)))  # ties: the first


def _row(steps: int, name: str, score: Score) -> EvaluationRow:
    values = np.array(score.values) if score.values else np.array([math.nan])
    numbers = float(values.mean()), float(values.min()), float(values.max())
    return EvaluationRow(steps, name, len(score.values), *numbers, score.played, score.problem)
