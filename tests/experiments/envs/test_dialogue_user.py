import math

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.experiments.envs import Act, Dialogue, NegotiationDialogue, UserModel, UserParameters
from esbas.experiments.envs.dialogue.user import ACCEPT, HANG_UP, PROPOSE, accept_logit, sigmoid

COSTS = (0.6, 0.1, 0.9, 0.3)  # the user's order is 1, 3, 0, 2
LATE = 0.999  # a draw with which nothing unlikely happens


class Draws:
    """A generator that returns the given numbers."""

    def __init__(self, *numbers):
        self._numbers = list(numbers)

    def random(self, count):
        taken = self._numbers[:count]
        self._numbers = self._numbers[count:]
        return np.array(taken)


def user(**parameters):
    model = UserModel(UserParameters(**parameters))
    model.start(COSTS)
    return model


def generated(parameters, *, dialogues, seed):
    """Dialogues of this user with a system that acts at random and never ends a dialogue."""
    env = NegotiationDialogue(user=UserModel(parameters))
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(dialogues):
        env.reset()
        over = False
        while not over:
            over = env.step(int(rng.choice([0, 1, 1, 2])))[2]
        yield env.dialogue


def test_sigmoid_by_hand_and_at_the_ends():
    assert sigmoid(0.0) == 0.5
    assert sigmoid(math.log(3)) == pytest.approx(0.75)
    assert sigmoid(-math.log(3)) == pytest.approx(0.25)
    assert (sigmoid(1e4), sigmoid(-1e4)) == (1.0, 0.0)


def test_log_odds_of_acceptance_by_hand():
    assert accept_logit(0.2, 3, 4.0, 0.38, 0.05) == pytest.approx(4 * (0.38 + 0.15 - 0.2))


def test_opens_with_its_best_option_and_repeats_it():
    model = user()
    draws = Draws(*[LATE] * 9)
    assert [model.answer(None, draws) for _ in range(3)] == [(PROPOSE, 1)] * 3


def test_counters_with_its_best_option_if_it_has_not_proposed_yet():
    assert user().answer(2, Draws(LATE, LATE, 0.0)) == (PROPOSE, 1)


def test_concedes_option_by_option_and_starts_again():
    model = user()
    draws = Draws(*[LATE, LATE, 0.0] * 5)
    assert [model.answer(2, draws).option for _ in range(5)] == [1, 3, 0, 2, 1]


def test_insists_unless_it_concedes():
    model = user(concede=0.1)
    model.answer(2, Draws(*[LATE] * 3))
    assert model.answer(2, Draws(LATE, LATE, 0.1001)).option == 1
    assert model.answer(2, Draws(LATE, LATE, 0.0999)).option == 3


def test_hangs_up_only_if_it_does_not_accept():
    assert user().answer(2, Draws(LATE, 0.0299, LATE)).kind == HANG_UP
    assert user().answer(2, Draws(LATE, 0.0301, LATE)).kind == PROPOSE
    assert user().answer(2, Draws(0.0, 0.0, LATE)).kind == ACCEPT


def test_acceptance_counts_from_its_own_last_proposal_and_its_acts():
    model = user()
    first = 1 / (
        1 + math.exp(-4 * (0.38 - (0.9 - 0.1)))
    )  # before its first proposal: compared with its best option, after no acts
    assert model.answer(2, Draws(first - 1e-9, LATE, LATE)).kind == ACCEPT
    model = user()
    assert model.answer(2, Draws(first + 1e-9, LATE, LATE)).kind == PROPOSE
    model.answer(2, Draws(LATE, LATE, 0.0))  # its last proposal is now option 3
    third = 1 / (1 + math.exp(-4 * (0.38 + 0.05 * 2 - (0.6 - 0.3))))
    assert model.answer(0, Draws(third + 1e-9, LATE, LATE)).kind == PROPOSE
    model.answer(None, Draws(LATE, LATE, LATE))  # repeating counts as an act too
    fifth = 1 / (1 + math.exp(-4 * (0.38 + 0.05 * 4 - (0.6 - 0.3))))
    assert model.answer(0, Draws(fifth - 1e-9, LATE, LATE)).kind == ACCEPT


@pytest.mark.parametrize("truth", [UserParameters(), UserParameters(7.0, 0.2, 0.11, 0.15, 0.4)])
def test_fit_recovers_the_parameters_within_their_standard_errors(truth):
    fitted = UserModel.fit(generated(truth, dialogues=10_000, seed=1))
    for name, true, found, error in zip(
        UserParameters._fields, truth, fitted.parameters, fitted.standard_errors, strict=True
    ):
        assert abs(found - true) < 3 * error, name
        assert error < 0.1 * true, name


def test_fit_is_the_maximum_and_its_errors_are_the_curvature_there():
    logs = list(generated(UserParameters(), dialogues=400, seed=2))
    fitted = UserModel.fit(logs)
    best = np.array(fitted.parameters)
    size = 1e-3 * best
    hessian = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            corners = [
                one
                * other
                * log_likelihood(
                    best + one * size * (np.arange(5) == i) + other * size * (np.arange(5) == j),
                    logs,
                )
                for one in (1, -1)
                for other in (1, -1)
            ]
            hessian[i, j] = sum(corners) / (4 * size[i] * size[j])
    assert np.sqrt(np.diag(np.linalg.inv(-hessian))) == pytest.approx(
        np.array(fitted.standard_errors), rel=1e-3
    )
    top = log_likelihood(best, logs)
    for i in range(5):
        assert log_likelihood(best + 10 * size * (np.arange(5) == i), logs) < top
        assert log_likelihood(best - 10 * size * (np.arange(5) == i), logs) < top


def log_likelihood(parameters, logs):
    """Written from the description of the user model."""
    slope, threshold, patience, hang_up, concede = parameters
    total = 0.0
    for log in logs:
        order = np.argsort(log.user_costs).tolist()
        rank = -1
        acts = 0
        for before, act in zip((None, *log.acts), log.acts, strict=False):
            if act.by == "system":
                continue
            if before is not None and before.act == "propose":
                gap = log.user_costs[before.option] - log.user_costs[order[max(rank, 0)]]
                accept = 1 / (1 + math.exp(-slope * (threshold + patience * acts - gap)))
                if act.act == "accept":
                    total += math.log(accept)
                elif act.act == "hang_up":
                    total += math.log((1 - accept) * hang_up)
                else:
                    total += math.log((1 - accept) * (1 - hang_up))
                    if rank >= 0:
                        total += math.log(1 - concede if order[rank] == act.option else concede)
            rank = order.index(act.option) if act.act == "propose" else rank
            acts += 1
    return total


def test_a_share_of_zero_has_no_standard_error():
    fitted = UserModel.fit(generated(UserParameters(hang_up=0.0), dialogues=200, seed=3))
    assert fitted.parameters.hang_up == 0
    assert math.isnan(fitted.standard_errors.hang_up)


def acts(*words):
    players = {"U": "user", "S": "system"}
    return tuple(
        Act(players[player], what, int(option) if option else None)
        for player, what, option in (w.split("-") for w in words)
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["U-propose-3"],
            "act 1: The user must propose option 1 here, but the log has 'propose' option 3",
        ),
        (
            ["U-propose-1", "S-propose-2", "U-propose-2"],
            "act 3: The user must propose option 1 or 3 here, but the log has 'propose' option 2",
        ),
        (
            ["U-propose-1", "S-ask_repeat-", "U-propose-3"],
            "act 3: The user must propose option 1 here, but the log has 'propose' option 3",
        ),
        (
            ["U-propose-1", "S-ask_repeat-", "U-hang_up-"],
            "act 3: The user must propose option 1 here, but the log has 'hang_up'",
        ),
    ],
)
def test_fit_refuses_acts_that_the_user_never_does(words, sentence):
    good = Dialogue(COSTS, acts("S-propose-1", "U-accept-"))
    with pytest.raises(InvalidValueError) as caught:
        UserModel.fit([good, Dialogue(COSTS, acts(*words))])
    assert (
        str(caught.value)
        == f"dialogue 2, {sentence}. Remove the dialogue, or write your own user model."
    )


@pytest.mark.parametrize(
    ("logs", "sentence"),
    [
        (
            [],
            "proposals and refuse others, but they accepted 0 of 0: add dialogues.",
        ),
        (
            [Dialogue(COSTS, acts("S-propose-1", "U-accept-"))] * 9,
            "but they accepted 9 of 9: add dialogues.",
        ),
        (
            [
                Dialogue(COSTS, acts("S-propose-1", "U-accept-")),
                Dialogue(COSTS, acts("S-propose-2", "U-hang_up-")),
            ],
            "but the fit to 2 answers did not converge: add dialogues.",
        ),
    ],
)
def test_fit_raises_if_there_are_too_few_data(logs, sentence):
    with pytest.raises(InvalidValueError) as caught:
        UserModel.fit(logs)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("bad", [{"slope": 0.0}, {"hang_up": 1.5}, {"concede": -0.1}])
def test_refuses_impossible_parameters(bad):
    with pytest.raises(InvalidValueError, match=next(iter(bad))):
        UserModel(UserParameters(**bad))
