import math

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import esbas
from esbas.errors import EsbasError
from esbas.experiments.envs import (
    NegotiationDialogue,
    ScoreModel,
    UserAct,
    negotiation_return,
    transcript,
)
from esbas.experiments.envs.dialogue.negotiation import heard_option
from esbas.experiments.envs.dialogue.user import ACCEPT, HANG_UP, PROPOSE

INSIST, NEW, REPEAT, TAKE, END = range(5)
# the system's order is 1, 3, 0, 2
SYSTEM_COSTS = [0.5, 0.1, 0.9, 0.3]
USER_COSTS = [0.2, 0.8, 0.4, 0.6]
START = {"system_costs": SYSTEM_COSTS, "user_costs": USER_COSTS, "user_starts": False}


class Script:
    """A user that follows a script and records the proposals of the system."""

    # Shared with the copy that the environment makes.
    proposals: list[int | None] = []  # noqa: RUF012

    def __init__(self, *acts: UserAct) -> None:
        self._acts = acts

    def start(self, costs):
        del costs
        self._left = list(self._acts)
        self.proposals.clear()

    def answer(self, proposal, rng):
        del rng
        self.proposals.append(proposal)
        return self._left.pop(0)


def scripted(*acts, **settings):
    env = NegotiationDialogue(user=Script(*acts), **{"error_rate": 0.0} | settings)
    observation, _ = env.reset(seed=0, options=START)
    return env, observation


def propose(option):
    return UserAct(PROPOSE, option)


def test_is_a_gymnasium_environment():
    check_env(NegotiationDialogue(), skip_render_check=True)  # rendering is tested below
    check_env(NegotiationDialogue(options=7, length=3), skip_render_check=True)


def test_system_proposes_its_options_by_cost_and_starts_again_after_the_worst():
    env, _ = scripted(*[propose(0)] * 8)
    for action in (INSIST, INSIST, NEW, NEW, INSIST, NEW, NEW, NEW):
        env.step(action)
    assert env.user.proposals == [1, 1, 3, 0, 0, 2, 1, 3]


def test_first_new_proposal_is_the_best_option():
    env, _ = scripted(propose(0))
    env.step(NEW)
    assert env.user.proposals == [1]


def test_observation_is_all_that_the_system_knows():
    env, first = scripted(propose(0), propose(2), score=ScoreModel(right=0.7, deviation=0.0))
    costs = sorted(SYSTEM_COSTS)
    assert first.tolist() == [
        1,
        0.5,
        -1,
        -1,
        0,
        *costs,
    ]  # act 1, no score, nothing heard or proposed, the next proposal is rank 0
    score = 1 / (1 + math.exp(-0.7))
    second = env.step(NEW)[0]
    # option 0 has rank 2 for the system
    assert second.tolist() == pytest.approx([2, score, 2, 0, 1, *costs])
    third = env.step(REPEAT)[0]
    assert third.tolist() == pytest.approx([3, score, 3, 0, 1, *costs])


@pytest.mark.parametrize(
    ("users", "actions", "reward"),
    [
        ([UserAct(ACCEPT)], [NEW], 2 - 0.1 - 0.8),  # agree on option 1
        ([propose(0), UserAct(ACCEPT)], [INSIST, NEW], 2 - 0.3 - 0.6),  # on option 3
        ([propose(0)], [REPEAT, TAKE], 2 - 0.5 - 0.2),  # on option 0
        ([], [TAKE], 0.0),  # nothing was heard
        ([UserAct(HANG_UP)], [NEW], 0.0),
        ([propose(0)], [NEW, END], 0.0),
    ],
)
def test_dialogue_ends_with_the_papers_reward(users, actions, reward):
    env, _ = scripted(*users)
    steps = [env.step(action) for action in actions]
    assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [True]
    assert [step[1] for step in steps[:-1]] == [0.0] * (len(steps) - 1)
    assert steps[-1][1] == pytest.approx(reward)


def test_accepting_a_misunderstood_option_costs_both_players():
    env, _ = scripted(propose(0), error_rate=1.0)
    observation = env.step(REPEAT)[0]
    heard = [1, 3, 0, 2][int(observation[2])]
    assert heard != 0
    assert env.step(TAKE)[1] == pytest.approx(-SYSTEM_COSTS[heard] - USER_COSTS[0])


def test_dialogue_ends_after_its_length_without_reward():
    env, _ = scripted(*[propose(0)] * 3, length=3)
    ends = [env.step(REPEAT)[1:4] for _ in range(3)]
    assert ends == [(0.0, False, False), (0.0, False, False), (0.0, True, False)]
    with pytest.raises(EsbasError, match="reset"):
        env.step(REPEAT)


def test_users_last_acceptance_counts():
    env, _ = scripted(propose(0), UserAct(ACCEPT), length=2)
    env.step(NEW)
    assert env.step(INSIST)[1] == pytest.approx(2 - 0.1 - 0.8)


def test_errors_are_uniform_over_the_other_options():
    middle = (np.arange(9) % 3 + 0.5) / 3
    heard = [heard_option(1, 4, 0.3, 0.29, u) for u in middle]
    assert sorted(heard) == [0, 0, 0, 2, 2, 2, 3, 3, 3]
    assert heard_option(1, 4, 0.3, 0.3, 0.5) == 1


def test_channel_has_the_given_error_rate_and_scores():
    env = NegotiationDialogue(error_rate=0.3)
    env.reset(seed=1)
    understood = []
    logits = []
    for _ in range(250):
        env.reset(options={"user_starts": True})
        for _ in range(10):
            env.step(REPEAT)
        said = [act for act in env.dialogue.acts if act.act == "propose"]
        understood += [act.heard == act.option for act in said]
        logits += [math.log(act.score / (1 - act.score)) for act in said]
    right = np.array(understood)
    logit = np.array(logits)
    assert abs(right.mean() - 0.7) < 4 * math.sqrt(0.21 / len(right))
    for mean, chosen in ((1.0, right), (0.0, ~right)):
        assert logit[chosen].mean() == pytest.approx(mean, abs=4 * 0.2 / math.sqrt(chosen.sum()))
        assert logit[chosen].std() == pytest.approx(0.2, rel=4 / math.sqrt(2 * chosen.sum()))


def test_draws_come_in_the_documented_order():
    class Replay:
        """A generator that returns the given numbers and records the requests."""

        def __init__(self):
            self.numbers = iter(np.linspace(0.05, 0.95, 200))
            self.asked = []

        def random(self, count):
            self.asked.append(count)
            return np.array([next(self.numbers) for _ in range(count)])

        def standard_normal(self):
            self.asked.append("normal")
            return 0.0

    env = NegotiationDialogue()
    env.np_random = generator = Replay()
    observation, _ = env.reset()
    # costs, then the player that starts: below 1/2, so the user opens
    assert generator.asked == [9, 3, 2, "normal"]
    assert env.system_costs == pytest.approx(np.linspace(0.05, 0.95, 200)[:4])
    assert observation[0] == 1
    env.step(REPEAT)
    assert generator.asked == [9, 3, 2, "normal", 3, 2, "normal"]


def test_random_policy_has_the_known_mean_return():
    env = NegotiationDialogue()
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    values = []
    for _ in range(4000):
        env.reset()
        over = False
        acts = 0
        while not over:
            _, reward, over, _, _ = env.step(int(rng.integers(5)))
            acts += 1
        values.append(0.9**acts * reward)
    assert np.mean(values) == pytest.approx(0.550, abs=4 * np.std(values) / math.sqrt(len(values)))


def test_objective_is_the_papers_and_discounts_the_first_act():
    env, _ = scripted(propose(0), propose(0), UserAct(ACCEPT))

    class Insist:
        def act(self, observation, rng):
            del observation, rng
            return INSIST

    env.reset = lambda seed=None: NegotiationDialogue.reset(env, seed=seed, options=START)
    trajectory = esbas.play(env, Insist(), rng=np.random.default_rng(0), seed=0)
    assert negotiation_return()(trajectory) == pytest.approx(0.9**3 * (2 - 0.1 - 0.8))
    assert negotiation_return()(trajectory) == pytest.approx(
        0.9 * esbas.discounted_return(0.9)(trajectory)
    )


def test_same_seed_same_dialogue_other_seed_other_dialogue():
    def course(seed):
        env = NegotiationDialogue(render_mode="ansi")
        env.reset(seed=seed)
        over = False
        while not over:
            over = env.step(INSIST)[2]
        return env.render()

    assert course(5) == course(5) != course(6)


def test_each_player_starts_half_of_the_dialogues():
    env = NegotiationDialogue()
    opened = [env.reset(seed=seed)[0][2] >= 0 for seed in range(1000)]
    assert abs(np.mean(opened) - 0.5) < 4 * 0.5 / math.sqrt(1000)


def test_transcript_shows_what_each_side_knows():
    env, _ = scripted(
        propose(0),
        UserAct(ACCEPT),
        error_rate=1.0,
        score=ScoreModel(deviation=0.0),
        render_mode="ansi",
    )
    observation = env.step(INSIST)[0]
    env.step(NEW)
    heard = "BDAC"[int(observation[2])]
    system = "The system's costs: A 0.50, B 0.10, C 0.90, D 0.30.\n"
    user = "The user's costs: A 0.20, B 0.80, C 0.40, D 0.60.\n"
    end = "System: I propose D.\nUser:   I accept.\n"
    said = "System: I propose B.\nUser:   I want "
    assert env.render() == f"{system}{user}{said}A.  (understood: {heard}, score 0.50)\n{end}"
    assert transcript(env.dialogue, "user") == f"{user}{said}A.\n{end}"
    assert (
        transcript(env.dialogue, "system")
        == f"{system}{said}{heard}.  (understood with score 0.50)\n{end}"
    )


def test_human_mode_prints_every_line_once(capsys):
    env, _ = scripted(propose(0), propose(0), UserAct(HANG_UP), render_mode="human")
    for action in (REPEAT, NEW, NEW):
        env.step(action)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 6
    assert lines[2] == "System: Could you repeat that?"
    assert lines[-1] == "User:   (hangs up)"
    assert env.render() is None


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: NegotiationDialogue(options=1), "`options` must be at least 2, but got 1."),
        (
            lambda: NegotiationDialogue(error_rate=1.5),
            "`error_rate` must be between 0 and 1, but got 1.5.",
        ),
        (
            lambda: NegotiationDialogue(render_mode="asci"),
            "There is no render mode named 'asci': did you mean 'ansi'?",
        ),
        (
            lambda: NegotiationDialogue().reset(options={"user_cost": [0.5] * 4}),
            "There is no reset option named 'user_cost': did you mean 'user_costs'?",
        ),
        (lambda: scripted()[0].step(5), "An action must be one of 0 to 4, but got 5."),
        (
            lambda: scripted(propose(4))[0].step(0),
            "A user must propose one of 0 to 3, but got 4.",
        ),
    ],
)
def test_bad_input_raises_a_clear_error(make, sentence):
    with pytest.raises(EsbasError) as caught:
        make()
    assert str(caught.value) == sentence
