from __future__ import annotations

from dataclasses import replace

from backfill_assets.intervals import IntervalSet
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.snapshots.snapshot import snapshots_of, stored_model
from backfill_assets_tests.builders import (
    a_graph,
    a_model,
    a_run,
    a_view,
    a_whole,
    day,
    days,
)

FIRST = a_model("web.first")
LAST = a_whole("web.last", upstreams=["web.first"])


def test_a_stored_snapshot_reads_back_as_the_model_that_it_is_of():
    for snapshot in snapshots_of(a_graph(FIRST, LAST)).values():
        assert stored_model(snapshot.definition()) == snapshot.model


def test_the_snapshot_of_a_stored_model_is_the_same_snapshot():
    before = snapshots_of(a_graph(FIRST, LAST))
    stored = [stored_model(snapshot.definition()) for snapshot in before.values()]

    assert snapshots_of(a_graph(*stored)) == before


def test_a_version_is_named_after_model_and_data():
    version = snapshots_of(a_graph(FIRST))["web.first"].version

    assert version.startswith("web__first__")
    assert version.replace("_", "").isalnum()


def test_words_keep_the_table_and_logic_takes_another():
    before = snapshots_of(a_graph(FIRST, LAST))
    words = snapshots_of(a_graph(replace(FIRST, grain="other words"), LAST))
    logic = snapshots_of(
        a_graph(
            replace(
                FIRST,
                query=SqlQuery(
                    "SELECT ds, id, 1 AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
                ),
            ),
            LAST,
        )
    )

    for name in before:
        assert words[name].version == before[name].version
        assert logic[name].version != before[name].version


def test_a_model_without_pointer_has_nothing_ready():
    view = a_view({"web.first": [a_run(day(1), 1), a_run(day(2), 2), a_run(day(5), 3)]})

    assert view.ready("web.first") == days(1, 2, 5)
    assert view.ready("web.last") == IntervalSet.empty()
