"""A memory with discounted rounds: each round reduces the weight of all earlier ones."""

from esbas.bandits.memory_bandit import AllRounds, Round, grown_variance
from esbas.errors import require


class Discounted(AllRounds):
    """A round followed by s others has weight γ^s, with its reward or still in flight.

    A withdrawn round leaves a hole. A reward that arrives late gets the weight that its round has
    by then. Work per round is O(K).

    Args:
        n_arms: K.
        discount: γ.
    """

    def __init__(self, n_arms: int, *, discount: float) -> None:
        require(
            0 < discount <= 1,
            f"`discount` must be greater than 0 and at most 1, but got {discount!r}.",
        )
        super().__init__(n_arms)
        self.discount = discount

    def prior(self) -> float:
        rewards = sum(arm.rewards for arm in self.arms)
        return sum(arm.rewards * arm.mean for arm in self.arms) / rewards if rewards else 0.0

    def pull(self, k: int) -> int:
        for arm in self.arms:
            arm.pulls *= self.discount
            arm.rewards *= self.discount
        ticket = super().pull(k)
        self._sum_pulls()
        return ticket

    def settle(self, ticket: int, reward: float) -> Round | None:
        settled = self.open.pop(ticket, None)
        weight = self._weight(ticket)
        if settled is not None and weight:
            arm = settled.arm
            before = arm.rewards
            arm.rewards += weight
            if before:
                distance = reward - arm.mean
                arm.variance = grown_variance(arm.variance, before, weight, distance)
                arm.mean = arm.mean + weight / arm.rewards * distance
            else:
                arm.variance = 0.0
                arm.mean = reward
        return settled

    def withdraw(self, ticket: int) -> None:
        withdrawn = self.open.pop(ticket, None)
        if withdrawn is None:
            return
        # Count again what remains: a difference of weights would leave a remainder.
        arm = withdrawn.arm
        in_flight = [self._weight(other) for other, each in self.open.items() if each.arm is arm]
        arm.pulls = arm.rewards + sum(in_flight)
        self._sum_pulls()

    def remove_arm(self, k: int) -> None:
        super().remove_arm(k)
        self._sum_pulls()

    def _sum_pulls(self) -> None:
        self.total = sum(arm.pulls for arm in self.arms)

    def _weight(self, ticket: int) -> float:
        return float(self.discount ** (self.rounds - ticket))
