"""Estimates per meta-algorithm, and the paper's claims compared with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.experiments.gridworld.setup import RATES, Setup
from esbas.experiments.kernels.fruit_grid.whole_runs import Counters
from esbas.reporting import Estimate, estimate, estimates

Floats = NDArray[np.float64]
EARLY = 100_000  # the paper's "after 10^5"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the measured values, and whether they agree.

    Attributes:
        paper: the sentence.
        measured: the measured values.
        verdict: "holds", "more", "less", "no", "undecided" (the interval contains the limit) or
            "not reached".
    """

    paper: str
    measured: str
    verdict: str


class GridworldAnalysis:
    """The counters of all runs as means per episode, by meta-algorithm."""

    def __init__(self, setup: Setup, counters: Mapping[str, Counters]) -> None:
        self.setup = setup
        self.edges = setup.edges()
        self._widths = np.diff(self.edges, prepend=0)  # (bins,)
        self._counters = counters
        self.names = tuple(counters)
        self.arms: dict[str, tuple[str, ...]] = {}
        for name in counters:
            self.arms[name] = tuple(learner.name for learner in setup.portfolio(name))

    def transitions(self, name: str) -> Floats:
        """Return transitions per episode over the whole run, (R,)."""
        return np.asarray(self._counters[name].transitions.sum(axis=1) / self.setup.episodes)

    def whole(self, name: str) -> Floats:
        """Return the mean objective over the whole run, (R,)."""
        return np.asarray(self._counters[name].objective.sum(axis=1) / self.setup.episodes)

    def objective(self, name: str) -> Floats:
        """Return the mean objective of each bin, (R, bins)."""
        return self._counters[name].objective / self._widths

    def shares(self, name: str) -> Floats:
        """Return the share of each learner in the selections of each bin, (R, bins, K)."""
        return self._counters[name].selections / self._widths[:, None]

    def bin_before(self, episode: int) -> int | None:
        """Return the bin that ends closest to this episode.

        None if it is more than a twentieth of a decade away.
        """
        distances = np.abs(np.log10(self.edges / episode))  # in decades
        nearest = int(distances.argmin())
        return nearest if distances[nearest] < 0.05 else None

    def early(self, name: str) -> Estimate | None:
        """Return the mean objective in the bin before 10^5 episodes; None in shorter runs."""
        before = self.bin_before(EARLY)
        if before is None:
            return None
        return estimate(self.objective(name)[:, before])

    def final(self, name: str) -> Estimate:
        """Return the mean objective in the last bin."""
        return estimate(self.objective(name)[:, -1])

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return the main results, one row per meta-algorithm."""
        header = [
            "meta-algorithm",
            "transitions per episode",
            "objective, last bin",
            "objective before 10^5",
        ]
        rows: list[list[object]] = []
        for name in self.names:
            transitions = estimate(self.transitions(name))
            rows.append([title(name), transitions, self.final(name), self.early(name) or "–"])
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
        """Return the sentences of Section 5.1 that state a number or an order."""
        return [
            self._leader("SSBAS selects the rate 0.5 most in the first stages", 1000, "0.5"),
            self._leader("then preferably 0.01", 25_000, "0.01"),
            self._leader("finally it favors the finest rate, 0.001", 1_000_000, "0.001"),
            self._extreme("the best fixed rate is 0.1", "0.1", sign=1),
            self._extreme("the worst fixed rate is 0.001", "0.001", sign=-1),
            self._saving("half a transition per episode is saved against 0.1", "0.1", 0.25, 0.75),
            self._saving("two transitions are saved against 0.001", "0.001", 1.5, 2.5),
            self._level(
                "SSBAS needs less than 21 steps after 10^5 episodes", "ssbas", EARLY, 0, 21
            ),
            self._level(
                "the annealed rate still needs more than 21 after 10^6",
                "annealed",
                1_000_000,
                21,
                np.inf,
            ),
        ]

    def _leader(self, paper: str, episode: int, arm: str) -> Claim:
        before = self.bin_before(episode)
        if before is None:
            return Claim(paper, "–", "not reached")
        shares = {}
        for k, name in enumerate(self.arms["ssbas"]):
            shares[name] = self.shares("ssbas")[:, before, k]  # (R,)
        others = [name for name in shares if name != arm]
        rival = max(others, key=lambda name: shares[name].mean())
        lead = estimate(shares[arm] - shares[rival])
        own_share = _percent(estimate(shares[arm]))
        rival_share = _percent(estimate(shares[rival]))
        measured = (
            f"{arm}: {own_share}, {rival}: {rival_share}"
            f" of the selections in the bin before {episode:,}"
        )
        return Claim(paper, measured, judge(lead, 0, 2, beyond=("no", "no")))

    def _extreme(self, paper: str, rate: str, *, sign: int) -> Claim:
        """Compare a fixed rate with the other ones: `sign` 1 if it is the best, -1 the worst."""
        steps = {str(each): self.transitions(str(each)) for each in RATES}
        others = [name for name in steps if name != rate]
        rival = min(others, key=lambda name: sign * steps[name].mean())
        margin = estimate(sign * (steps[rival] - steps[rate]))
        measured = (
            f"{rate}: {estimate(steps[rate])}, {rival}: {estimate(steps[rival])}"
            " transitions per episode"
        )
        return Claim(paper, measured, judge(margin, 0, np.inf, beyond=("no", "no")))

    def _saving(self, paper: str, name: str, low: float, high: float) -> Claim:
        saved = estimate(self.transitions(name) - self.transitions("ssbas"))
        late = estimate(self.objective(name)[:, -1] - self.objective("ssbas")[:, -1])
        measured = f"{saved} over the whole run; {late} in the last bin"
        return Claim(paper, measured, judge(saved, low, high))

    def _level(self, paper: str, name: str, episode: int, low: float, high: float) -> Claim:
        before = self.bin_before(episode)
        if before is None:
            return Claim(paper, "–", "not reached")
        level = estimate(self.objective(name)[:, before])
        return Claim(paper, f"{level} in the bin before {episode:,}", judge(level, low, high))


def judge(
    measured: Estimate, low: float, high: float, *, beyond: tuple[str, str] = ("less", "more")
) -> str:
    """Return whether the interval lies within the limits, beyond one of them, or contains one.

    A single run is always undecided.
    """
    least = measured.mean - measured.ci95
    most = measured.mean + measured.ci95
    if low <= least and most <= high:
        return "holds"
    if most < low:
        return beyond[0]
    if least > high:
        return beyond[1]
    return "undecided"


def title(name: str) -> str:
    """Return the display name of a meta-algorithm."""
    if name in map(str, RATES):
        return f"rate {name}"
    titles = {
        "ssbas": "SSBAS",
        "esbas": "ESBAS",
        "kalman-thompson": "Kalman Thompson",
        "annealed": "annealed rate",
    }
    return titles.get(name, name)


def _percent(share: Estimate) -> str:
    return f"{Estimate(100 * share.mean, 100 * share.ci95, share.runs)} %"
