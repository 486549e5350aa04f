"""The engine `ray` on two nodes: its contract, lost workers, what jobs find, and what is sent."""

import os
import signal
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from esbas.engine import Job, Resources, check_engine, find_engine, run_parts
from esbas.errors import EngineError, WorkerLostError
from processes import wait_until


def outcomes(engine, function, jobs, count=1):
    with find_engine(engine).map(function, jobs, resources=Resources(jobs=count)) as found:
        return {outcome.name: outcome for outcome in found}


def test_the_engine_keeps_the_contract(cluster):
    check_engine(lambda: find_engine(cluster.engine))


def end(context, how, folder):
    with (Path(folder) / how).open("a") as file:
        file.write("x")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits":
        os._exit(3)
    if how == "odd result":
        return threading.Lock()
    if how == "odd error":
        raise Odd(key=how)
    return how


class Odd(Exception):
    """Cannot be unpickled."""

    def __init__(self, *, key):
        super().__init__(f"odd {key}")


def test_any_end_of_a_job_gives_an_outcome(cluster, tmp_path):
    hows = "killed", "well", "exits", "odd result", "odd error", "also well"
    jobs = [
        *(Job(how, (how, str(tmp_path))) for how in hows),
        Job("odd argument", (threading.Lock(), "")),
    ]
    found = outcomes(cluster.engine, end, jobs, count=2)
    assert found["well"].result() == "well"
    assert found["also well"].result() == "also well"
    for name in ("killed", "exits"):
        assert isinstance(found[name].error, WorkerLostError)
        assert f"Job {name!r} must run to its end, but it ended its worker 3 times" in str(
            found[name].error
        )
        assert (tmp_path / name).read_text() == "xxx"
    assert "A result must be picklable, but TypeError" in str(found["odd result"].error)
    assert "Odd: odd odd error" in str(found["odd error"].error)
    assert "Job 'odd argument' must be picklable, but TypeError" in str(found["odd argument"].error)
    assert "In a worker process" in found["odd error"].error.__notes__[0]


def dies(name, deadly):
    if name == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"x": np.arange(3)}


def test_a_part_that_kills_its_worker_is_reported_and_the_rest_goes_on(cluster, capfd):
    stored = {}
    parts = {name: partial(dies, name, "a") for name in "abcdef"}
    with pytest.raises(WorkerLostError, match="Job 'a' must run to its end"):
        run_parts(
            parts,
            load=stored.get,
            store=stored.__setitem__,
            jobs=2,
            description="parts",
            engine=cluster.engine,
        )
    assert set(stored) == set("bcdef")
    assert (
        "esbas: note: Job 'a' must run to its end, but it ended its worker 3 times"
        in capfd.readouterr().err
    )


def look(context):
    import numba
    from threadpoolctl import threadpool_info

    counts = {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}
    return os.environ["OMP_NUM_THREADS"], numba.get_num_threads(), counts, Path.cwd()


def test_jobs_do_not_use_more_threads_than_cpus(cluster):
    (outcome,) = outcomes(cluster.engine, look, [Job("look")]).values()
    assert outcome.result() == ("1", 1, {1}, Path.cwd())


def test_resources_that_no_machine_has_are_reported(cluster, capfd):
    stopping = threading.Event()
    threading.Timer(0.5, stopping.set).start()
    engine = find_engine(cluster.engine)
    asked = Resources(cpus=3)
    with engine.map(look, [Job("large")], resources=asked, stop=stopping.is_set) as found:
        assert list(found) == []  # it was never started
    message = "A job must fit on a machine, but it asks for cpus=3 gpus=0 memory=0, "
    message += "and the largest machines have 1 CPUs, 0 GPUs and"
    assert message in capfd.readouterr().err


def test_differences_between_machines_are_reported_once(cluster, capfd, monkeypatch):
    from esbas.engine import machine, ray_engine

    here = machine.describe_machine() | {"numpy": "1.0", "CPU": "abacus"}
    monkeypatch.setattr(ray_engine, "describe_machine", lambda: here)
    outcomes(cluster.engine, look, [Job(f"{k}") for k in range(4)])
    lines = [line for line in capfd.readouterr().err.splitlines() if "esbas: note" in line]
    assert 1 <= len(lines) <= 2
    assert (
        f"has CPU {machine.describe_machine()['CPU']} (here abacus), numpy {np.__version__} "
        f"(here 1.0)" in lines[0]
    )


def test_equal_machines_are_not_reported(cluster, capfd):
    outcomes(cluster.engine, look, [Job("look")])
    assert "esbas: note" not in capfd.readouterr().err


def changed_sum(context, number, table, more):
    table["x"][0] += number  # a job may change its arguments: the next one gets its own copy
    return float(table["x"].sum()) + more()


def ten(values):
    return float(len(values))


def test_large_shared_inputs_are_sent_once(cluster, monkeypatch):
    import ray

    sizes = []
    put = ray.put
    table = {"x": np.zeros(50_000)}
    values = np.ones(100_000)
    monkeypatch.setattr(ray, "put", lambda value: sizes.append(len(value)) or put(value))
    jobs = [Job(f"{k}", (k, table, partial(ten, values))) for k in range(5)]
    found = outcomes(cluster.engine, changed_sum, jobs, count=2)
    assert [found[f"{k}"].result() for k in range(5)] == [100_000.0 + k for k in range(5)]
    assert sorted(size // 100_000 for size in sizes if size > 100_000) == [4, 8]


def test_a_process_uses_one_cluster(cluster):
    import ray

    outcomes(cluster.engine, look, [Job("look")])
    assert ray.is_initialized()
    with pytest.raises(
        EngineError,
        match=f"is connected to {cluster.address} instead of that of this machine: call "
        f"ray.shutdown",
    ):
        outcomes("ray", look, [Job("look")])


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        (
            "ray:127.0.0.1:1",
            "Ray must be reachable at '127.0.0.1:1', but nothing answers at 127.0.0.1:1: start it",
        ),
        (
            "ray://127.0.0.1:1",
            (
                "Ray must be reachable at 'ray://127.0.0.1:1', but nothing answers at 127.0.0.1:1: "
                "start"
            ),
        ),
        (
            "ray:nonsense",
            "Ray must be reachable at 'nonsense', but Invalid address format: nonsense: start it",
        ),
    ],
)
def test_a_cluster_that_does_not_answer(cluster, engine, sentence):
    import ray

    ray.shutdown()  # of an earlier test
    with pytest.raises(EngineError) as caught:
        outcomes(engine, look, [Job("look")])
    assert sentence in str(caught.value)


def forever(context, path):
    Path(path).write_text(str(os.getpid()))
    while True:
        pass


def test_closing_ends_running_jobs(cluster, tmp_path):
    from processes import is_running

    file = tmp_path / "process"
    jobs = [Job("forever", (str(file),)), Job("quick", (str(tmp_path / "other"), True))]
    with find_engine(cluster.engine).map(maybe_forever, jobs, resources=Resources(jobs=2)) as found:
        assert next(found).name == "quick"
        wait_until(lambda: file.exists() and file.read_text(), "the start of the job")
    wait_until(lambda: not is_running(file.read_text()), "the end of the job")


def maybe_forever(context, path, quick=False):
    return None if quick else forever(context, path)
