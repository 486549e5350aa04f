"""Every trajectory is evidence for every arm: a selector for epochs, in which policies are frozen."""

import math
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.epoch_evidence import EpochEvidence
from esbas.selectors.policy_probes import PolicyProbes
from esbas.selectors.selector import SELECTORS, Selector


@SELECTORS.register("shared-evidence")
class SharedEvidence(Selector):
    """Estimate the values of all arms from the trajectories of all arms, and draw from the posterior (Thompson sampling).

    Within an epoch, every frozen policy can say how probable it finds the actions of any trajectory. With t trajectories in the
    epoch, n_k of them by arm k, values R_i and probabilities p_ik of all actions of trajectory i, the balance heuristic of
    multiple importance sampling (Veach & Guibas 1995) gives

        w_ik = p_ik / Σ_j (n_j / t) p_ij,    S_k = Σ_i w_ik,    V_k = Σ_i w_ik R_i / S_k,
        C_kl = Σ_i w_ik (R_i - V_k) w_il (R_i - V_l) / (max(S_k, 1) max(S_l, 1)),    C_kk += 4 s² / n_k²,

    where s² is the variance of all values, with weights that are halved in each epoch. An arm whose policy did not change since
    the last epoch keeps its evidence: the estimates of its epochs, weighted by 1 / C_kk, are one more observation of its value.
    Changed arms without a pull in the epoch go first. Then θ ~ N(V, C) is drawn, and the best of the changed arms by θ is
    compared with the unchanged arms by V_k + sqrt(ln(τ + 1) C_kk). Without overlap between policies this is Thompson sampling
    from the values of each arm alone. `docs/selectors.md` has the details.

    Evidence is needed: `esbas.run` provides it, and your own loop passes it to `tell`. An episode without evidence counts for the
    arm that acted alone, and an arm whose policy has no `log_probs` is judged by its own episodes alone.

    Args:
        arms: the names of the learners.
        epochs: the lengths of the epochs; by default 1, 2, 4, ...; after the last given one, lengths double.
        stationary: arms whose learners never learn, so that their policies do not change.
        seed: seed of the selector's random stream.
    """

    wants = frozenset({"log_probs"})
    note_shape = schema.COUNT  # the epoch

    def __init__(
        self, arms: Iterable[str], *, epochs: Sequence[int] | None = None, stationary: Collection[str] = (), seed: int = 0
    ) -> None:
        super().__init__(arms, epochs=[1] if epochs is None else epochs, stationary=stationary, seed=seed)
        self._evidence = EpochEvidence(len(self._arms))
        self._pulls = dict.fromkeys(self._arms, 0)  # choices of this epoch that were not withdrawn
        self._alone: set[str] = set()  # arms that were added in this epoch: earlier trajectories say nothing about them
        self._origin: float | None = None  # the first value; others are stored as differences to it
        self._probes = PolicyProbes()  # the last trajectories with evidence
        self._warned = False

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        arms = sorted(map(self._arms.index, among))
        evidence, changed = self._evidence, [k for k in arms if not self._evidence.unchanged[k]]
        unplayed = [k for k in changed if not self._pulls[self._arms[k]]]
        if unplayed:
            return self._pulled(unplayed[0], 1.0)
        finalists, propensity = [k for k in arms if evidence.unchanged[k]], None if len(changed) > 1 else 1.0
        if len(changed) > 1:
            samples = evidence.sample(self.rng.standard_normal(len(self._arms)))
            changed = [max(changed, key=samples.__getitem__)]
        best = max(sorted(finalists + changed), key=lambda k: evidence.optimistic(k, self._number))
        return self._pulled(best, propensity)

    def _pulled(self, arm: int, propensity: float | None) -> Pick:
        name = self._arms[arm]
        self._pulls[name] += 1
        return Pick(name, propensity, self.epoch)

    def observe(self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None) -> None:
        if note != self.epoch:  # late: the policies have changed since
            return
        if self._origin is None:
            self._origin = value
        arm = self._arms.index(choice.arm)
        log_probs = {} if evidence is None else self._log_probs(evidence)
        if evidence is not None:
            self._keep(evidence, log_probs)
        self._evidence.add(arm, value - self._origin, self._totals(arm, log_probs))

    def _log_probs(self, evidence: Evidence) -> dict[str, Array]:
        """(T,) for each arm whose policy can compute them."""
        found = {name: evidence.log_probs(name) for name in self._arms}
        missing = [name for name in self._arms if found[name] is None]
        if missing and not self._warned:
            self._warned = True
            names = ", ".join(map(repr, missing))
            warnings.warn(f"no log-probabilities from {names}: judged by their own episodes only", stacklevel=4)
        return {name: np.asarray(steps, np.float64) for name, steps in found.items() if steps is not None}

    def _totals(self, acted: int, log_probs: dict[str, Array]) -> list[float]:
        """(K,): of all actions. If those of the arm that acted are unknown, nothing is known about other arms."""
        known = {} if self._arms[acted] in self._alone else {name: log_probs[name].sum() for name in log_probs}
        totals = {name: float(total) for name, total in known.items() if math.isfinite(total) and name not in self._alone}
        if self._arms[acted] not in totals:
            totals = {self._arms[acted]: 0.0}
        return [totals.get(name, -math.inf) for name in self._arms]

    def _keep(self, evidence: Evidence, log_probs: dict[str, Array]) -> None:
        """Keep the trajectory for the next epoch. The first one of an epoch tells which policies are those of the last epoch."""
        if self._probes.epoch != self.epoch:
            if self._probes.epoch == self.epoch - 1:
                known = zip(self._arms, self._evidence.unchanged, strict=True)
                self._evidence.unchanged = [same or self._probes.unchanged(name, evidence) for name, same in known]
                self._evidence.fit()
            self._probes = PolicyProbes(self.epoch)
        self._probes.add(evidence.trajectory, log_probs)

    def forget(self, choice: Choice, *, note: Any) -> None:
        if note == self.epoch:
            self._pulls[choice.arm] -= 1

    def start_epoch(self) -> None:
        self._evidence.start_epoch([self._epoch > 0 and name in self._stationary for name in self._arms])
        self._pulls, self._alone = dict.fromkeys(self._arms, 0), set()

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        """The new arm is judged by its own episodes until the next epoch."""
        with self._lock:
            super().add_arm(name, stationary=stationary)
            self._evidence.add_arm()
            self._pulls[name] = 0
            self._alone.add(name)

    def remove_arm(self, name: str) -> None:
        with self._lock:
            index = self._index(name)
            super().remove_arm(name)
            self._evidence.remove_arm(index)
            del self._pulls[name]
            self._alone.discard(name)
            self._probes.forget(name)

    def explain(self) -> dict[str, dict[str, float]]:
        """Adds pulls of this epoch, V_k, sqrt(C_kk), the effective sample size, and whether the policy is unchanged."""
        with self._lock:
            report, evidence = super().explain(), self._evidence
            deviations = np.sqrt(evidence.covariance.diagonal())
            for k, (arm, row) in enumerate(report.items()):
                row |= {
                    "pulls": self._pulls[arm],
                    "value": (self._origin or 0.0) + float(evidence.estimates[k]),
                    "spread": float(deviations[k]),
                    "effective": float(evidence.effective[k]),
                    "unchanged": float(evidence.unchanged[k]),
                }
            return report

    def state_dict(self) -> dict[str, Any]:
        """Its size is proportional to the number of trajectories of the epoch times the number of arms."""
        with self._lock:
            pulls = [self._pulls[arm] for arm in self._arms]
            own = {"pulls": pulls, "alone": sorted(self._alone), "origin": self._origin}
            parts = {"evidence": self._evidence.state_dict(), "probes": self._probes.state_dict()}
            return super().state_dict() | own | parts

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with self._lock:
            self.check_state(state)
            super().load_state_dict(state)
            self._evidence = EpochEvidence.from_state(state["evidence"])
            self._probes = PolicyProbes.from_state(state["probes"])
            self._pulls = dict(zip(self._arms, state["pulls"], strict=True))
            self._alone, self._origin = set(state["alone"]), None if state["origin"] is None else float(state["origin"])

    def check_state(self, state: Any) -> None:
        super().check_state(state)
        where = "the state of a SharedEvidence"
        own = {"pulls": [schema.COUNT], "alone": [str], "origin": schema.AnyOf(float, None), "evidence": dict}
        schema.check(state, own | {"probes": dict, str: object}, where)
        arms, evidence, pulls = state["arms"], EpochEvidence.from_state(state["evidence"]), state["pulls"]
        schema.require(set(state["alone"]) <= set(arms), "new arms are arms", where, alone=state["alone"], arms=arms)
        schema.require(len(pulls) == len(arms) == evidence.n_arms, "there is one number per arm", where, arms=arms, pulls=pulls)
        opened = Counter(choice["arm"] for choice, epoch, known in state["open"] if known and epoch == max(state["epoch"], 0))
        fits = all(pulls[k] == evidence.counts[k] + opened[name] for k, name in enumerate(arms))
        schema.require(fits, "pulls are trajectories plus open choices", where, pulls=pulls, trajectories=evidence.counts)
        started = state["origin"] is not None or not evidence.arms
        schema.require(started, "the origin is the first value", where, origin=state["origin"])
        PolicyProbes.from_state(state["probes"])
