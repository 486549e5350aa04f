import threading
import time
from functools import partial

import numpy as np
import pytest

from engine import plain
from esbas import seeding
from esbas.engine import run_parts
from esbas.errors import InvalidValueError


class Store:
    """A results folder in memory."""

    def __init__(self) -> None:
        self.parts: dict[str, dict] = {}

    def run(self, parts, *, jobs=1, **options):
        return run_parts(
            parts,
            load=self.parts.get,
            store=self.parts.__setitem__,
            jobs=jobs,
            description="test",
            **options,
        )


def draw(name):
    return {"x": seeding.generator(0, name).random(3)}


def parts(n=6):
    return {f"part{k}": partial(draw, f"part{k}") for k in range(n)}


@pytest.mark.parametrize(
    "options", [{"jobs": 2}, {"jobs": 9}, {"jobs": 2, "processes": True}, {"engine": "sequential"}]
)
def test_results_do_not_depend_on_the_number_of_jobs(options):
    alone = Store().run(parts())
    together = Store().run(parts(), **options)
    assert list(alone) == list(together) == list(parts())
    for name in alone:
        np.testing.assert_array_equal(alone[name]["x"], together[name]["x"])


def test_an_engine_outside_the_package_runs_parts():
    plain.started.clear()
    alone = Store().run(parts())
    other = Store().run(parts(), engine="engine.plain:Plain")
    assert plain.started == list(parts())
    assert list(alone) == list(other)
    for name in alone:
        np.testing.assert_array_equal(alone[name]["x"], other[name]["x"])


def test_parts_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=300)  # breaks unless two parts wait at the same time

    def wait():
        barrier.wait()
        return {}

    Store().run({"a": wait, "b": wait}, jobs=2)


def test_finished_parts_are_not_run_again():
    store = Store()
    runs = []

    def count(name):
        runs.append(name)
        return {"x": np.zeros(1)}

    store.parts["b"] = {"x": np.ones(1)}
    result = store.run({name: partial(count, name) for name in "abc"})
    assert runs == ["a", "c"]
    assert result["b"]["x"][0] == 1
    store.run({name: partial(count, name) for name in "abc"}, jobs=2)
    assert runs == ["a", "c"]


def test_nothing_to_do():
    assert Store().run({}) == {}


def test_an_exception_is_raised_and_running_parts_are_kept():
    store = Store()
    started = threading.Event()

    def fail():
        assert started.wait(300)
        raise ZeroDivisionError("in a part")

    def continues():
        started.set()
        time.sleep(0.2)
        return {"x": np.ones(1)}

    never = partial(pytest.fail, "a part was started after another one failed")
    with pytest.raises(ZeroDivisionError, match="in a part"):
        store.run(
            {"quick": partial(draw, "quick"), "fails": fail, "runs": continues, "never": never},
            jobs=2,
        )
    assert list(store.parts) == ["quick", "runs"]


def test_an_exception_in_a_process_is_raised():
    store = Store()
    with pytest.raises(InvalidValueError, match="seed"):
        store.run(
            {"a": partial(draw, "a"), "b": partial(seeding.generator, -1)}, jobs=2, processes=True
        )


def test_an_interrupt_keeps_finished_parts():
    store = Store()
    release = threading.Event()

    def interrupt(name, arrays):
        store.parts[name] = arrays
        if len(store.parts) == 2:
            raise KeyboardInterrupt

    def slow():
        release.wait(300)
        return {}

    work = parts(2) | {
        "slow": slow,
        "slow too": slow,
        "later": partial(pytest.fail, "started after the interrupt"),
    }
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_parts(work, load=store.parts.get, store=interrupt, jobs=2, description="test")
        assert time.monotonic() - start < 200  # did not wait for running parts
    finally:
        release.set()
    # they run at the same time and finish in any order
    assert sorted(store.parts) == ["part0", "part1"]
    finished = store.run(parts())
    np.testing.assert_array_equal(finished["part5"]["x"], draw("part5")["x"])


def test_the_note_is_computed_from_the_finished_parts(capsys):
    seen = []
    store = Store()
    store.parts["part0"] = draw("part0")
    store.run(
        parts(3),
        note=lambda finished: seen.append(len(finished)) or f"{len(finished)} finished parts",
    )
    assert seen == [2, 3]
    assert "3 finished parts" in capsys.readouterr().err


def test_jobs_must_be_positive():
    with pytest.raises(InvalidValueError, match="`jobs` must be at least 1"):
        Store().run({}, jobs=0)
