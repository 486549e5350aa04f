"""The fruit collection task: its rules, its optimum, its rendering, and invalid maps."""

from collections import deque

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from esbas.errors import InvalidValueError, UnknownNameError
from esbas.experiments.envs import FruitGrid, FruitMap
from esbas.experiments.envs.fruit_grid.map import DEFAULT_MAP

NORTH, EAST, SOUTH, WEST = range(4)


def shortest_by_walking(text: str) -> dict[tuple[int, int], int]:
    """Forward search over positions and sets of fruits, written without the tables of the task."""
    cells = {
        (r, c): kind
        for r, row in enumerate(text.split("\n"))
        for c, kind in enumerate(row)
        if kind != "#"
    }
    fruits = frozenset(cell for cell, kind in cells.items() if kind == "F")
    found = {}
    for start in (cell for cell, kind in cells.items() if kind == "."):
        queue = deque([(start, fruits, 0)])
        seen = {(start, fruits)}
        while queue:
            (r, c), left, steps = queue.popleft()
            if not left:
                found[start] = steps
                break
            for cell in ((r - 1, c), (r, c + 1), (r + 1, c), (r, c - 1)):
                if cell in cells and (cell, left - {cell}) not in seen:
                    seen.add((cell, left - {cell}))
                    queue.append((cell, left - {cell}, steps + 1))
    return found


def noiseless(text: str, start: tuple[int, int], **settings) -> FruitGrid:
    env = FruitGrid(text, noise=0.0, **settings)
    env.reset(seed=0, options={"start": start})
    return env


# the test covers each mode
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes:UserWarning")
@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
def test_gymnasium_accepts_it(mode):
    check_env(FruitGrid(render_mode=mode), skip_render_check=mode is None)


def test_the_default_map_has_the_papers_states_and_a_mean_optimum_of_20_286():
    grid = FruitMap()
    assert (len(grid.cells), len(grid.fruits), grid.end, len(grid.starts)) == (18, 4, 270, 14)
    assert FruitGrid().optimum() == pytest.approx(284 / 14)
    assert set(grid.optimal_steps()) == {cell for cell in grid.cells if cell not in grid.fruits}


@pytest.mark.parametrize(
    "text", [DEFAULT_MAP, "F..\n.#F\n...", "F.F\n..F", ".F", "F....F\n.####.\n..F..."]
)
def test_the_optimum_is_the_shortest_walk(text):
    assert FruitGrid(text).optimal_steps() == shortest_by_walking(text)


def test_a_walk_by_hand():
    env = noiseless("F.#\n..F", (0, 1))
    assert env.step(NORTH)[1:4] == (0.0, False, False)  # out of the map: stays
    assert env.step(EAST)[1:4] == (0.0, False, False)  # into the wall: stays
    assert env.step(WEST)[1:4] == (1.0, False, False)
    # stays in the cell of the fruit, which was already eaten
    assert env.step(WEST)[1:4] == (0.0, False, False)
    for action in (SOUTH, EAST):
        assert env.step(action)[1:4] == (0.0, False, False)
    observation, reward, terminated, truncated, _ = env.step(EAST)
    assert (observation, reward, terminated, truncated) == (env.map.end, 1.0, True, False)


def test_states_differ_by_cell_and_remaining_fruits():
    env = noiseless("F.F", (0, 1))
    seen = [env.step(action)[0] for action in (WEST, EAST)]
    assert [env.map.decode(state) for state in seen] == [((0, 0), ((0, 2),)), ((0, 1), ((0, 2),))]
    assert env.map.decode(env.map.end) == (None, ())


def test_an_episode_is_truncated_after_100_steps_unless_it_ends_then():
    env = noiseless(".F", (0, 0))
    ends = [env.step(WEST)[2:4] for _ in range(100)]
    assert ends == [(False, False)] * 99 + [(False, True)]
    env = noiseless(".F", (0, 0), max_episode_steps=2)
    env.step(WEST)
    assert env.step(EAST)[2:4] == (True, False)


def test_starts_are_uniform_over_free_cells_and_noise_has_variance_one():
    env = FruitGrid()
    env.reset(seed=1)
    starts = [env.reset()[0] for _ in range(14_000)]
    assert set(starts) == set(env.map.starts.tolist())
    assert np.bincount(starts).max() < 1_150  # 1,000 expected, standard deviation 31
    rewards = [env.step(NORTH)[1] for _ in range(20_000)]
    assert np.mean(rewards) == pytest.approx(0, abs=0.03)
    assert np.var(rewards) == pytest.approx(1, abs=0.04)


def test_same_seed_same_episode():
    env = FruitGrid()
    walks = []
    for seed in (3, 3, 4):
        first, _ = env.reset(seed=seed)
        walks.append((first, [env.step(action)[:2] for action in (SOUTH, EAST, NORTH)]))
    assert walks[0] == walks[1] != walks[2]


def test_text_and_picture():
    env = noiseless("F.#\n..F", (0, 1), render_mode="ansi")
    assert env.render() == "FA#\n..F\n"
    env.step(WEST)
    assert env.render() == "A.#\n..F\n"
    for action in (SOUTH, EAST, EAST):
        env.step(action)
    assert env.render() == "..#\n..A\n"  # at the end the agent is where the last fruit was
    env = noiseless("F.#\n..F", (0, 1), render_mode="rgb_array")
    before = env.render()
    assert before.shape == (96, 144, 3)
    assert before.dtype == np.uint8
    env.step(WEST)
    changed = (env.render() != before).any(axis=2)
    assert changed[:48, :96].any()
    assert not changed[48:].any()
    assert not changed[:, 96:].any()
    assert FruitGrid().render() is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "F..\nF.",
            "The lines of a map must be equally long, but row 2 has 2 cells and row 1 has 3",
        ),
        (
            "F.x",
            "A map must consist of F .fruit., # .wall. and . .free., but 'x' is in row 1, column 3",
        ),
        ("F#.\n.#F", "walk from every cell to every fruit, but row 1, column 1 is cut off"),
        ("...", "A map must have 1 to 8 fruits, but got 0: mark them with F."),
        ("FFFFFFFFF.", "A map must have 1 to 8 fruits, but got 9"),
        ("FF", "A map must have a free cell to start on"),
        ("##", "1 to 8 fruits, but got 0"),
        (" \n", "A map must not be empty"),
    ],
)
def test_bad_maps_raise_a_clear_error(text, message):
    with pytest.raises(InvalidValueError, match=message) as caught:
        FruitGrid(text)
    assert "\n" not in str(caught.value)


def test_other_bad_input_raises_a_clear_error():
    with pytest.raises(
        InvalidValueError, match="`max_episode_steps` must be at least 22 on this map, but got 21"
    ):
        FruitGrid(max_episode_steps=21)
    with pytest.raises(InvalidValueError, match="`noise` must be at least 0, but got -1"):
        FruitGrid(noise=-1)
    with pytest.raises(UnknownNameError, match="did you mean 'rgb_array'"):
        FruitGrid(render_mode="rgb")
    with pytest.raises(
        InvalidValueError, match=r"`start` must be a free cell without a fruit, but got \(0, 0\)"
    ):
        FruitGrid().reset(options={"start": (0, 0)})
