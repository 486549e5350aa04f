import json

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.experiments.envs import (
    Act,
    Dialogue,
    NegotiationDialogue,
    UserModel,
    read_dialogues,
    write_dialogues,
)

GOOD = {
    "user_costs": [0.1, 0.5],
    "acts": [{"by": "user", "act": "propose", "option": 0}, {"by": "system", "act": "end"}],
}


def played(count):
    env = NegotiationDialogue()
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(count):
        env.reset()
        over = False
        while not over:
            over = env.step(int(rng.integers(5)))[2]
        yield env.dialogue


def line(**changes):
    return json.dumps({key: value for key, value in (GOOD | changes).items() if value is not None})


def test_reads_what_it_wrote(tmp_path):
    path = tmp_path / "log.jsonl"
    dialogues = list(played(300))
    write_dialogues(path, dialogues)
    read = list(read_dialogues(path))
    assert [(each.user_costs, each.system_costs, each.acts) for each in read] == [
        (each.user_costs, each.system_costs, each.acts) for each in dialogues
    ]
    assert {act.act for each in read for act in each.acts} == {
        "propose",
        "ask_repeat",
        "accept",
        "end",
        "hang_up",
    }
    assert read[6].source == "log.jsonl, line 7"


def test_reads_the_documented_example(tmp_path, request):
    page = (request.config.rootpath / "docs" / "dialogue-log.md").read_text()
    example = page.split("```json\n")[1].split("```")[0]
    path = tmp_path / "example.jsonl"
    path.write_text(example)
    first, second = read_dialogues(path)
    assert first.acts[0] == Act("user", "propose", 2, heard=3, score=0.52)
    assert first.ended
    assert second.system_costs is None


def test_the_documented_custom_user_runs(request):
    page = (request.config.rootpath / "docs" / "dialogue-log.md").read_text()
    names = {}
    exec(page.split("## Writing your own user")[1].split("```python\n")[1].split("```")[0], names)
    env = names["env"]
    env.reset(
        seed=0,
        options={
            "user_costs": [0.9, 0.2, 0.8, 0.7],
            "system_costs": [0.1, 0.2, 0.3, 0.4],
            "user_starts": False,
        },
    )
    assert env.step(1)[1:3] == (0.0, False)  # the system's best option is not the user's
    assert env.step(1)[1:3] == (2 - 0.2 - 0.2, True)


def test_skips_empty_lines_and_counts_them(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(f"\n{line()}\n\n{line()}\n")
    assert [each.source for each in read_dialogues(path)] == [
        "log.jsonl, line 2",
        "log.jsonl, line 4",
    ]


def test_fit_names_the_line_of_an_act_that_the_user_never_does(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line()}\n{line(user_costs=[0.5, 0.1])}\n")
    with pytest.raises(
        InvalidValueError,
        match=r"^log.jsonl, line 2, act 1: The user must propose option 1 here, but the log has",
    ):
        UserModel.fit(read_dialogues(path))


def acts(*words):
    players = {"U": "user", "S": "system"}
    triples = (word.split("-") for word in words)
    return [
        {"by": players[player], "act": what} | ({"option": int(option)} if option else {})
        for player, what, option in triples
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "A line must be one JSON object, but"),
        ("[1]", "A JSON object is expected here, but got [1]"),
        (line(user_costs=None), "The key 'user_costs' must be given, but the keys are 'acts'"),
        (line(user_cost=[0.5]), "There is no key named 'user_cost': did you mean 'user_costs'?"),
        (line(user_costs=0.5), "`user_costs` must be a list of numbers, but got 0.5"),
        (line(user_costs=[0.5]), "There must be at least two options, but `user_costs` has 1"),
        (line(user_costs=[0.5, 1.5]), "Costs must be numbers between 0 and 1, but one is 1.5"),
        (line(user_costs=[0.5, "a"]), "Costs must be numbers between 0 and 1, but one is 'a'"),
        (
            line(user_costs=[0.5, float("nan")]),
            "Costs must be numbers between 0 and 1, but one is nan",
        ),
        (line(system_costs=[0.5]), "Both players must have 2 costs, but `system_costs` has 1."),
        (line(acts={}), "`acts` must be a list, but got {}"),
        (line(acts=["accept"]), "A JSON object is expected here, but got 'accept'"),
        (line(acts=[{"by": "user"}]), "The key 'act' must be given, but the keys are 'by'"),
        (
            line(acts=[{"by": "user", "act": "end", "opt": 1}]),
            "There is no key of an act named 'opt': did you mean 'option'?",
        ),
        (line(acts=[{"by": ["user"], "act": "end"}]), "Act 1: There is no player named ['user']"),
        (
            line(acts=[{"by": "usr", "act": "end"}]),
            "Act 1: There is no player named 'usr': did you mean 'user'?",
        ),
        (
            line(acts=acts("U-acept-")),
            "Act 1: There is no act of the user named 'acept': did you mean 'accept'?",
        ),
        (line(acts=acts("U-ask_repeat-")), "Act 1: There is no act of the user named 'ask_repeat'"),
        (
            line(acts=acts("U-propose-0", "U-propose-0")),
            "Act 2: Players must take turns, but the user acts twice",
        ),
        (
            line(acts=acts("S-propose-0", "U-accept-", "S-end-")),
            "Act 3: Nothing must follow the end of a dialogue, but got 'end'",
        ),
        (line(acts=acts("U-propose-2")), "Act 1: `option` must be one of 0 to 1, but got 2"),
        (
            line(acts=[{"by": "user", "act": "propose", "option": 0.0}]),
            "Act 1: `option` must be one of 0 to 1, but got 0.0",
        ),
        (
            line(acts=[{"by": "user", "act": "propose", "option": 0, "heard": True}]),
            "Act 1: `heard` must be one of 0 to 1, but got True",
        ),
        (
            line(acts=[{"by": "user", "act": "propose", "option": 0, "score": "x"}]),
            "Act 1: `score` must be a number, but got 'x'",
        ),
        (
            line(acts=acts("U-propose-")),
            "Act 1: A proposal must have an `option`, but the user's has none.",
        ),
        (
            line(acts=acts("S-ask_repeat-", "U-accept-")),
            "Act 2: A user can only accept a proposal, but the system made none",
        ),
        (
            line(acts=acts("S-accept-1")),
            "Act 1: The system can only accept option 1 after the user proposed one",
        ),
    ],
)
def test_a_bad_line_raises_an_error_with_its_number(tmp_path, text, sentence):
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line()}\n{text}\n{line()}\n")
    with pytest.raises(InvalidValueError) as caught:
        list(read_dialogues(path))
    assert str(caught.value).startswith(f"{path}, line 2: {sentence}")
    assert str(caught.value).endswith(" Fix or delete the line.")
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_log_raises_a_clear_error(tmp_path):
    with pytest.raises(
        InvalidValueError,
        match=r"^There is no log at '.*log.jsonl': check the path.$",
    ):
        list(read_dialogues(tmp_path / "log.jsonl"))
    (tmp_path / "log.jsonl").write_bytes(b'{"user_costs": "\xff"}')
    with pytest.raises(
        InvalidValueError, match="line 1: A line must be one JSON object, but 'utf-8' codec"
    ):
        list(read_dialogues(tmp_path / "log.jsonl"))


def test_dialogues_built_in_code_are_checked_too():
    with pytest.raises(InvalidValueError, match="Act 2: Players must take turns"):
        Dialogue((0.1, 0.2), (Act("user", "propose", 0), Act("user", "accept")))
