"""The log of a study, summed up."""

import math
import sqlite3

import pytest

import esbas
from esbas.errors import StoreError
from esbas.studies import open_store
from esbas.studies.overview import overview


def summed(url, name="support", **options):
    store = open_store(url, create=False)
    try:
        return overview(store, store.get(name).id, **options)
    finally:
        store.close()


def test_totals_are_those_of_the_events(url, monkeypatch):
    monkeypatch.setattr("esbas.studies.overview.CHUNK", 7)  # several statements
    study = esbas.open_study(url, "support", selector="uniform", arms=["a", "b"])
    with study:
        for k in range(30):
            choice = study.ask()
            if k % 5:
                study.tell(choice, 1e9 + math.sin(k))
        events = list(study.history())
    found = summed(url, parts=10)
    assert (found.last, found.width) == (len(events), 4)
    assert found.origin == next(event.value for event in events if event.kind == "told")
    assert sum(each.asked for each in found.totals) == 30
    for each in found.totals:
        own = [
            event
            for event in events
            if event.arm == each.arm and (event.number - 1) // 4 == each.part
        ]
        values = [event.value - found.origin for event in own if event.kind == "told"]
        assert each.asked == sum(event.kind == "asked" for event in own)
        assert each.told == len(values)
        assert each.sum == pytest.approx(sum(values), abs=1e-9)
        assert each.squares == pytest.approx(sum(value**2 for value in values), abs=1e-9)


def test_a_study_without_events_and_one_with_values_that_have_no_squares(url):
    with esbas.open_study(url, "support", selector="uniform", arms=["a", "b"]) as study:
        assert summed(url, parts=10) == (0, 1, 0.0, [])
        study.tell(study.ask(), 1e200)
        study.tell(study.ask(), 2.0)
    found = summed(url, parts=1)
    assert (found.width, found.origin) == (2, 2.0)
    assert (sum(each.asked for each in found.totals), sum(each.told for each in found.totals)) == (
        2,
        1,
    )


@pytest.mark.parametrize("change", ["number = 'x'", "value = 'x'", "arm = NULL"])
def test_a_damaged_log_is_one_sentence(change, url, tmp_path):
    with esbas.open_study(url, "support", selector="uniform", arms=["a", "b"]) as study:
        study.tell(study.ask(), 1.0)
    with sqlite3.connect(tmp_path / "studies.db") as database:
        database.execute(f"UPDATE esbas_event SET {change} WHERE kind = 'told'")
    database.close()
    with pytest.raises(StoreError, match="An event of the log is damaged"):
        summed(url, parts=10)
