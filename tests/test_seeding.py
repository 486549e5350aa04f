import json
import subprocess
import sys

import numpy as np
import pytest

from esbas import seeding
from esbas.errors import InvalidValueError


def test_a_stream_follows_from_seed_and_name():
    draws = seeding.generator(7, "environment", 3).random(4)
    assert np.array_equal(draws, seeding.generator(7, "environment", 3).random(4))
    for other in (
        seeding.generator(8, "environment", 3),
        seeding.generator(7, "acting", 3),
        seeding.generator(7, "environment", 4),
        seeding.generator(7, "environment"),
    ):
        assert not np.array_equal(draws, other.random(4))


def test_integers_are_valid_seeds_for_any_library():
    seeds = [seeding.integer(0, "environment", number) for number in range(200)]
    assert len(set(seeds)) == 200
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_streams_are_the_same_in_another_process():
    code = (
        "from esbas import seeding; "
        "print(seeding.integer(5, 'a', 1), seeding.generator(5, 'b').random())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert printed == [str(seeding.integer(5, "a", 1)), str(seeding.generator(5, "b").random())]


def test_a_state_is_plain_data_and_restores_the_generator():
    rng = seeding.generator(1, "x")
    rng.random(10)
    state = json.loads(json.dumps(seeding.state_of(rng)))
    expected = rng.random(5)
    other = seeding.generator(2, "y")
    seeding.restore(other, state)
    assert np.array_equal(other.random(5), expected)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidValueError, match="`seed` must be an integer of at least 0"):
        seeding.generator(seed)
