"""A selector for epochs with frozen policies: every trajectory is evidence for every arm."""

import math
import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import COUNT, AnyOf
from esbas.errors import require
from esbas.evidence import Evidence
from esbas.selectors.choice import Choice, Pick
from esbas.selectors.epoch_evidence import EpochEvidence
from esbas.selectors.policy_probes import PolicyProbes
from esbas.selectors.selector import SELECTORS, Selector


@SELECTORS.register("shared-evidence")
class SharedEvidence(Selector):
    """Thompson sampling with values that are estimated from the trajectories of all arms.

    Within an epoch, every frozen policy can compute the probability of the actions of any
    trajectory. With t trajectories in the epoch, n_k of them by arm k, values R_i and probabilities
    p_ik of all actions of trajectory i, the balance heuristic of multiple importance sampling
    (Veach & Guibas 1995) gives

        w_ik = p_ik / Σ_j (n_j / t) p_ij,    S_k = Σ_i w_ik,    V_k = Σ_i w_ik R_i / S_k,
        C_kl = Σ_i w_ik (R_i - V_k) w_il (R_i - V_l) / (max(S_k, 1) max(S_l, 1)),
        C_kk += 4 s² / n_k²,

    where s² is the variance of all values, with weights that are halved in each epoch. An arm whose
    policy did not change since the last epoch keeps its evidence: the estimates of its epochs,
    weighted by 1 / C_kk, are one more observation of its value. Changed arms without a pull in the
    epoch go first. Then θ ~ N(V, C) is drawn, and the best of the changed arms by θ is compared
    with the unchanged arms by V_k + sqrt(ln(τ + 1) C_kk). Without overlap between policies this is
    Thompson sampling from the values of each arm alone. `docs/selectors.md` has the details.

    Evidence is needed: `esbas.run` provides it, and your own loop passes it to `tell`. An episode
    without evidence counts for the arm that acted alone, and an arm whose policy has no `log_probs`
    is judged by its own episodes alone.

    Args:
        arms: the names of the learners.
        epochs: the lengths of the epochs; by default 1, 2, 4, ...; after the last given one,
            lengths double.
        stationary: arms whose learners never learn, so that their policies do not change.
        seed: seed of the selector's random stream.
    """

    wants = frozenset({"log_probs"})
    note_shape = COUNT  # the epoch

    def __init__(
        self,
        arms: Iterable[str],
        *,
        epochs: Sequence[int] | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        if epochs is None:
            epochs = [1]
        super().__init__(arms, epochs=epochs, stationary=stationary, seed=seed)
        self._evidence = EpochEvidence(len(self._arms))
        self._pulls = dict.fromkeys(self._arms, 0)  # choices of this epoch that were not withdrawn
        # Arms that were added in this epoch: earlier trajectories are no evidence for them.
        self._alone: set[str] = set()
        self._origin: float | None = None  # the first value; others are stored as differences to it
        self._probes = PolicyProbes()  # the last trajectories with evidence
        self._warned = False

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        arms = sorted(self._arms.index(name) for name in among)
        evidence = self._evidence
        changed = [k for k in arms if not evidence.unchanged[k]]
        unchanged = [k for k in arms if evidence.unchanged[k]]
        unplayed = [k for k in changed if not self._pulls[self._arms[k]]]
        if unplayed:
            return self._pulled(unplayed[0], 1.0)
        propensity: float | None = 1.0
        if len(changed) > 1:
            propensity = None
            samples = evidence.sample(self.rng.standard_normal(len(self._arms)))
            changed = [max(changed, key=samples.__getitem__)]
        finalists = sorted(unchanged + changed)
        best = max(finalists, key=lambda k: evidence.optimistic(k, self._number))
        return self._pulled(best, propensity)

    def _pulled(self, arm: int, propensity: float | None) -> Pick:
        name = self._arms[arm]
        self._pulls[name] += 1
        return Pick(name, propensity, note=self.epoch)

    def observe(
        self, choice: Choice, value: float, *, note: Any, evidence: Evidence | None
    ) -> None:
        if note != self.epoch:
            return  # late: the policies have changed since
        if self._origin is None:
            self._origin = value
        log_probs: dict[str, Array] = {}
        if evidence is not None:
            log_probs = self._log_probs(evidence)
            self._keep(evidence, log_probs)
        totals = self._totals(choice.arm, log_probs)
        self._evidence.add(self._arms.index(choice.arm), value - self._origin, totals)

    def _log_probs(self, evidence: Evidence) -> dict[str, Array]:
        """Return the log-probabilities of all actions, (T,), under each policy that has them."""
        found = {}
        missing = []
        for name in self._arms:
            log_probs = evidence.log_probs(name)
            if log_probs is None:
                missing.append(repr(name))
            else:
                found[name] = np.asarray(log_probs, np.float64)
        if missing and not self._warned:
            self._warned = True
            warnings.warn(
                f"No log-probabilities from {', '.join(missing)}: "
                "they are judged by their own episodes only.",
                stacklevel=4,
            )
        return found

    def _totals(self, acted: str, log_probs: dict[str, Array]) -> list[float]:
        """Return the log-probability of all actions under the policy of each arm, (K,).

        It is -inf where it is unknown. If that of the arm that acted is unknown, the trajectory is
        evidence for this arm alone.
        """
        totals = {}
        for name, steps in log_probs.items():
            total = float(steps.sum())
            if math.isfinite(total) and name not in self._alone:
                totals[name] = total
        if acted not in totals:
            totals = {acted: 0.0}
        return [totals.get(name, -math.inf) for name in self._arms]

    def _keep(self, evidence: Evidence, log_probs: dict[str, Array]) -> None:
        """Keep the trajectory for the next epoch.

        The evidence of the first one of an epoch shows which policies are those of the last epoch.
        """
        if self._probes.epoch != self.epoch:
            if self._probes.epoch == self.epoch - 1:
                self._find_unchanged(evidence)
            self._probes = PolicyProbes(self.epoch)
        self._probes.add(evidence.trajectory, log_probs)

    def _find_unchanged(self, evidence: Evidence) -> None:
        unchanged = []
        for name, stationary in zip(self._arms, self._evidence.unchanged, strict=True):
            unchanged.append(stationary or self._probes.unchanged(name, evidence))
        self._evidence.unchanged = unchanged
        self._evidence.fit()

    def forget(self, choice: Choice, *, note: Any) -> None:
        if note == self.epoch:
            self._pulls[choice.arm] -= 1

    def start_epoch(self) -> None:
        # Other policies may turn out to be unchanged with the first trajectory of the epoch.
        unchanged = [self._epoch > 0 and name in self._stationary for name in self._arms]
        self._evidence.start_epoch(unchanged)
        self._pulls = dict.fromkeys(self._arms, 0)
        self._alone = set()

    def add_arm(self, name: str, *, stationary: bool = False) -> None:
        """Add an unplayed arm, which is judged by its own episodes until the next epoch."""
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
        """Return the estimates, too.

        These are the pulls of this epoch, V_k, √C_kk, the effective sample size, and whether the
        policy is unchanged.
        """
        with self._lock:
            report = super().explain()
            evidence = self._evidence
            origin = 0.0 if self._origin is None else self._origin
            deviations = np.sqrt(evidence.covariance.diagonal())
            for k, (arm, row) in enumerate(report.items()):
                row["pulls"] = self._pulls[arm]
                row["value"] = origin + float(evidence.estimates[k])
                row["spread"] = float(deviations[k])
                row["effective"] = float(evidence.effective[k])
                row["unchanged"] = float(evidence.unchanged[k])
            return report

    def state_dict(self) -> dict[str, Any]:
        """Return everything that changes, as plain data.

        Its size is proportional to the number of trajectories of the epoch times the number of
        arms.
        """
        with self._lock:
            return super().state_dict() | {
                "pulls": [self._pulls[arm] for arm in self._arms],
                "alone": sorted(self._alone),
                "origin": self._origin,
                "evidence": self._evidence.state_dict(),
                "probes": self._probes.state_dict(),
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with self._lock:
            super().load_state_dict(state)
            self._evidence = EpochEvidence.from_state(state["evidence"])
            self._probes = PolicyProbes.from_state(state["probes"])
            self._pulls = dict(zip(self._arms, state["pulls"], strict=True))
            self._alone = set(state["alone"])
            self._origin = None if state["origin"] is None else float(state["origin"])

    def check_state(self, state: Any) -> None:
        super().check_state(state)
        schema.check(state, _STATE, "the state of a SharedEvidence")
        evidence = EpochEvidence.from_state(state["evidence"])
        PolicyProbes.from_state(state["probes"])
        arms = len(state["arms"])
        pulls = len(state["pulls"])
        require(
            arms == pulls == evidence.n_arms,
            "The state of a SharedEvidence must have pulls and evidence for each of its "
            f"{arms} arms, but got {pulls} and {evidence.n_arms}: go back to an earlier copy.",
        )


_STATE = {
    "pulls": [COUNT],
    "alone": [str],
    "origin": AnyOf(float, None),
    "evidence": dict,
    "probes": dict,
    str: object,
}
