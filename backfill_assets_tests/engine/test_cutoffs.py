"""A cutoff on real tables: set by a plan, obeyed by late data and by later plans, and lifted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets_tests.builders import a_graph, a_model, a_source, day
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_evidence import part
from backfill_assets_tests.engine.test_late_plan import ROWS, A, late, refresh, said
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

FIFTH = "2024-01-05"


def costs(formula: str) -> Graph:
    """One model over the events; every cell of it lies in its late window."""
    sql = f"SELECT ds, id, CAST({formula} AS DECIMAL(18, 2)) AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"  # noqa: S608
    return a_graph(a_model(A, late_window=10, sql=sql))


def by_day(world: World) -> dict[int, list[float]]:
    """What each day's rows cost."""
    found: dict[int, list[float]] = {}
    for ds, cost in sorted(world.rows(A, "ds", "cost")):
        found.setdefault(ds.day, []).append(float(cost))
    return found


def _filled(world: World) -> Plans:
    """Fill every day by the definition that cutoffs keep."""
    old = costs("cost")
    world.land(a_source(), *ROWS)
    refresh(world, old)
    world.fill(old)
    return Plans(world)


def test_late_data_before_a_cutoff_reopens_nothing_until_the_cutoff_is_lifted(world: World):
    new, plans = costs("cost * 2"), _filled(world)
    plans.published(new, cutoff=FIFTH, reason="agreed with finance")
    assert by_day(world) == {n: [1.0 if n < 5 else 2.0] for n in range(1, 11)}

    late(world, row(3, 2))
    late(world, row(9, 2))
    done = refresh(world, new)
    assert (said(new, done.cells), done.left.waiting) == ({A: "2024-01-09"}, {})
    assert by_day(world)[3] == [1.0]
    run = world.open(new)
    work = needs_work(run.graph, run.view(), run.graph.models[A], now=run.until)
    assert (work.stale, work.kept) == ((), IntervalSet.of([day(3)]))
    later = plans.make(new)
    assert later.is_empty
    assert any("agreed with finance" in note and "2024-01-03" in note for note in later.notes)

    plans.published(new, lift_cutoffs=(A,))
    assert world.store.views.of("prod").cutoffs == {}
    assert by_day(world) == {n: [2.0] * (2 if n in (3, 9) else 1) for n in range(1, 11)}
    late(world, row(2, 2))
    assert said(new, refresh(world, new).cells) == {A: "2024-01-02"}
    assert by_day(world)[2] == [2.0, 2.0]


def test_a_cutoff_stays_that_of_the_plan_which_set_it_whatever_is_restated_after_it(world: World):
    new, plans = costs("cost * 2"), _filled(world)
    setting = plans.published(new, cutoff=FIFTH, reason="agreed with finance")

    later = plans.published(new, restate=(Restatement(A, "2024-01-09", "2024-01-09"),))

    assert world.store.views.of("prod").cutoffs[A].plan_id == setting.plan_id
    rollback_plan(plans.project(new), later)
    assert world.store.views.of("prod").cutoffs[A].plan_id == setting.plan_id


def test_a_release_note_names_a_cutoff_once_and_calls_no_cell_wrong(world: World):
    new, plans = costs("cost * 2"), _filled(world)

    setting = plans.published(new, cutoff=FIFTH, reason="agreed with finance")
    lifting = plans.published(new, lift_cutoffs=(A,))

    note = part(world, setting, "release_note.md")
    assert note.count("before 2024-01-05 its cells keep the old definition") == 1
    assert "restated: new definition from 2024-01-05 on" in note
    assert "restated: the cutoff 2024-01-05 is lifted" in part(world, lifting, "release_note.md")


def test_a_cutoff_before_which_nothing_was_built_is_lifted_and_its_gaps_are_published_with_it(
    world: World,
):
    old, new, plans = costs("cost"), costs("cost * 2"), Plans(world)
    world.land(a_source(), *ROWS)
    refresh(world, old)
    world.fill(old, A, cells=IntervalSet.of([day(5, 6)]))
    plans.published(new, cutoff=FIFTH, reason="agreed with finance")
    run = world.open(new)
    assert not needs_work(run.graph, run.view(), run.graph.models[A], now=run.until).gaps

    lifting = plans.published(new, lift_cutoffs=(A,))

    assert [planned.build for planned in lifting.models] == [Build.IN_PLACE]
    assert world.store.views.of("prod").cutoffs == {}
    assert by_day(world) == {n: [2.0] for n in range(1, 11)}


def test_a_cutoff_that_keeps_no_cell_is_lifted_by_a_plan_that_builds_none(world: World):
    new, plans = costs("cost * 2"), _filled(world)
    plans.published(new, cutoff="2024-01-01", reason="agreed with finance")
    before = by_day(world)

    lifting = plans.published(new, lift_cutoffs=(A,))

    assert [(planned.build, bool(planned.cells)) for planned in lifting.models] == [
        (Build.POINTER, False)
    ]
    assert world.store.views.of("prod").cutoffs == {}
    assert by_day(world) == before
