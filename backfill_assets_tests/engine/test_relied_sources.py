"""A source is read as the snapshots that run declare it: what is loaded counts once it is promoted."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.batch.sources import declared_otherwise
from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.project.events import Failed
from backfill_assets.engine.project.relied_sources import as_relied_on
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.graph import stored_graph
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.source_reading import declared_as, source_readings
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_observing import append
from backfill_assets_tests.engine.world import ended, on

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source
    from backfill_assets_tests.engine.world import World

VISITS, OTHERS = "web.visits", "web.others"
SEEN = [*COLUMNS, Column("seen", "date")]
BY_DS = a_source(columns=SEEN)
BY_SEEN = a_source(columns=SEEN, times=TimeColumns(event="seen"))


def visits(name: str = VISITS, more: str = "") -> Model:
    """Every event of a day, whichever of its columns the source is cut by."""
    return a_model(
        name,
        sql=f"SELECT ds, id, cost FROM {EVENTS} WHERE ds >= :start_ds AND ds < :end_ds{more}",
        batch_size=1,
        cadence=Daily(start="2024-01-07"),
    )


def graph(source: Source, *models: Model) -> Graph:
    """Let one query stand over both declarations, though it would load over one of them alone."""
    return stored_graph(models or (visits(),), [source])


def event(ds: int, id_: int, seen: int) -> tuple[Any, ...]:
    return (on(ds), id_, 1.0, on(seen))


ROWS = [event(7, 1, 7), event(8, 1, 8), event(9, 1, 9), event(10, 1, 10), event(10, 2, 9)]


def oracle(column: str) -> list[tuple[int, int]]:
    """Each row whose day is that of its cell, where `column` says to which cell it belongs."""
    at = {"ds": 0, "seen": 3}[column]
    return sorted((ds.day, id_) for ds, id_, _, *seen in ROWS if (ds, id_, 1.0, *seen)[at] == ds)


def held(world: World, name: str = VISITS) -> list[tuple[int, int]]:
    return sorted((ds.day, id_) for ds, id_ in world.rows(name, "ds", "id"))


def stale(world: World, loaded: Graph) -> Any:  # noqa: ANN401
    run = world.open(loaded)
    model = run.graph.model(VISITS)
    found = needs_work(run.graph, run.view(), model, now=run.until, reads=run.reads[VISITS])
    return found.stale_cells | found.refresh


def test_until_it_is_promoted_a_changed_source_is_read_as_prods_snapshot_declares_it(world: World):
    plans, before, after = Plans(world), graph(BY_DS), graph(BY_SEEN)
    world.clock.now -= timedelta(days=1)
    world.land(BY_DS, *ROWS)
    world.fill(before)
    world.clock.now += timedelta(days=1)

    # Loaded, and not promoted: a new day, and late data, as it was declared.
    world.fill(after)
    assert held(world) == oracle("ds") == [(7, 1), (8, 1), (9, 1), (10, 1), (10, 2)]
    append(world, BY_DS, event(8, 3, 10))
    # Whoever looks at it as it is declared now, as a plan does, hides nothing.
    observe_sources(world.store, [BY_SEEN], str(world.root), lambda: world.spark)
    world.fill(after)
    assert stale(world, after) == days(8)

    # Promoted: as it is declared now, and taken back: as before.
    world.land(BY_DS, *ROWS)
    plan = plans.published(after)
    assert held(world) == oracle("seen") == [(7, 1), (8, 1), (9, 1), (10, 1)]
    world.clock.now += timedelta(days=1)
    world.land(BY_DS, *ROWS, event(11, 1, 11), event(11, 2, 10))
    world.fill(after)
    assert held(world)[-1:] == [(11, 1)]
    rollback_plan(plans.project(after), plan)
    world.fill(after)
    assert held(world) == [*oracle("ds"), (11, 1), (11, 2)]


def test_a_new_model_reads_a_changed_source_as_its_environment_does_until_that_is_promoted(
    world: World,
):
    plans, both = Plans(world), graph(BY_SEEN, visits(), visits(OTHERS))
    world.land(BY_DS, *ROWS)
    world.fill(graph(BY_DS))
    world.fill(both)
    assert held(world, OTHERS) == oracle("ds")
    plans.published(both)
    assert held(world, OTHERS) == held(world) == oracle("seen")


# Which declaration counts, where snapshots disagree.


def relied(source: Source, name: str = VISITS) -> Any:  # noqa: ANN401
    found = graph(source, visits(name))
    return source_readings(found, found.model(name))


def test_what_is_loaded_counts_where_all_rely_on_it():
    loaded = graph(BY_SEEN)
    assert as_relied_on(loaded, {VISITS: relied(BY_SEEN)}, {VISITS}) == (loaded, {})
    assert as_relied_on(loaded, {VISITS: None}, {VISITS}) == (loaded, {})


def test_a_source_is_as_the_snapshots_that_read_it_declare_it():
    loaded = graph(BY_SEEN, visits(), visits(OTHERS))
    found, misread = as_relied_on(loaded, {VISITS: relied(BY_DS)}, {VISITS})
    assert (found.sources[EVENTS], misread) == (BY_DS, {})


def test_who_relies_on_another_declaration_than_the_rest_is_named():
    loaded = graph(BY_SEEN, visits(), visits(OTHERS))
    known = {VISITS: relied(BY_SEEN), OTHERS: relied(BY_DS, OTHERS)}
    found, misread = as_relied_on(loaded, known, {VISITS, OTHERS})
    assert (found.sources[EVENTS], misread) == (BY_SEEN, {OTHERS: {EVENTS: (OTHERS,)}})
    found, misread = as_relied_on(loaded, known, {OTHERS})
    assert (found.sources[EVENTS], misread) == (BY_DS, {VISITS: {EVENTS: (OTHERS,)}})


def test_the_models_to_plan_are_those_that_rely_on_what_is_not_loaded_and_lead_out():
    names = ("web.p", "web.q", "web.r")
    loaded = graph(BY_SEEN, *map(visits, names))
    known = {name: relied(BY_DS, name) for name in names}
    known["web.p"] = relied(BY_SEEN, "web.p")
    found, misread = as_relied_on(loaded, known, {*names})
    assert found.sources[EVENTS] == BY_DS
    assert misread == {"web.p": {EVENTS: ("web.q", "web.r")}}

    error = declared_otherwise(
        source=EVENTS, model="web.p", environment="prod", to_plan=misread["web.p"][EVENTS]
    )
    assert str(error).endswith("backfill plan prod --select web.q,web.r")
    planned = {name: relied(BY_SEEN, name) for name in misread["web.p"][EVENTS]}
    assert as_relied_on(loaded, {**known, **planned}, {*names}) == (loaded, {})


def test_a_column_that_one_reads_and_another_does_not_leaves_both_running():
    wider = a_source(columns=[*SEEN, Column("extra", "string")])
    star = a_model(OTHERS, sql=f"SELECT * FROM {EVENTS} WHERE ds >= :start_ds AND ds < :end_ds")
    loaded, old = graph(wider, visits(), star), graph(BY_DS, visits(), star)
    known = {
        VISITS: source_readings(loaded, visits()),
        OTHERS: source_readings(old, star),
    }
    found, misread = as_relied_on(loaded, known, {VISITS, OTHERS})
    assert (found.sources[EVENTS], misread) == (BY_DS, {})


def test_a_source_that_is_declared_as_a_reader_relies_on_it_keeps_its_other_words():
    (reading,) = relied(BY_DS)
    said = replace(BY_SEEN, owner="team:new", path="elsewhere")
    assert declared_as(said, reading) == replace(BY_DS, owner="team:new", path="elsewhere")


def test_a_model_that_relies_on_another_declaration_than_the_rest_waits_for_its_plan(world: World):
    plans = Plans(world)
    before, after = (graph(source, visits(), visits(OTHERS)) for source in (BY_DS, BY_SEEN))
    world.clock.now -= timedelta(days=1)
    world.land(BY_DS, *ROWS)
    world.fill(before)
    plans.published(after, select=(VISITS,))
    world.clock.now += timedelta(days=1)
    events = world.fill(after)
    (failed,) = ended(events[OTHERS], Failed)
    assert f"--select {OTHERS}" in failed.error
    assert held(world) == oracle("seen")
    assert (10, 2) not in held(world, OTHERS)
    plans.published(after)
    assert held(world, OTHERS) == oracle("seen")


def test_late_data_publishes_no_change_of_a_model_that_relies_on_another_declaration(world: World):
    plans, names = Plans(world), (VISITS, OTHERS, "web.third")
    before, after = (
        graph(source, *(replace(visits(name), late_window=5) for name in names))
        for source in (BY_DS, BY_SEEN)
    )
    world.land(BY_DS, *ROWS)
    world.fill(before)
    plans.published(after, select=(VISITS,))
    running = world.store.environments.pointers("prod")
    append(world, BY_DS, event(9, 3, 9), event(10, 3, 10))
    done = refresh_late(world.open(after))
    assert world.store.environments.pointers("prod")[VISITS].version == running[VISITS].version
    assert held(world) == oracle("seen")
    assert {*done.left.waiting} == {VISITS}
    for name in names[1:]:
        assert held(world, name) == sorted([*oracle("ds"), (9, 3), (10, 3)])
    plans.published(after)
    for name in names:
        assert held(world, name) == sorted([*oracle("seen"), (9, 3), (10, 3)])
