"""Full disks, deleted folders and too many open files: one sentence, nothing lost, and the run
continues afterwards.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from esbas import cli
from esbas.reporting import Results
from training.programs import OWN, assert_same, numbers, words

WAIT = 300.0  # seconds: the machine may be busy
LIMITED = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing more raises an error instead
import esbas.cli
limit, sizes = getattr(resource, sys.argv[1]), int(sys.argv[2])
resource.setrlimit(limit, (sizes, sizes))
sys.exit(esbas.cli.main(sys.argv[3:]))
"""


def limited(limit, size, *arguments):
    """Run the program with a limit of the operating system."""
    command = [sys.executable, "-c", LIMITED, limit, str(size), *map(str, arguments)]
    return subprocess.run(command, timeout=WAIT, capture_output=True, text=True, check=False)


def assert_one_sentence(errors, *parts):
    assert "Traceback" not in errors
    sentences = [line for line in errors.splitlines() if line.startswith("esbas: ")]
    assert len(sentences) == 1, errors
    assert all(part in sentences[0] for part in parts), errors


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted training."""
    out = tmp_path_factory.mktemp("disk") / "whole"
    assert cli.main(words(out, "--no-tensorboard", learners=OWN[-1:], steps=4000)) == 0
    return out


@pytest.mark.parametrize("size", [100, 3000, 12_000, 60_000], ids=lambda size: f"{size} bytes")
def test_a_training_on_a_full_disk_continues(whole, tmp_path, size):
    out = tmp_path / "it"
    command = words(out, "--checkpoint-every", "0", learners=OWN[-1:], steps=4000)
    full = limited("RLIMIT_FSIZE", size, *command)
    assert full.returncode == 2, full.stderr
    assert_one_sentence(
        full.stderr,
        str(out),
        "the file is larger than this process may write: raise the limit",
        "try again",
    )
    assert cli.main([*command, "--no-tensorboard"]) == 0
    assert_same(numbers(whole), numbers(out))
    assert not list(out.rglob("*.tmp"))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder_deleted_during_a_training(tmp_path, capsys, monkeypatch, jobs):
    out = tmp_path / "it"
    program = words(
        out,
        "--no-tensorboard",
        "--checkpoint-every",
        "0",
        "--seeds",
        "0",
        "1",
        "--jobs",
        jobs,
        steps=10**9,
    )
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "esbas", *program],
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=tmp_path,
        )
    try:
        while process.poll() is None and not (out / "runs" / "seed-0" / "clock.json").exists():
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        while process.poll() is None and out.exists():
            shutil.rmtree(out, ignore_errors=True)
        assert process.wait(WAIT) == 2
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert_one_sentence(
        (tmp_path / "log").read_text(), "the folder does not exist any more: restore the folder"
    )


@pytest.mark.services
def test_too_many_open_files(whole, tmp_path):
    out = tmp_path / "it"
    command = words(out, "--no-tensorboard", learners=OWN[-1:], steps=4000)
    codes = set()
    for size in (4, 6, 8, 10, 12):
        few = limited("RLIMIT_NOFILE", size, *command)
        codes.add(few.returncode)
        if few.returncode:
            assert_one_sentence(few.stderr, "too many files are open")
    assert 2 in codes
    assert cli.main(command) == 0
    assert_same(numbers(whole), numbers(out))


def test_a_file_in_the_place_of_a_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert cli.main(words(out, "--no-tensorboard", steps=50, learners=["random"])) == 2
        assert_one_sentence(capsys.readouterr().err, str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_read_only_folder(tmp_path, capsys, monkeypatch):
    out = tmp_path / "it"
    command = words(out, "--no-tensorboard", steps=50, learners=["random"])
    assert cli.main(command) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    writing = os.O_WRONLY | os.O_RDWR
    real = os.open

    def refuse(path, flags, *more, **options):
        if flags & writing:
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *more, **options)

    (out / "runs" / "seed-0" / "clock.json").unlink()
    monkeypatch.setattr("os.open", refuse)
    capsys.readouterr()
    assert cli.main(["resume", str(out), "--no-tensorboard"]) == 2
    assert_one_sentence(capsys.readouterr().err, "permission is denied: change its permissions")
    monkeypatch.undo()
    assert cli.main(["resume", str(out), "--no-tensorboard"]) == 0
    assert before.keys() == {path for path in out.rglob("*") if path.is_file()}


def test_a_portfolio_is_never_half_written(tmp_path, monkeypatch, capsys):
    out = tmp_path / "it"
    command = words(out, "--no-tensorboard", steps=50, learners=["random"])
    real = os.fsync

    def full(descriptor):
        if "portfolio.toml" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr("os.fsync", full)
    assert cli.main(command) == 2
    assert_one_sentence(
        capsys.readouterr().err,
        "portfolio.toml' must be readable and writable, but the disk is full",
    )
    assert not (out / "portfolio.toml").exists()
    assert cli.main(["resume", str(out)]) == 2
    assert "is not the folder of a training" in capsys.readouterr().err
    monkeypatch.undo()
    assert cli.main(command) == 0
    # what was left does not keep the training from its folder
    assert not (tmp_path / "it-2").exists()
    assert cli.main(["resume", str(out), "--no-tensorboard"]) == 0


def test_a_part_that_cannot_be_read_is_not_run_again(tmp_path, monkeypatch):
    results = Results(tmp_path / "it", command="esbas test", config={})
    results.store_part("a", {})
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, former[1]))
    try:
        with pytest.raises(OSError, match="too many files are open"):
            results.part("a")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, former)
    assert results.part("a") == {}


def test_a_deleted_current_folder(tmp_path):
    code = "import os, shutil, sys; os.chdir(sys.argv.pop(1)); os.rmdir(os.getcwd()); "
    code += "from esbas.cli import program; program()"
    (tmp_path / "gone").mkdir()
    command = [
        sys.executable,
        "-c",
        code,
        str(tmp_path / "gone"),
        "train",
        "CartPole-v1",
        "--learners",
        "random",
    ]
    done = subprocess.run(command, timeout=WAIT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert_one_sentence(done.stderr, "the folder does not exist any more")
