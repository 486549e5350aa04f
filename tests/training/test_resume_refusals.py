"""What `esbas resume` refuses before it prints or writes anything, and devices that are missing."""

import shutil

import pytest

from esbas import cli
from esbas.training.runs.lock import locked
from training.programs import words


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training whose run has to continue."""
    out = tmp_path_factory.mktemp("refusals") / "training"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esbas.training.train.write_report", lambda *_: None)
        assert cli.main(words(out, "--no-tensorboard", steps=120)) == 0
    (out / "runs" / "seed-0" / "clock.json").unlink()
    return out


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "training")


def files(folder):
    """Return the content of all files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[path.relative_to(folder)] = path.read_bytes()
    return found


@pytest.mark.parametrize("more", [[], ["--steps", "500"], ["--seeds", "3"]])
def test_a_folder_in_use_is_refused_at_once(folder, capsys, more):
    before = files(folder)
    with locked(folder / "runs" / "seed-0"):
        assert cli.main(["resume", str(folder), *more]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        [line] = shown.err.splitlines()
        assert "another process is training" in line
        assert files(folder) == before


def test_the_same_command_is_refused_at_once_too(folder, capsys):
    before = files(folder)
    with locked(folder / "runs" / "seed-0"):
        assert cli.main(words(folder, "--no-tensorboard", steps=120)) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert files(folder) == before


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "portfolio.toml",
        "spaces.json",
        "runs",
        "runs/seed-0",
        "runs/seed-0/checkpoint.npz",
        "runs/seed-0/episodes.csv",
        "runs/seed-0/best.npz",
    ],
)
@pytest.mark.parametrize("more", [[], ["--steps", "500"]])
def test_links_in_a_training_are_not_followed(folder, tmp_path, capsys, name, more):
    elsewhere = tmp_path / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    before = files(tmp_path)
    assert cli.main(["resume", str(folder), *more]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{str(folder / name)!r} is a symbolic link to {str(elsewhere)!r}" in line
    assert files(tmp_path) == before


def test_a_link_to_nowhere_is_refused(folder, capsys):
    (folder / "runs" / "seed-0" / "clock.json").symlink_to("clock.json")  # to itself
    assert cli.main(["resume", str(folder)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "is a symbolic link to" in line


def test_a_link_to_a_training_is_refused(folder, tmp_path, capsys):
    link = tmp_path / "link"
    link.symlink_to(folder)
    before = files(folder)
    assert cli.main(["resume", str(link)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{str(link)!r} is a symbolic link to {str(folder)!r}: give that folder itself" in line
    assert files(folder) == before


def test_a_folder_below_a_link_is_no_link(folder, tmp_path):
    (tmp_path / "home").symlink_to(tmp_path)
    assert cli.main(["resume", str(tmp_path / "home" / "training"), "--no-tensorboard"]) == 0


@pytest.mark.parametrize("learner", ["sb3.dqn", "sb3.qrdqn"])
def test_a_device_that_is_missing_is_refused(learner, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    out = tmp_path / "t"
    command = ["train", "CartPole-v1", "--out", str(out), "--steps", "100", "--learners", learner]
    assert cli.main([*command, "--device", "cuda"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "`device` must be available, but PyTorch finds no 'cuda' on this machine" in line
    assert not out.exists()
