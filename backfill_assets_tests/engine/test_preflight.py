"""A plan that would replace published rows by nothing stops before it computes."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.plans.refusals import UnmetInventoryError
from backfill_assets.engine.review.preflight import (
    LostSourceHistoryError,
    checklist_of,
    inventory_of,
)
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.column import Column
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.graph import build_graph
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.checklist import Item, Standing
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import COLUMNS, EVENTS, a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import arrow, row
from backfill_assets_tests.signing import quick_gate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
INVENTORY = "[[environments]]\nname = 'prod'\ninventory = 'stop'\n"
DASHBOARD = Consumer(name="board", kind="dashboard", owner="team:x", reads=[Reading(VISITS)])
FIVE = Daily(start="2024-01-01", end="2024-01-05")


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def visits(times: int = 1, **declared: object) -> Model:
    sql = (
        f"SELECT ds, id, CAST(cost * {times} AS DECIMAL(18,2)) AS cost FROM {EVENTS} "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )
    return a_model(sql=sql, columns=COLUMNS, **{"cadence": FIVE, **declared})


def filled_then_lost(world: World) -> Graph:
    """Five days with rows; then the source loses the first two, as its retention would have it."""
    graph = a_graph(visits())
    world.land(a_source(), *(row(day) for day in range(1, 6)))
    world.fill(graph)
    world.land(a_source(), *(row(day) for day in range(3, 6)))
    observe_sources(world.store, [a_source()], str(world.root), lambda: world.spark)
    return graph


def item(items: tuple[Item, ...], name: str) -> Item:
    return next(item for item in items if item.name == name)


def test_a_new_version_is_not_built_over_source_rows_that_are_gone(world: World, plans: Plans):
    filled_then_lost(world)
    before = world.rows(VISITS)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed)

    with pytest.raises(LostSourceHistoryError) as refused:
        plans.apply(changed, plan)

    assert "web.events has lost all rows that web.visits 2024-01-01..2024-01-02 (2)" in str(
        refused.value
    )
    assert world.rows(VISITS) == before
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROPOSED


def test_a_restated_source_was_wrong_so_its_cells_may_become_empty(world: World, plans: Plans):
    graph = filled_then_lost(world)

    wrong = (Restatement(EVENTS, "2024-01-01", "2024-01-02"),)
    plans.published(graph, restate=wrong, reason="sent by mistake")

    assert [ds.day for ds, *_ in world.rows(VISITS)] == [3, 4, 5]


def test_restating_the_model_alone_does_not_say_so(world: World, plans: Plans):
    graph = filled_then_lost(world)
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-01", "2024-01-03"),))

    with pytest.raises(LostSourceHistoryError):
        plans.apply(graph, plan)


def test_a_cutoff_keeps_cells_whose_source_rows_are_gone(world: World, plans: Plans):
    filled_then_lost(world)

    plans.published(
        a_graph(visits(times=2)), cutoff="2024-01-03", reason="the source keeps three days"
    )

    assert [(ds.day, int(cost)) for ds, _, cost in world.rows(VISITS)] == [
        (1, 1), (2, 1), (3, 2), (4, 2), (5, 2),
    ]  # fmt: skip


def test_rows_that_the_source_loses_after_the_plan_was_made_are_not_published_as_empty(
    world: World, plans: Plans
):
    world.begin(a_graph(visits()), *(row(day) for day in range(1, 6)))
    before = world.rows(VISITS)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed)
    world.land(a_source(), *(row(day) for day in range(3, 6)))

    built = plans.apply(changed, plan)

    assert built.left == {}
    assert "has lost all rows that web.visits 2024-01-01..2024-01-02 (2)" in str(built.refusal)
    with pytest.raises(LostSourceHistoryError):
        plans.promote(changed, plan)
    assert world.rows(VISITS) == before

    world.land(a_source(), *(row(day) for day in range(1, 6)))
    observe_sources(world.store, [a_source()], str(world.root), lambda: world.spark)
    plans.apply(changed, plan)
    plans.promote(changed, plan)
    assert [(ds.day, int(cost)) for ds, _, cost in world.rows(VISITS)] == [
        (day, 2) for day in range(1, 6)
    ]


def test_a_cell_that_was_built_before_its_source_lost_its_rows_loses_nothing(
    world: World, plans: Plans
):
    world.begin(a_graph(visits()), *(row(day) for day in range(1, 6)))
    changed = a_graph(visits(times=2))
    plan = plans.make(changed)
    plans.apply(changed, plan)
    world.land(a_source(), *(row(day) for day in range(3, 6)))
    observe_sources(world.store, [a_source()], str(world.root), lambda: world.spark)

    items = checklist_of(plans.project(changed), plan)

    assert "source history" not in {each.name for each in items}


def test_the_checklist_names_what_is_lost_and_what_to_do(world: World, plans: Plans):
    filled_then_lost(world)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, reason="costs count twice")

    items = checklist_of(plans.project(changed), plan)

    lost = item(items, "source history")
    assert lost.standing is Standing.NOT_MET
    assert lost.stops
    assert "--restate SOURCE:A..B" in lost.todo
    assert item(items, "sources").texts == (
        "web.events: no row in 2024-01-01..2024-01-02 (2); declared as when_empty=accept",
    )


@pytest.mark.parametrize("needed", [True, False])
def test_a_policy_may_let_no_plan_compute_before_its_inventory_is_met(
    world: World, plans: Plans, *, needed: bool
):
    world.begin(a_graph(visits()), *(row(day) for day in range(1, 6)))
    audited = visits(times=2, audits=[accepted_range("cost", 0, None)])
    changed = build_graph([audited], [a_source()], [DASHBOARD])
    plan = plans.make(changed, asked_by="ana")  # without a reason
    gate = quick_gate(INVENTORY if needed else INVENTORY.replace("stop", "show"))

    unmet = item(checklist_of(plans.project(changed, gate=lambda: gate), plan), "asked by and why")
    assert unmet.standing is Standing.NOT_MET
    assert unmet.stops == needed
    if not needed:
        assert plans.apply(changed, plan, gate=lambda: gate).status is PlanStatus.BUILT
        return
    with pytest.raises(
        UnmetInventoryError, match=r"asked by and why: ana; no reason \(make the plan again"
    ):
        plans.apply(changed, plan, gate=lambda: gate)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROPOSED

    again = plans.make(changed, asked_by="ana", reason="costs count twice")
    assert plans.apply(changed, again, gate=lambda: gate).status is PlanStatus.BUILT


def land_by_day(world: World, columns: Sequence[Column], *rows: tuple[object, ...]) -> None:
    types = {column.name: column.dtype for column in columns}
    for day, landed in enumerate(rows):
        mode = "append" if day else "overwrite"
        write_deltalake(f"{world.root}/{a_source().path}", arrow(types, [landed]), mode=mode)


def test_the_checklist_names_columns_that_lack_values_in_the_window(world: World, plans: Plans):
    graph = a_graph(visits())
    world.land(a_source(), *(row(day) for day in range(1, 6)))
    world.fill(graph)
    rows = [row(day) for day in range(1, 6)]
    land_by_day(world, COLUMNS, rows[0], (*rows[1][:2], None), *rows[2:])
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, reason="costs count twice")

    found = item(checklist_of(plans.project(changed), plan), "sources")

    assert found.standing is Standing.DECLARED
    assert found.texts[1:] == ("web.events.cost: no value in 2024-01-02; declared as nullable",)

    strict = [*COLUMNS[:2], Column("cost", "decimal(18,2)", nullable=False)]
    forbidding = build_graph([visits(times=2)], [a_source(columns=strict)])
    forbidden = item(checklist_of(plans.project(forbidding), plan), "sources")
    assert forbidden.standing is Standing.NOT_MET
    assert forbidden.texts[1].endswith("declared as not nullable")
    assert forbidden.todo


def test_another_layout_of_the_same_rows_does_not_change_the_inventory_that_approvals_bind(
    world: World, plans: Plans
):
    graph = a_graph(visits())
    rows = [row(day) for day in range(1, 6)]
    land_by_day(world, COLUMNS, rows[0], (*rows[1][:2], None), *rows[2:])
    world.fill(graph)
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, reason="costs count twice")
    project = plans.project(changed)
    bound, told = inventory_of(project, plan), item(checklist_of(project, plan), "sources")

    DeltaTable(f"{world.root}/{a_source().path}").optimize.compact()

    assert item(checklist_of(project, plan), "sources") != told
    assert inventory_of(project, plan) == bound


def test_the_checklist_names_a_column_that_is_gone_where_a_model_reads_it(
    world: World, plans: Plans
):
    world.begin(a_graph(visits()), *(row(day) for day in range(1, 6)))
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, reason="costs count twice")
    wider = [*COLUMNS, Column("note", "string")]
    declared = build_graph([visits(times=2)], [a_source(columns=wider)])

    unread = item(checklist_of(plans.project(declared), plan), "sources")
    assert unread.standing is Standing.MET  # no model of the plan reads it
    world.land(a_source(columns=COLUMNS[:2]), *(row(day)[:2] for day in range(1, 6)))
    gone = item(checklist_of(plans.project(changed), plan), "sources")
    assert gone.standing is Standing.NOT_MET
    assert gone.texts[-1] == "web.events.cost: missing"


def test_the_items_of_a_plan_follow_its_life(world: World, plans: Plans):
    graph = a_graph(visits())
    world.begin(graph, *(row(day) for day in range(1, 6)))
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, reason="costs count twice", asked_by="ana")

    def standing(name: str) -> Standing:
        return item(checklist_of(plans.project(changed), plan), name).standing

    assert [standing(name) for name in ("built", "audits", "published")] == [Standing.NOT_MET] * 3
    plans.apply(changed, plan)
    assert [standing(name) for name in ("built", "audits", "published")] == [
        Standing.MET, Standing.MET, Standing.NOT_MET,
    ]  # fmt: skip
    plans.promote(changed, plan)
    assert standing("published") is Standing.MET
    assert item(checklist_of(plans.project(changed), plan), "asked by and why").texts == (
        "ana: costs count twice",
    )


def test_a_plan_that_builds_no_cell_has_no_audit_to_wait_for(world: World, plans: Plans):
    graph = a_graph(visits())
    world.begin(graph, *(row(day) for day in range(1, 6)))
    changed = a_graph(visits(times=2))
    plan = plans.make(changed, forward_only=True, reason="costs count twice", asked_by="ana")

    def audits() -> Standing:
        return item(checklist_of(plans.project(changed), plan), "audits").standing

    assert audits() is Standing.NOT_MET
    plans.apply(changed, plan)
    assert audits() is Standing.MET


def test_models_that_a_plan_removes_are_a_part_of_its_target(world: World, plans: Plans):
    both = a_graph(visits(), a_model("web.other"))
    world.begin(both, *(row(day) for day in range(1, 6)))
    plan = plans.make(a_graph(visits()), reason="not read by anyone", asked_by="ana")

    target = item(checklist_of(plans.project(a_graph(visits())), plan), "target")

    assert target.texts[1:] == ("removed: web.other",)
