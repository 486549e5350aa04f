"""Estimates per meta-algorithm, and the paper's claims compared with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.experiments.gridworld.setup import RATES, Setup
from esbas.kernels.fruit_grid.whole_runs import Counters
from esbas.reporting import Estimate, estimate, estimates

Floats = NDArray[np.float64]
EARLY = 100_000  # the paper's "after 10^5"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the measured values, and whether they agree."""

    paper: str
    measured: str
    verdict: str  # "holds", "more", "less", "no", "undecided" (the interval contains the limit) or "not reached"


class GridworldAnalysis:
    """The counters of all runs as means per episode, by meta-algorithm."""

    def __init__(self, setup: Setup, counters: Mapping[str, Counters]) -> None:
        self.setup, self.edges = setup, setup.edges()
        self._widths = np.diff(self.edges, prepend=0)  # (bins,)
        self._counters = counters
        self.names = tuple(counters)
        self.arms = {name: tuple(learner.name for learner in setup.portfolio(name)) for name in counters}

    def transitions(self, name: str) -> Floats:
        """(R,): transitions per episode over the whole run."""
        return np.asarray(self._counters[name].transitions.sum(axis=1) / self.setup.episodes)

    def whole(self, name: str) -> Floats:
        """(R,): the mean objective over the whole run."""
        return np.asarray(self._counters[name].objective.sum(axis=1) / self.setup.episodes)

    def objective(self, name: str) -> Floats:
        """(R, bins): the mean objective of each bin."""
        return self._counters[name].objective / self._widths

    def shares(self, name: str) -> Floats:
        """(R, bins, K): the share of each learner in the selections of each bin."""
        return self._counters[name].selections / self._widths[:, None]

    def bin_before(self, episode: int) -> int | None:
        """The bin that ends closest to this episode; None if it is more than a twentieth of a decade away."""
        nearest = int(np.abs(np.log10(self.edges / episode)).argmin())
        return nearest if abs(np.log10(self.edges[nearest] / episode)) < 0.05 else None

    def early(self, name: str) -> Estimate | None:
        """The mean objective in the bin before 10^5 episodes; None in shorter runs."""
        before = self.bin_before(EARLY)
        return None if before is None else estimate(self.objective(name)[:, before])

    def final(self, name: str) -> Estimate:
        """The mean objective in the last bin."""
        return estimate(self.objective(name)[:, -1])

    def table(self) -> tuple[list[str], list[list[object]]]:
        """The main results, one row per meta-algorithm."""
        header = ["meta-algorithm", "transitions per episode", "objective, last bin", "objective before 10^5"]
        rows: list[list[object]] = [
            [title(name), estimate(self.transitions(name)), self.final(name), self.early(name) or "–"] for name in self.names
        ]
        return header, rows

    def summary(self) -> dict[str, Any]:
        return {
            "optimum": self.setup.grid.optimum(),
            "bins": self.edges,
            "meta_algorithms": {name: self._summary(name) for name in self.names},
        }

    def _summary(self, name: str) -> dict[str, Any]:
        mean, ci95 = estimates(self.objective(name))
        shares = self.shares(name).mean(axis=0)  # (bins, K)
        return {
            "mean_transitions": estimate(self.transitions(name)),
            "final_objective": self.final(name),
            "objective_at_1e5": self.early(name),
            "objective": {"mean": mean, "ci95": ci95},
            "selection_ratio": {arm: shares[:, k] for k, arm in enumerate(self.arms[name])},
        }

    def claims(self) -> list[Claim]:
        """The sentences of Section 5.1 that state a number or an order."""
        return [
            self._leader("SSBAS selects the rate 0.5 most in the first stages", 1000, "0.5"),
            self._leader("then preferably 0.01", 25_000, "0.01"),
            self._leader("finally it favours the finest rate, 0.001", 1_000_000, "0.001"),
            self._extreme("the best fixed rate is 0.1", "0.1", sign=1),
            self._extreme("the worst fixed rate is 0.001", "0.001", sign=-1),
            self._saving("half a transition per episode is saved against 0.1", "0.1", 0.25, 0.75),
            self._saving("two transitions are saved against 0.001", "0.001", 1.5, 2.5),
            self._level("SSBAS needs less than 21 steps after 10^5 episodes", "ssbas", EARLY, 0, 21),
            self._level("the annealed rate still needs more than 21 after 10^6", "annealed", 1_000_000, 21, np.inf),
        ]

    def _leader(self, paper: str, episode: int, arm: str) -> Claim:
        before = self.bin_before(episode)
        if before is None:
            return Claim(paper, "–", "not reached")
        shares, arms = self.shares("ssbas")[:, before], self.arms["ssbas"]  # (R, K)
        k = arms.index(arm)
        rival = max((i for i in range(len(arms)) if i != k), key=lambda i: shares[:, i].mean())
        lead = estimate(shares[:, k] - shares[:, rival])
        measured = ", ".join(f"{arms[i]}: {_percent(estimate(shares[:, i]))}" for i in (k, rival))
        return Claim(paper, f"{measured} of the selections in the bin before {episode:,}", judge(lead, 0, 2, beyond=("no", "no")))

    def _extreme(self, paper: str, rate: str, *, sign: int) -> Claim:
        means = {str(each): sign * self.transitions(str(each)) for each in RATES}
        rival = min((name for name in means if name != rate), key=lambda name: means[name].mean())
        measured = ", ".join(f"{name}: {estimate(sign * means[name])}" for name in (rate, rival))
        margin = estimate(means[rival] - means[rate])
        return Claim(paper, f"{measured} transitions per episode", judge(margin, 0, np.inf, beyond=("no", "no")))

    def _saving(self, paper: str, name: str, low: float, high: float) -> Claim:
        saved = estimate(self.transitions(name) - self.transitions("ssbas"))
        late = estimate(self.objective(name)[:, -1] - self.objective("ssbas")[:, -1])
        return Claim(paper, f"{saved} over the whole run; {late} in the last bin", judge(saved, low, high))

    def _level(self, paper: str, name: str, episode: int, low: float, high: float) -> Claim:
        before = self.bin_before(episode)
        if before is None:
            return Claim(paper, "–", "not reached")
        level = estimate(self.objective(name)[:, before])
        return Claim(paper, f"{level} in the bin before {episode:,}", judge(level, low, high))


def judge(measured: Estimate, low: float, high: float, *, beyond: tuple[str, str] = ("less", "more")) -> str:
    """Whether the interval lies within the limits, beyond one of them, or contains one. A single run is always undecided."""
    least, most = measured.mean - measured.ci95, measured.mean + measured.ci95
    if low <= least and most <= high:
        return "holds"
    if most < low:
        return beyond[0]
    return beyond[1] if least > high else "undecided"


def title(name: str) -> str:
    """The display name of a meta-algorithm."""
    if name in map(str, RATES):
        return f"rate {name}"
    titles = {
        "ssbas": "SSBAS",
        "esbas": "ESBAS",
        "kalman-thompson": "Kalman Thompson",
        "budgeted-thompson": "budgeted Thompson",
        "annealed": "annealed rate",
    }
    return titles.get(name, name)


def _percent(share: Estimate) -> str:
    return f"{Estimate(100 * share.mean, 100 * share.ci95, share.runs)} %"
