"""What a source declares is a part of what its readers are made of, as far as they read it."""

# ruff: noqa: S608, ANN401 - the SQL is the tests' own, and any field may be given

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.column import Column
from backfill_assets.models.fingerprint import fingerprints
from backfill_assets.models.graph import stored_graph
from backfill_assets.models.source_reading import (
    changed_sources,
    read_readings,
    readings_text,
    source_readings,
)
from backfill_assets.planning.plan.plan import Build, Change
from backfill_assets.planning.plan.request import Category
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.state_view import SourceState, UpstreamChange
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_run, a_source, day, days
from backfill_assets_tests.planning.test_build_plan import a_plan, a_state

if TYPE_CHECKING:
    from typing import Any

    from backfill_assets.models.source import Source

EVENTS = "web.events"
WHERE = "FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
NAMED = f"SELECT ds, id, cost {WHERE}"
STAR = f"SELECT * {WHERE}"
HASHED = f"SELECT ds, id, CAST(hash(*) AS DECIMAL(18,2)) AS cost {WHERE}"
WHOLE_ROW = f"SELECT ds, id, CAST(hash(struct(*)) AS DECIMAL(18,2)) AS cost {WHERE}"
COUNTED = f"SELECT ds, max(id) AS id, CAST(count(*) AS DECIMAL(18,2)) AS cost {WHERE} GROUP BY ds"


def source(**other: Any) -> Source:
    return a_source(**other)


def more(*names: str) -> Source:
    return source(columns=[*COLUMNS, *(Column(name, "string") for name in names)])


def retyped(name: str, dtype: str) -> Source:
    return source(
        columns=[
            Column(column.name, dtype if column.name == name else column.dtype)
            for column in COLUMNS
        ]
    )


def changed(sql: str, after: Source, before: Source | None = None) -> bool:
    old, new = (stored_graph([a_model(sql=sql)], [each]) for each in (before or source(), after))
    (model,) = old.models.values()
    known = read_readings(readings_text(source_readings(old, model)))
    (model,) = new.models.values()
    return changed_sources(new, model, known) == (EVENTS,)


@pytest.mark.parametrize("sql", [STAR, HASHED, WHOLE_ROW])
def test_a_column_that_is_added_changes_who_reads_every_column(sql: str):
    assert changed(sql, more("extra"))
    assert changed(sql, source(), before=more("extra"))


@pytest.mark.parametrize("sql", [NAMED, COUNTED])
def test_a_column_that_is_added_changes_nobody_who_does_not_read_it(sql: str):
    assert not changed(sql, more("extra"))
    assert not changed(sql, source(), before=more("extra"))


def test_a_column_of_another_type_changes_its_readers():
    assert changed(NAMED, retyped("cost", "double"))
    assert not changed(
        f"SELECT ds, id, CAST(1 AS DECIMAL(18,2)) AS cost {WHERE}", retyped("cost", "double")
    )


def test_how_a_source_is_cut_changes_every_reader():
    seen = source(columns=[*COLUMNS, Column("seen", "date")])
    moved = replace(seen, times=replace(seen.times, event="seen"))
    assert changed(NAMED, moved, before=seen)
    zone = replace(source().cadence, tz="Europe/Berlin")
    assert changed(NAMED, source(cadence=zone))


def test_words_about_a_source_change_nobody():
    said = [replace(column, description="said") for column in COLUMNS]
    assert not changed(STAR, source(columns=said, owner="team:web", description="said"))


def test_a_natural_join_reads_whatever_its_sides_share():
    sql = f"SELECT ds, id, cost FROM web.events NATURAL JOIN web.other {WHERE[16:]}"
    other = a_source(name="web.other", columns=[Column("ds", "date"), Column("id", "bigint")])
    model = a_model(sql=sql, upstreams=[EVENTS, "web.other"])
    old = a_graph(model, sources=[source(), other])
    wider = replace(other, columns=[*other.schema, Column("extra", "string")])
    new = a_graph(model, sources=[source(), wider])
    (reader,) = old.models.values()
    assert changed_sources(new, reader, source_readings(old, reader)) == ("web.other",)


def test_what_was_never_kept_counts_as_unchanged():
    graph = a_graph(a_model(sql=STAR), sources=[more("extra")])
    (model,) = graph.models.values()
    assert changed_sources(graph, model, None) == ()


def test_the_declaration_of_a_source_is_in_the_fingerprint_of_its_readers():
    name = a_model().name
    before = fingerprints(a_graph(a_model(sql=STAR), sources=[source()]))[name]
    after = fingerprints(a_graph(a_model(sql=STAR), sources=[more("extra")]))[name]
    assert before.logic == after.logic
    assert before.data != after.data


def test_a_source_that_is_declared_otherwise_plans_its_readers_and_theirs_anew():
    def graph(declared: Source) -> Any:
        first, second = a_model("web.a", sql=STAR), a_model("web.b", upstreams=["web.a"])
        return a_graph(first, second, sources=[declared])

    plan = a_plan(graph(more("extra")), a_state(graph(source())))
    assert {model.model: model.build for model in plan.models} == {
        "web.a": Build.NEW_VERSION,
        "web.b": Build.NEW_VERSION,
    }
    assert plan.models[0].category is Category.BREAKING
    forgotten = a_state(graph(source()))
    running = {
        name: replace(snapshot, sources=None) for name, snapshot in forgotten.running.items()
    }
    assert a_plan(graph(more("extra")), replace(forgotten, running=running)).is_empty
    assert a_plan(graph(source()), a_state(graph(source()))).is_empty


@pytest.mark.parametrize("name", ["web.a", EVENTS])
def test_a_model_that_becomes_a_source_and_a_source_that_becomes_a_model_make_their_readers_anew(
    name: str,
):
    reader = a_model("web.b", upstreams=[name])
    made = a_model(name, upstreams=["web.raw"])
    as_model = a_graph(made, reader, sources=[source(name="web.raw")])
    as_source = a_graph(reader, sources=[source(name="web.raw"), source(name=name)])

    for before, after in ((as_model, as_source), (as_source, as_model)):
        (planned,) = [
            model for model in a_plan(after, a_state(before)).models if model.model == "web.b"
        ]
        assert (planned.category, planned.build) == (Category.BREAKING, Build.NEW_VERSION)


LATE = days(9, 10)


def _late_plan(now: Source, relied: dict[str, Source], more_running: tuple[Any, ...] = ()) -> Any:
    """Late data over two cells, where each of the models relies on its own declaration of the source."""
    reads = {"sql": NAMED, "late_window": 5}
    models = [a_model(name, **reads) for name in relied]
    graph = stored_graph(models, [now])
    known = {
        name: snapshots_of(stored_graph(models, [source]))[name] for name, source in relied.items()
    }
    state = a_state(graph)
    late = SourceState(
        Pointer("", EVENTS, "", "", 9),
        (a_run(day(1, 8), 0, 0, ""), a_run(day(9, 2), 30, 30, "")),
        known_changes=(UpstreamChange(30, LATE),),
    )
    running = {**known, **{snapshot.model.name: snapshot for snapshot in more_running}}
    state = replace(state, view=replace(state.view, sources={EVENTS: late}), running=running)
    return a_plan(graph, state, late=tuple((name, LATE) for name in relied), skip_upstream=True)


def test_a_plan_for_late_data_decides_no_change_of_a_model_that_relies_on_another_declaration():
    by_ds = source(columns=[*COLUMNS, Column("seen", "date")])
    by_seen = replace(by_ds, times=replace(by_ds.times, event="seen"))
    for now in (by_ds, by_seen):
        plan = _late_plan(now, {"web.x": by_seen, "web.y": by_ds, "web.z": by_ds})
        assert {(model.model, model.change, model.build) for model in plan.models} == {
            (name, Change.UNCHANGED, Build.IN_PLACE) for name in ("web.x", "web.y", "web.z")
        }
        assert all(model.cells == LATE for model in plan.models)


def test_a_plan_for_late_data_takes_no_model_away_that_is_not_declared_any_more():
    (gone,) = snapshots_of(a_graph(a_model("web.gone"))).values()
    plan = _late_plan(source(), {"web.x": source()}, (gone,))
    assert plan.removed == ()
    assert [model.model for model in plan.models] == ["web.x"]
