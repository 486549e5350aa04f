"""Numbers as people write them: the same texts in commands and in Python."""

import pytest

import esbas
from esbas import cli
from esbas._internal import values
from esbas.cli.parsing import parse
from esbas.cli.resume import Resume
from esbas.errors import InvalidValueError
from esbas.experiments.control import EXPERIMENT as Control
from esbas.experiments.small_grid import EXPERIMENT as SmallGrid
from esbas.specs.portfolios.recipe import read_recipe, recipe_of
from esbas.training import TrainingConfig, open_folder
from training.programs import train_without_report

HUNDRED_THOUSAND = ["100000", "1e5", "1E5", "1.0e5", "100k", "100K", "0.1M", "100_000", "100,000"]


def options(*given):
    return parse(TrainingConfig, ["CartPole-v1", *given], program="esbas train")


@pytest.mark.parametrize("text", HUNDRED_THOUSAND)
def test_a_budget_is_read_as_people_write_it(text):
    assert options("--steps", text).steps == 100_000
    assert options("--episodes", text).episodes == 100_000
    assert options("--eval-every", text).eval_every == 100_000
    assert options("--max-episode-steps", text).max_episode_steps == 100_000
    assert TrainingConfig("CartPole-v1", steps=text).steps == 100_000
    assert parse(Resume, ["it", "--steps", text], program="esbas resume").steps == 100_000
    assert parse(SmallGrid, ["--episodes", text], program="esbas").episodes == 100_000


@pytest.mark.parametrize(
    "given",
    [
        ["0-4"],
        ["0,1,2,3,4"],
        ["0", "1", "2", "3", "4"],
        ["0-2", "3", "4"],
        ["0-2,3,4"],
        ["0 1 2-4"],
        ["0,", "1-3", ",4"],
    ],
)
def test_seeds_are_read_as_people_write_them(given):
    assert options("--seeds", *given).seeds == (0, 1, 2, 3, 4)
    assert TrainingConfig("CartPole-v1", seeds=given).seeds == (0, 1, 2, 3, 4)
    assert TrainingConfig("CartPole-v1", seeds=" ".join(given)).seeds == (0, 1, 2, 3, 4)
    assert list(values.seeds("seeds", given)) == [0, 1, 2, 3, 4]


def test_lengths_of_epochs_are_read_as_people_write_them():
    assert options("--epochs", "20,40", "1k").epochs == (20, 40, 1000)
    assert TrainingConfig("CartPole-v1", epochs="20 40 1e3").epochs == (20, 40, 1000)


@pytest.mark.parametrize(
    "text",
    [
        "1.5",
        "1e-3",
        "0.0001k",
        "10,00",
        "1,0000",
        "_1",
        "1__0",
        "k",
        "1e999",
        "1 000",
        "",
        "٣",
        "inf",
    ],
)
def test_other_numbers_are_refused_in_one_sentence(text, capsys):
    assert cli.main(["train", "CartPole-v1", "--steps", text]) == 2
    message = "esbas: `steps` must be a whole number such as 100000, 1e5, 100k, 2M or 100,000"
    message += f", but got {text!r}."
    assert capsys.readouterr().err.strip() == message
    with pytest.raises(InvalidValueError, match="`steps` must be a whole number such as"):
        esbas.train("CartPole-v1", steps=text)


def test_numbers_of_experiments_are_refused_in_one_sentence(capsys):
    assert cli.main(["reproduce", "small_grid", "--episodes", "1.5"]) == 2
    assert capsys.readouterr().err.startswith("esbas: `episodes` must be a whole number such as")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4-0", "must begin with its smaller number, but got '4-0': write 0-4"),
        ("0-99999999999", "at most 10,000 seeds"),
        ("0-2,2", "must be different"),
        ("0--1", "whole numbers such as 0 1 2, 0,1,2 or 0-4"),
        ("-1", "must be at least 0, but got -1"),
        ("0.5-2", "whole numbers such as"),
        ("1-2-3", "whole numbers such as"),
        ("", "must not be empty"),
    ],
)
def test_other_seeds_are_refused_in_one_sentence(text, message):
    with pytest.raises(InvalidValueError, match=message):
        TrainingConfig("CartPole-v1", seeds=text)


@pytest.mark.parametrize("text", ["9e99", "1e16", "2000000B"])
def test_budgets_that_nobody_means_are_refused(text):
    for name in ("steps", "episodes"):
        with pytest.raises(
            InvalidValueError, match=f"`{name}` must be at most 1,000,000,000,000,000"
        ):
            TrainingConfig("CartPole-v1", **{name: text})


def test_an_option_with_another_name_is_read_in_the_same_way():
    assert parse(Control, ["--seeds", "0.1k"], program="esbas reproduce").runs == 100
    assert parse(Control, ["--runs", "1e2"], program="esbas reproduce").runs == 100


@pytest.mark.parametrize("written", ["1_000", "1e3", '"1k"', '"1,000"', '"1e3"'])
def test_whole_numbers_of_a_portfolio_are_read_as_people_write_them(written):
    text = f"""
    [replay]
    buffer_size = {written}
    [[learner]]
    algorithm = "dqn"
    batch_size = {written}
    hidden = [{written}]
    """
    recipe = read_recipe(text, source="text")
    assert recipe.memory["buffer_size"] == 1000
    assert recipe.learners[0].options == {"batch_size": 1000, "hidden": [1000]}
    by_name = recipe_of([f"dqn(batch_size={written})"])
    assert by_name.learners[0].options == {"batch_size": 1000}


@pytest.mark.parametrize("written", ["1.5", '"1.5"', "1e300", '"9e99"', '"many"', "true"])
def test_other_numbers_of_a_portfolio_are_refused_in_one_sentence(written):
    text = f'[replay]\nbuffer_size = {written}\n[[learner]]\nalgorithm = "dqn"'
    with pytest.raises(
        InvalidValueError, match=r"`buffer_size` of \[replay\] must be a whole number"
    ):
        read_recipe(text, source="text")


def test_the_help_shows_how_numbers_are_written(capsys):
    for command in (["train"], ["resume"]):
        with pytest.raises(SystemExit):
            cli.main([*command, "--help"])
        shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert "100k" in shown or "200k" in shown
        assert "0-4" in shown or "5-7" in shown


def test_folders_have_plain_numbers(tmp_path):
    out = tmp_path / "it"
    train_without_report(
        "CartPole-v1",
        learners=["random"],
        steps="0.1k",
        seeds="0-1",
        out=out,
        tensorboard=False,
        progress=False,
    )
    assert open_folder(out).config.steps == 100
    assert open_folder(out).config.seeds == (0, 1)
    again = train_without_report(
        "CartPole-v1", learners=["random"], steps=100, seeds=[0, 1], out=out, progress=False
    )
    assert again.folder.name == "it-2"  # the first one is finished, so the folder is taken
