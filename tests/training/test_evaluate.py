"""`esbas evaluate`: which learner plays, how, and what is shown."""

import csv
import dataclasses
import itertools
import json
import math
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import esbas
from esbas import cli
from esbas.cli import resume
from esbas.cli.evaluate import Evaluate, main
from esbas.errors import (
    EsbasError,
    InvalidValueError,
    MissingExtraError,
    SaveFileError,
    UnknownNameError,
)
from esbas.learners.tabular.table import Tabular
from esbas.training import open_folder
from esbas.training.policies.policy_file import read_policy, write_policy
from esbas.training.reports.recording import FRAMES, WIDTH, Recording
from esbas.training.runs.one_run import SaveOptions, train_seed
from training import lane

SAVING = SaveOptions(tensorboard=False)
LEARNERS = "tabular_q(learning_rate=0.5, epsilon=1.0)", "tabular_q(learning_rate=0.4, epsilon=1.0)"
FIRST = "tabular Q learning_rate 0.5"
SECOND = "tabular Q learning_rate 0.4"


def trained(folder: Path, task: str = "Lane", **options: Any) -> Path:
    settings = {"learners": LEARNERS, "episodes": 40, "tensorboard": False, "out": folder}
    esbas.train(f"tests/{task}-v0", **settings | options)
    return folder


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained") / "lane", seeds=(3, 4))


@pytest.fixture
def folder(trained_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained_once, tmp_path / "lane"))


def evaluation(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "evaluation.json").read_text()))


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "evaluation.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def rewrite(folder: Path, seed: int, episodes: list[tuple[str, float]]) -> None:
    """Replace the log of a run: the learner in control and the value of each episode."""
    path = folder / "runs" / f"seed-{seed}" / "episodes.csv"
    header = path.read_text().splitlines()[0]
    lines = [
        f"{number},{10 * number},{arm},{value},10,1,1,0"
        for number, (arm, value) in enumerate(episodes, 1)
    ]
    path.write_text("\n".join([header, *lines]) + "\n")


def snapshot(folder: Path) -> dict[str, bytes]:
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("evaluation.")
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_policy_plays_without_exploration_unless_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(Evaluate(folder, episodes=7))
    # it learnt from random actions
    assert [float(row["episode length"]) for row in rows(folder)] == [lane.CELLS - 1] * 7
    about = evaluation(folder)
    assert about["results"]["return"] == {"mean": 1.0, "ci95": 0.0, "min": 1.0, "max": 1.0}
    assert (about["explores"], about["episodes"], about["steps of training"] > 40) == (
        False,
        7,
        True,
    )
    assert "7 episodes without exploration" in capsys.readouterr().out
    main(Evaluate(folder, episodes=7, explore=True))
    lengths = np.array([float(row["episode length"]) for row in rows(folder)])
    assert lengths.max() > lane.CELLS - 1
    about = evaluation(folder)
    interval = 2.4469 * lengths.std(ddof=1) / math.sqrt(7)  # Student's t with 6 degrees of freedom
    assert about["results"]["episode length"]["ci95"] == pytest.approx(interval, rel=1e-4)
    assert about["explores"] is True


def test_the_episodes_depend_on_their_own_seed_alone(folder: Path) -> None:
    contents = []
    for seed in (0, 0, 1):
        main(Evaluate(folder, explore=True, eval_seed=seed))
        contents.append((folder / "evaluation.csv").read_bytes())
    assert contents[0] == contents[1] != contents[2]


def rescore(folder: Path, seed: int, **changes: Any) -> None:
    """Change the best policy that a run has kept."""
    path = folder / "runs" / f"seed-{seed}" / "best.npz"
    write_policy(path, dataclasses.replace(read_policy(path), **changes))


def test_the_best_policy_that_was_kept_plays(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(folder, 3, [(SECOND, 1.0)] * 40)  # who was in control does not matter
    rewrite(folder, 4, [(SECOND, 1.0)] * 40)
    for seed, learner, values in ((3, FIRST, (0.5, 0.9)), (4, SECOND, (0.7, 0.6))):
        rescore(folder, seed, learner=learner, steps=100 + seed, mean=seed, rescored=values)
    main(Evaluate(folder, episodes=1))
    about = evaluation(folder)
    assert (about["seed"], about["learner"], about["steps of training"]) == (3, FIRST, 103)
    assert "the best policy that the training found, after 103 steps" in " ".join(
        capsys.readouterr().out.split()
    )
    rescore(folder, 3, rescored=())  # not scored again: its run is not finished
    main(Evaluate(folder, episodes=1))
    assert evaluation(folder)["seed"] == 4
    main(Evaluate(folder, episodes=1, seed=3))
    assert evaluation(folder)["seed"] == 3
    main(Evaluate(folder, episodes=1, learner=FIRST, seed=4))
    about = evaluation(folder)
    # as it is in the checkpoint
    assert (about["learner"], about["steps of training"] > 104) == (FIRST, True)


def test_of_an_objective_to_minimize_the_smallest_is_the_best(tmp_path: Path) -> None:
    folder = trained(tmp_path / "f", objective="shortest", seeds=(0, 1), episodes=4)
    for seed in (0, 1):
        rescore(folder, seed, rescored=(4.0 + seed,))
    main(Evaluate(folder, episodes=1))
    assert evaluation(folder)["seed"] == 0


def test_without_an_evaluation_the_best_learner_is_found_by_playing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in folder.glob("runs/*/best.npz"):
        path.unlink()
    rewrite(folder, 3, [(FIRST, 0.5)] * 40)
    rewrite(folder, 4, [(FIRST, 0.0)] * 10 + [(SECOND, 0.9)] * 30)
    main(Evaluate(folder, episodes=1))
    assert evaluation(folder)["seed"] == 4  # the run with the best end
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "has not evaluated its policies yet. "
        f"Of all learners in the last checkpoint, {FIRST!r} was the best" in text
    )
    (folder / "runs" / "seed-4" / "checkpoint.npz").unlink()
    main(Evaluate(folder, episodes=1))
    assert evaluation(folder)["seed"] == 3


def test_training_continues_with_the_same_results(folder: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.mkdir()
    for name in ("config.json", "portfolio.toml"):
        shutil.copy(folder / name, half / name)
    count = itertools.count(1)
    train_seed(
        open_folder(half).plan,
        3,
        half,
        saving=SAVING,
        report=lambda _: None,
        stop=lambda: next(count) == 15,
    )
    before = snapshot(half)
    main(Evaluate(half, explore=True, episodes=3))
    assert evaluation(half)["seed"] == 3
    assert snapshot(half) == before
    resume.main(resume.Resume(folder=half, tensorboard=False))
    for seed in (3, 4):
        own, whole = (each / "runs" / f"seed-{seed}" / "episodes.csv" for each in (half, folder))
        assert own.read_bytes() == whole.read_bytes()


def test_the_first_episode_is_recorded(folder: Path, tmp_path: Path) -> None:
    main(Evaluate(folder, episodes=2))
    with Image.open(folder / "evaluation.gif") as recorded:
        assert (recorded.n_frames, recorded.size) == (lane.CELLS, (WIDTH, 32))
        assert recorded.info["duration"] == 100  # ten frames per second
        recorded.seek(recorded.n_frames - 1)
        last = np.asarray(recorded.convert("L"))
    assert (last[:, -WIDTH // lane.CELLS + 2 :] > 200).all()
    assert (last[:, : -WIDTH // lane.CELLS - 2] < 50).all()
    (folder / "evaluation.gif").unlink()
    main(Evaluate(folder, episodes=2, video=tmp_path / "own.gif"))
    assert (tmp_path / "own.gif").exists()
    assert not (folder / "evaluation.gif").exists()


def test_long_recordings_are_thinned_out_evenly(tmp_path: Path) -> None:
    recording = Recording(fps=50)
    rendered = []
    for number in range(3 * FRAMES):
        image = np.full((4, 4, 3), number % 256, np.uint8)
        recording.add(lambda number=number, image=image: rendered.append(number) or image)
    assert FRAMES / 2 <= len(recording.images) <= FRAMES
    assert len(rendered) < 2 * FRAMES  # discarded frames are not rendered
    recording.write(tmp_path / "recording.gif")
    with Image.open(tmp_path / "recording.gif") as written:
        assert written.info["duration"] == 80  # every fourth frame, at 50 per second


def test_texts_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = trained(tmp_path / "f", "TextLane")
    capsys.readouterr()
    main(Evaluate(folder, episodes=2))
    assert "\n....A\n" in (out := capsys.readouterr().out)
    assert "A...." not in out
    main(Evaluate(folder, episodes=2, render=True))
    assert capsys.readouterr().out.count("A....\n.A...\n..A..\n...A.\n....A\n") == 2
    with pytest.raises(
        InvalidValueError,
        match="--video needs an environment with render mode rgb_array, "
        "but the modes of this one are ansi",
    ):
        main(Evaluate(folder, video=tmp_path / "f.gif"))


def test_tasks_that_cannot_be_rendered_are_still_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = {
        "DarkLane": "",
        "LaneWithoutPygame": "pip install 'esbas[render]'",
        "CrashingLane": "OSError: no display",
    }
    for task, sentence in expected.items():
        folder = trained(tmp_path / task, task)
        capsys.readouterr()
        main(Evaluate(folder, episodes=2))
        out = " ".join(capsys.readouterr().out.split())
        assert sentence in out
        assert ("was not recorded" in out) == bool(sentence)
        assert evaluation(folder)["results"]["return"]["mean"] == 1.0
        assert not (folder / "evaluation.gif").exists()
    with pytest.raises(
        InvalidValueError,
        match="--render needs an environment with render mode human or ansi, "
        "but the modes of this one are none",
    ):
        main(Evaluate(tmp_path / "DarkLane", render=True))
    for option in ({"render": True}, {"video": tmp_path / "f.gif"}):
        with pytest.raises(MissingExtraError, match=r"pip install 'esbas\[render\]'"):
            main(Evaluate(tmp_path / "LaneWithoutPygame", **option))
    with pytest.raises(
        InvalidValueError, match=r"The environment does not render \(OSError: no display\): fix it"
    ):
        main(Evaluate(tmp_path / "CrashingLane", video=tmp_path / "f.gif"))


def test_an_invisible_window_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    display = SimpleNamespace(get_init=lambda: True, get_driver=lambda: "offscreen")
    monkeypatch.setitem(sys.modules, "pygame", SimpleNamespace(display=display))
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    with pytest.raises(
        InvalidValueError, match="--render needs a display, but there is none: record an episode"
    ):
        main(Evaluate(folder, render=True))
    display.get_driver = lambda: "x11"
    main(Evaluate(folder, render=True, episodes=1))
    assert not (folder / "evaluation.gif").exists()


def test_a_learner_without_a_greedy_policy_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Tabular, "greedy_policy")
    main(Evaluate(folder, episodes=5))
    assert evaluation(folder)["explores"] is True
    assert "has no greedy_policy()" in " ".join(capsys.readouterr().out.split())


def test_policies_with_a_memory_are_started_for_each_episode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    class Remembering:
        def start(self) -> None:
            starts.append(0)

        def act(self, observation: Any, rng: np.random.Generator) -> int:
            starts[-1] += 1
            return 1

    monkeypatch.setattr(Tabular, "greedy_policy", lambda self: Remembering())
    main(Evaluate(folder, episodes=3))
    assert starts == [lane.CELLS - 1] * 3


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"learner": "tabular Q learning_rate 0.6"}, UnknownNameError, "did you mean"),
        ({"seed": 5}, InvalidValueError, "`seed` must be one of the seeds of the training"),
        ({"episodes": 0}, InvalidValueError, "`episodes` must be at least 1, but got 0"),
        ({"eval_seed": -1}, InvalidValueError, "`eval_seed` must be at least 0"),
        (
            {"render": True, "video": Path("f.gif")},
            InvalidValueError,
            "Give `render` or `video`, not both",
        ),
        (
            {"video": Path("f.mp4")},
            InvalidValueError,
            "`video` must be a .gif file in a folder that exists",
        ),
        ({"video": Path("nowhere/f.gif")}, InvalidValueError, "in a folder that exists"),
    ],
)
def test_bad_input_raises_a_clear_error(
    folder: Path, options: dict[str, Any], error: type[EsbasError], sentence: str
) -> None:
    before = snapshot(folder)
    with pytest.raises(error, match=sentence) as caught:
        main(Evaluate(folder, **options))
    assert "\n" not in str(caught.value)
    assert snapshot(folder) == before
    assert not list(folder.glob("evaluation.*"))


def test_missing_parts_are_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SaveFileError, match="is not the folder of a training"):
        main(Evaluate(tmp_path))
    for path in folder.glob("runs/*/checkpoint.npz"):
        path.unlink()
    with pytest.raises(SaveFileError, match="There is no checkpoint of the run of seed 4"):
        main(Evaluate(folder, seed=4))
    assert cli.main(["evaluate", str(folder), "--episodes", "2"]) == 2
    assert capsys.readouterr().err.startswith("esbas: There is no checkpoint of the training in")
