"""Large memories, whose rows are in files of their own."""

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from esbas import Transition
from esbas._internal import archive
from esbas.errors import EsbasError, FileError, InvalidValueError, SaveFileError
from esbas.learners.dqn.replay import files as replay_files
from esbas.learners.dqn.replay.memory import SharedReplay
from learners.memories import VECTORS, everything, expect, stacked_walk, task, walk

FRAMES = gym.spaces.Box(0, 255, (4, 3, 3), np.uint8)
CAPACITY = 20


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every memory is large, and is written and read in several blocks."""
    monkeypatch.setattr(replay_files, "LARGE", 0)
    monkeypatch.setattr(replay_files, "BLOCK", 150)
    monkeypatch.setattr(replay_files, "PIECE", 7)


def memory(folder: Path | None, space: Any = FRAMES) -> SharedReplay:
    return SharedReplay(
        task(space), buffer_size=CAPACITY, stack=4 if space is FRAMES else 1, folder=folder
    )


def added(replay: SharedReplay, steps: list[Transition]) -> SharedReplay:
    for step in steps:
        replay.add(step)
    return replay


def names(folder: Path) -> list[int]:
    """The first row of each file."""
    return sorted(
        int(path.name.removeprefix("rows-").removesuffix(".zlib")) for path in folder.iterdir()
    )


def through_a_file(state: dict[str, Any], path: Path) -> dict[str, Any]:
    archive.write(path, "test", state)
    return archive.read(path, "test")


@pytest.mark.parametrize("space", [FRAMES, VECTORS], ids=["frames", "vectors"])
@pytest.mark.parametrize(
    "pauses",
    [[7] * 15, [50, 1, 1, 60], [23, 23, 23]],
    ids=["often", "rarely", "one more than fits"],
)
def test_a_memory_continues_identically_from_each_save(
    tmp_path: Path, space: Any, pauses: list[int]
) -> None:
    steps = (stacked_walk if space is FRAMES else walk)([5, 9, 1, 30, 2, 60, 12])
    replay = memory(tmp_path / "replay", space)
    plain = memory(None, space)
    done = 0
    for pause in pauses:
        added(replay, steps[done : done + pause])
        added(plain, steps[done : done + pause])
        done += pause
        state = through_a_file(replay.state_dict(), tmp_path / "state")
        replay = memory(tmp_path / "replay", space)
        replay.load_state_dict(state)
        for name, column in plain._columns.items():
            np.testing.assert_array_equal(replay._columns[name][:done], column[:done])
        assert (replay.added, replay.episodes) == (plain.added, plain.episodes)
        expect(everything(replay), steps[max(0, done - CAPACITY) : done])
        rows = replay.rows(np.arange(len(replay)))
        for one, other in zip(
            replay.batch(rows, steps=3, gamma=0.9),
            plain.batch(rows, steps=3, gamma=0.9),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_a_save_writes_what_is_new_and_nothing_if_nothing_is(tmp_path: Path) -> None:
    steps = stacked_walk([40])
    replay = added(memory(tmp_path), steps[:12])
    first, same = replay.state_dict(), replay.state_dict()  # two learners
    assert all(one is other for one, other in zip(first.values(), same.values(), strict=True))
    (path,) = tmp_path.iterdir()
    before = path.stat()
    del first, same
    assert replay.state_dict()["files"].tolist() == [[0, 12, before.st_size]]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    added(replay, steps[12:14])
    assert replay.state_dict()["files"][:, :2].tolist() == [[0, 12], [12, 2]]
    assert path.stat().st_ino == before.st_ino


def test_files_are_removed_one_save_after_the_last_that_needs_them(tmp_path: Path) -> None:
    steps = stacked_walk([100])
    replay = memory(tmp_path)
    listed = []
    present = []
    for start in range(0, 60, 10):
        listed.append(added(replay, steps[start : start + 10]).state_dict()["files"][:, 0].tolist())
        present.append(names(tmp_path))
        memory(tmp_path).load_state_dict(replay.state_dict())
    assert listed == [[0], [0, 10], [0, 10, 20], [10, 20, 30], [20, 30, 40], [30, 40, 50]]
    assert present == [
        [0],
        [0, 10],
        [0, 10, 20],
        [0, 10, 20, 30],
        [10, 20, 30, 40],
        [20, 30, 40, 50],
    ]


def test_a_run_that_was_killed_between_the_rows_and_the_save_file_continues_from_the_earlier_one(
    tmp_path: Path,
) -> None:
    steps = stacked_walk([100])
    others = stacked_walk([30, 30], seed=5)
    replay = added(memory(tmp_path), steps[:35])
    replay.state_dict()
    state = through_a_file(added(replay, steps[35:42]).state_dict(), tmp_path / "state")
    added(replay, steps[42:60]).state_dict()  # this state is lost
    (tmp_path / "state").unlink()
    assert names(tmp_path) == [12, 35, 42]
    again = memory(tmp_path)
    again.state_dict()  # as `esbas.resume` does, to restore it if it cannot be loaded
    again.load_state_dict(state)
    expect(everything(again), steps[22:42])
    saved = added(again, others[:3]).state_dict()
    last = memory(tmp_path)
    last.load_state_dict(saved)
    expect(everything(last), [*steps[25:42], *others[:3]])
    assert names(tmp_path) == [12, 35, 42]


def test_a_memory_that_has_grown_can_go_back_to_its_last_state(tmp_path: Path) -> None:
    steps = stacked_walk([60])
    replay = added(memory(tmp_path), steps[:30])
    state = replay.state_dict()
    added(replay, steps[30:42]).load_state_dict(state)
    expect(everything(replay), steps[10:30])
    expect(everything(added(replay, steps[30:])), steps[40:])


def test_a_memory_that_is_new_or_small_or_has_no_folder_writes_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "replay"
    steps = stacked_walk([9])
    assert "frames" in memory(folder).state_dict()
    assert "frames" in added(memory(None), steps).state_dict()
    monkeypatch.setattr(replay_files, "LARGE", 2**20)
    state = added(memory(folder), steps).state_dict()
    assert "frames" in state
    assert not folder.exists()
    monkeypatch.setattr(replay_files, "LARGE", 0)
    replay = memory(folder)
    replay.load_state_dict(state)
    assert replay.state_dict()["files"][:, :2].tolist() == [[0, 9]]


def test_a_state_that_lists_files_needs_their_folder(tmp_path: Path) -> None:
    state = added(memory(tmp_path), stacked_walk([9])).state_dict()
    with pytest.raises(
        SaveFileError, match="must be loaded with that folder, but has none: pass it as `folder`"
    ):
        memory(None).load_state_dict(state)


def test_a_folder_that_cannot_be_written_raises_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="must be readable and writable"):
        added(memory(tmp_path / "file" / "replay"), stacked_walk([9])).state_dict()


def first_file(folder: Path) -> Path:
    return min(folder.iterdir())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (Path.unlink, "does not exist: restore it, or start again"),
        (cut, "bytes instead of"),
        (flip, "must have rows of a replay memory as they were saved"),
        (link, "must have rows of a replay memory as they were saved"),
        (replace_by_folder, "must have rows of a replay memory as they were saved"),
    ],
)
def test_a_damaged_file_is_refused_and_changes_nothing(
    tmp_path: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    folder = tmp_path / "replay"
    steps = stacked_walk([30, 30])
    state = added(memory(folder), steps[:15]).state_dict()
    damage(first_file(folder))
    replay = added(memory(folder), steps[:3])
    with pytest.raises(SaveFileError, match=sentence) as error:
        replay.load_state_dict(state)
    assert "\n" not in str(error.value)
    expect(everything(replay), steps[:3])
    expect(everything(added(replay, steps[3:60])), steps[40:60])


def forged(folder: Path, state: dict[str, Any], change: Callable[[bytes], bytes]) -> dict[str, Any]:
    """The state with another file whose size and checksum are right."""
    path = first_file(folder)
    data = change(zlib.decompress(path.read_bytes()))
    path.write_bytes(data)
    files = state["files"].copy()
    digests = state["digests"].copy()
    files[0, 2], digests[0] = len(data), list(hashlib.sha256(data).digest())
    return state | {"files": files, "digests": digests}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: zlib.compress(rows + bytes(10**7)), "does not end after its last row"),
        (lambda rows: zlib.compress(rows[:-1]), "has too few rows"),
        (lambda rows: zlib.compress(rows) + b"more", "has more than its rows"),
        (lambda rows: zlib.compress(rows)[:-2], "does not end after its last row"),
        (lambda rows: b"not compressed", "incorrect header"),
        (
            lambda rows: zlib.compress(b"\x01" * len(rows)),
            "`actions` must be from 0 to 1, but got ",
        ),
        (lambda rows: zlib.compress(b"\x02" * len(rows)), "`terminated` are not true or false"),
    ],
)
def test_a_forged_file_is_refused_and_changes_nothing(
    tmp_path: Path, change: Callable[[bytes], bytes], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_files, "BLOCK", 2**20)
    state, replay = added(memory(tmp_path), stacked_walk([15])).state_dict(), memory(tmp_path)
    with pytest.raises(SaveFileError, match=sentence):
        replay.load_state_dict(forged(tmp_path, state, change))
    assert len(replay) == 0
    assert not replay._columns["frames"].any()


def test_other_rows_of_the_same_size_are_refused(tmp_path: Path) -> None:
    state = added(memory(tmp_path), stacked_walk([15])).state_dict()
    state = forged(tmp_path, state, lambda rows: zlib.compress(rows, 0))
    memory(tmp_path).load_state_dict(state)
    forged(tmp_path, state, lambda rows: zlib.compress(bytes([rows[0] ^ 1]) + rows[1:], 0))
    with pytest.raises(SaveFileError, match="its checksum is wrong"):
        memory(tmp_path).load_state_dict(state)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [[0, 12, 90]],
        [[0, 12, 90], [13, 12, 90]],
        [[0, 12, 90], [11, 14, 90]],
        [[0, 25, 90], [25, 0, 90]],
        [[-12, 24, 90], [12, 13, 90]],
        [[12, 13, 90], [0, 12, 90]],
        [[5, 20, 90]],
        [[0, 2, 9], [2, 23, 90]],
        [[0, 12, -1], [12, 13, 90]],
    ],
)
def test_a_list_of_files_must_be_that_of_the_memory(tmp_path: Path, files: list[list[int]]) -> None:
    state = added(memory(tmp_path), stacked_walk([25])).state_dict()
    numbers = np.array(files, np.int64).reshape(-1, 3)
    with pytest.raises(
        InvalidValueError, match="the files must have the rows 2 to 25, each with a digest, but got"
    ):
        memory(tmp_path).load_state_dict(
            state | {"files": numbers, "digests": np.zeros((len(files), 32), np.uint8)}
        )


@pytest.mark.parametrize(
    "change",
    [
        {"digests": np.zeros((1, 32), np.uint8)},
        {"tail_packed": np.zeros(3, np.uint8)},
        {"tail_packed": np.frombuffer(zlib.compress(bytes(10**7)), np.uint8)},
        {"tail_rows": np.zeros(10**6, np.int64)},
        {"head_packed": None},
        {"files": [[0, 25, 9]]},
        {"frames": np.zeros((25, 3, 3), np.uint8)},
        {"clip_rewards": True},
    ],
)
def test_a_state_of_another_shape_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    replay = added(memory(tmp_path), stacked_walk([12, 13])[:20])
    replay.state_dict()
    state = added(replay, stacked_walk([12, 13])[20:]).state_dict()
    again = memory(tmp_path)
    with pytest.raises(EsbasError):
        again.load_state_dict(state | change)
    assert len(again) == 0
    again.load_state_dict(state)


def test_clipped_rewards(tmp_path: Path) -> None:
    steps = [
        step._replace(reward=reward)
        for step, reward in zip(walk([4]), (25.0, -3.0, 0.5, 0.0), strict=True)
    ]
    replay, plain = (
        SharedReplay(task(), buffer_size=CAPACITY, clip_rewards=clips) for clips in (True, False)
    )
    added(replay, steps)
    assert everything(replay).returns.tolist() == [1.0, -1.0, 0.5, 0.0]
    with pytest.raises(InvalidValueError, match="the `clip_rewards` with which it was saved, "):
        plain.load_state_dict(replay.state_dict())
    earlier = {
        name: value
        for name, value in added(plain, steps).state_dict().items()
        if name != "clip_rewards"
    }
    again = SharedReplay(task(), buffer_size=CAPACITY)
    again.load_state_dict(earlier)  # of esbas 0.3
    assert everything(again).returns.tolist() == [25.0, -3.0, 0.5, 0.0]
    with pytest.raises(InvalidValueError, match="the `clip_rewards` with which it was saved, "):
        replay.load_state_dict(earlier)
