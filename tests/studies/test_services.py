"""PostgreSQL, and long tests of killed processes: `make test-services`."""

import os
import uuid

import pytest

import esbas
from esbas.errors import StoreError, StudyError
from esbas.studies import copy_study, open_store, replay
from esbas.studies.overview import overview
from studies.study_rules import RULES
from studies.working import kill_often

pytestmark = pytest.mark.services


@pytest.fixture
def database(server):
    """The URL of a new, empty database."""
    import psycopg  # here, because it is an extra

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.url.replace("/postgres?", f"/{name}?")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_twenty_kills_lose_and_double_nothing(kind, url, database, tmp_path):
    kill_often(url if kind == "sqlite" else database, tmp_path, processes=8, kills=20)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_study_in_postgresql_keeps_the_rules(rule, database):
    rule(database)


def test_a_study_survives_a_crash_of_the_server(server, database):
    with esbas.open_study(database, "study", selector="ssbas", arms=["a", "b"]) as study:
        choice = study.ask(key="first")
        server.stop()
        with pytest.raises(StoreError, match="PostgreSQL cannot be reached"):
            study.tell(choice, 1.0, key="second")
        server.start()
        study.tell(choice, 1.0, key="second")
        study.tell(choice, 1.0, key="second")
        assert [event.kind for event in study.history()] == ["asked", "told"]
        assert replay(study).difference is None


def test_copies_between_stores_have_the_same_log(url, database):
    with esbas.open_study(
        url, "study", selector="exp3", arms=["ä", "b'; DROP TABLE esbas_event"]
    ) as study:
        for number in range(60):
            study.tell(
                study.ask(context=[number / 7, float("nan")], key=f"{number}"), number % 3 / 7
            )
        log = [event[:-1] for event in study.history()]
    stores = open_store(url), open_store(database)
    assert copy_study(stores[0], "study", stores[1]) == 120
    assert copy_study(stores[1], "study", stores[0], new_name="back") == 120
    with pytest.raises(StudyError, match="There is already a study"):
        copy_study(stores[0], "study", stores[1])
    for location, name in ((database, "study"), (url, "back")):
        with esbas.open_study(location, name) as copy:
            assert [event[:-1] for event in copy.history()] == log
            assert replay(copy).difference is None
            copy.ask()
    for store in stores:
        store.close()


def test_a_log_is_summed_up_alike_in_both_databases(url, database):
    found = []
    for location in (url, database):
        with esbas.open_study(
            location, "study", selector="uniform", arms=["a", "b"], seed=1
        ) as study:
            for number in range(40):
                # Sums of halves are exact
                study.tell(study.ask(), 1e200 if number == 20 else number % 7 / 2)
        store = open_store(location)
        found.append(overview(store, store.get("study").id, parts=10))
        store.close()
    assert found[0] == found[1]
    assert sum(each.told for each in found[0].totals) == 39


def test_a_database_without_tables_is_no_store(database):
    with pytest.raises(StoreError, match="There is no store at"):
        open_store(database, create=False)


def test_a_server_that_is_not_there_is_one_sentence():
    with pytest.raises(
        StoreError,
        match=r"PostgreSQL cannot be reached at 'postgresql://me@127\.0\.0\.1:1/db'",
    ) as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)
    assert os.linesep not in str(caught.value)
