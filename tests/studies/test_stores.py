"""Stores that are damaged, foreign, or at a wrong URL."""

import pytest

import esbas
from esbas.errors import EsbasError, StoreError
from esbas.studies import open_store
from studies.study_rules import ARMS, change


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE esbas_event SET arm = 'nobody' WHERE seq = 3",
            "Event 3 .*cannot be repeated .the selector chooses",
        ),
        ("UPDATE esbas_event SET propensity = 0.5 WHERE seq = 3", "Event 3 .*cannot be repeated"),
        ("UPDATE esbas_event SET kind = 'guessed' WHERE seq = 3", "there is no kind 'guessed'"),
        (
            "UPDATE esbas_event SET kind = 'withdrawn' WHERE seq = 3",
            "Event 3 .*its choice is not open",
        ),
        ("UPDATE esbas_event SET data = '[1' WHERE seq = 3", "Event 3 .*is damaged .*must be JSON"),
        ("UPDATE esbas_event SET data = '[1]' WHERE seq = 3", "Event 3 .*is damaged"),
        (
            "UPDATE esbas_event SET data = '{\"among\": 7}' WHERE seq = 3",
            "Event 3 .*cannot be repeated",
        ),
        ("UPDATE esbas_event SET number = 'many' WHERE seq = 3", "Event 3 .*is damaged"),
        ("UPDATE esbas_event SET value = 9e999 WHERE seq = 4", "Event 4 .*is damaged"),
        (
            "DELETE FROM esbas_event WHERE seq = 3",
            "A log must have no gaps, but event 4 follows event 2",
        ),
        (
            "UPDATE esbas_study SET description = '{}'",
            "The description of study 'study' must have the keys",
        ),
        ("UPDATE esbas_study SET description = 7.5", "The description of study 'study' must"),
        ("UPDATE esbas_version SET version = 2", "upgrade esbas"),
        ("DROP TABLE esbas_event", "is not a store of esbas, or is damaged"),
        ("PRAGMA application_id = 7", "belongs to another program"),
    ],
)
def test_damaged_stores_are_one_sentence(statement, message, url):
    with esbas.open_study(url, "study", selector="uniform", arms=ARMS, seed=1) as study:
        for _ in range(3):
            study.tell(study.ask(), 1.0)
    change(url, statement)
    with pytest.raises(EsbasError, match=message) as caught:
        esbas.open_study(url, "study")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"hello" * 100, b"SQLite format 3\0" + b"\xff" * 5000, b"PK\3\4"]
)
def test_foreign_files_are_one_sentence(content, tmp_path):
    path = tmp_path / "foreign.db"
    path.write_bytes(content)
    with pytest.raises(
        StoreError, match=r"is not a store of esbas, or is damaged|belongs to another program"
    ):
        esbas.open_study(str(path), "study", selector="uniform", arms=ARMS)
    assert path.read_bytes() == content


def test_databases_of_others_are_left_alone(tmp_path):
    path = tmp_path / "other.db"
    change(f"sqlite:///{path}", "CREATE TABLE own (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="belongs to another program"):
        esbas.open_study(path, "study", selector="uniform", arms=ARMS)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("mysql://host/db", "starts with 'mysql'"),
        ("sqlite://file.db", "three slashes"),
        ("sqlite:///", "A store must be a file"),
        (":memory:", "A store must be a file"),
        ("sqlite:///a.db?synchronous=off", "`synchronous` must be normal or full"),
        ("sqlite:///a.db?mode=ro", "no option but `synchronous`"),
        ("missing/a.db", "The folder of a store must exist"),
        (".", "must be a file"),
    ],
)
def test_wrong_urls_are_one_sentence(location, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EsbasError, match=error):
        open_store(location)
    assert list(tmp_path.iterdir()) == []


def test_forms_of_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    esbas.open_study("sqlite:///a b.db", "study", selector="uniform", arms=ARMS).close()
    for location in (
        "a b.db",
        "sqlite:///a%20b.db?synchronous=full",
        f"sqlite:///{tmp_path}/a b.db",
        tmp_path / "a b.db",
    ):
        esbas.open_study(location, "study").close()
    with pytest.raises(StoreError, match="There is no store at"):
        esbas.open_study("other.db", "study")
