"""Late data heals by itself inside of late windows, and by nothing but a plan outside of them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import write_deltalake

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.fill.late_cells import late_work_of, lease_name
from backfill_assets.engine.fill.outstanding import outstanding
from backfill_assets.engine.plans.making import make_plan
from backfill_assets.engine.project.events import LeftStale
from backfill_assets.engine.project.gate import PolicyMissingError
from backfill_assets.engine.project.opening import open_run
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Monthly
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.source import WhenEmpty
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.rule.late_work import ASKED_BY
from backfill_assets.snapshots.signed_statement import SignedStatement
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.database import StateBusyError
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import arrow, ended, kept, row, text, told
from backfill_assets_tests.signing import quick_gate

if TYPE_CHECKING:
    from backfill_assets.engine.automatic.late_plan import Refreshed
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

A, B, C = "web.a", "web.b", "web.c"
ROWS = [row(n) for n in range(1, 11)]


def chain(first: int = 4, **last: Any) -> Graph:  # noqa: ANN401
    """Three models in a row over one source; a cell of the last one reads a day more."""
    return a_graph(
        a_model(A, late_window=first),
        a_model(B, upstreams=[A], late_window=first),
        a_model(C, upstreams=[Upstream(B, lookback=1)], **{"late_window": 4, **last}),
    )


def doubled(last: int) -> Graph:
    """That chain, with an edit of its first model."""
    sql = "SELECT ds, id, cost * 2 AS cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    return a_graph(
        a_model(A, late_window=4, sql=sql),
        a_model(B, upstreams=[A], late_window=4),
        a_model(C, upstreams=[Upstream(B, lookback=1)], late_window=last),
    )


def late(world: World, *rows: Any) -> None:  # noqa: ANN401
    source = a_source()
    columns = {column.name: column.dtype for column in source.schema}
    write_deltalake(str(world.root / source.path), arrow(columns, rows), mode="append")


def apart(world: World, *rows: Any) -> None:  # noqa: ANN401
    """Land each row by a commit of its own."""
    for landed in rows:
        late(world, landed)


def filled(world: World, graph: Graph, *rows: Any) -> None:  # noqa: ANN401
    def looked_and_filled() -> None:
        world.land(a_source(), *(rows or ROWS))
        refresh(world, graph)  # the first look
        world.fill(graph)

    world.begin_with(looked_and_filled, graph, rows)


def refresh(world: World, graph: Graph) -> Refreshed:
    return refresh_late(world.open(graph))


def events(world: World, plan_id: str) -> list[str]:
    return [event.event for event in world.store.plans.events(plan_id)]


def said(graph: Graph, cells: Any) -> dict[str, str]:  # noqa: ANN401
    return {name: ranges_text(graph.model(name).cadence, found) for name, found in cells.items()}


def test_a_late_row_inside_all_windows_is_published_in_every_model_at_once(world: World):
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-08"}
    assert done.promoted
    stored = world.store.plans.get(str(done.plan_id))
    assert (stored.status, stored.created_by) == (PlanStatus.PROMOTED, ASKED_BY)
    assert stored.reason == "late data: web.events got, lost or changed rows"
    for name in (A, B, C):
        assert world.rows(name) == kept(*ROWS, row(8, 2))
    assert refresh(world, graph).plan_id is None


def test_late_data_that_a_policy_lets_people_approve_waits_for_a_plan(world: World):
    graph = chain()
    filled(world, graph)
    apart(world, row(8, 2), row(10, 2))
    rule = "[[rules]]\napprovers = ['bob@shop']\nlate_data = true\nclosed_before = 2024-01-09"
    gate = quick_gate(rule, "bob@shop")

    done = refresh_late(open_run(world.project(graph, gate=lambda: gate), world.environment))

    assert said(graph, done.cells) == {A: "2024-01-10"}
    assert said(graph, done.left.waiting) == {A: "2024-01-08"}
    needed = read_plan(world.store.plans.get(str(done.needed)).content)
    assert needed.request.late == ()


def test_a_process_without_the_policy_refreshes_no_late_data_of_an_environment_that_is_under_one(
    world: World,
):
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    plan = make_plan(
        Plans(world).project(graph), PlanRequest(environment="prod", restate=(Restatement(C),))
    ).plan
    at = world.clock.now
    world.store.approvals.keep(
        SignedStatement(plan.plan_id, "approve", "bob@shop", "", "", at, at + timedelta(days=1))
    )

    with pytest.raises(PolicyMissingError, match="Set BACKFILL_POLICY"):
        refresh(world, graph)

    assert world.rows(C) == kept(*ROWS)
    assert late_work_of(world.open(graph)).automatic == {}


def test_what_did_not_really_change_is_spared_and_counted(world: World):
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    # The 9th of the last model reads the 8th as well, but does not come out otherwise.
    done = refresh(world, graph)
    assert done.spared == {}
    built = [row for row in world.store.batches.latest() if row.plan_id == done.plan_id]
    assert sorted((batch.model, batch.stretches.span().start.day) for batch in built) == [
        (A, 8),
        (B, 8),
        (C, 8),
    ]


def test_a_cell_that_reaches_out_of_a_window_waits_for_a_plan_and_the_others_do_not(world: World):
    graph = chain(late_window=2)
    filled(world, graph)
    apart(world, row(8, 2), row(9, 2), row(3, 2))
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-09"}
    assert said(graph, done.left.waiting) == {A: "2024-01-03, 2024-01-08"}
    assert world.rows(C) == kept(*ROWS, row(9, 2))
    Plans(world).published(graph)
    assert world.rows(C) == kept(*ROWS, row(8, 2), row(9, 2), row(3, 2))


@pytest.mark.parametrize("graph", [chain(), a_graph(a_model(A, late_window=4))])
def test_a_correction_that_reaches_beyond_a_window_is_one_plan_at_once_or_not_at_all(
    world: World, graph: Graph
):
    filled(world, graph)
    late(world, row(3, 2), row(9, 2))
    late(world, row(10, 2))
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-10"}
    assert said(graph, done.left.waiting) == {A: "2024-01-03, 2024-01-09"}
    world.fill(graph)
    assert world.rows(A) == kept(*ROWS, row(10, 2))
    late(world, row(9, 3))  # the same cell again: it can't come without the rest
    assert said(graph, refresh(world, graph).cells) == {}
    late(world, row(8, 3))
    assert said(graph, refresh(world, graph).cells) == {A: "2024-01-08"}
    Plans(world).published(graph)
    found = [row(10, 2), row(3, 2), row(9, 2), row(9, 3), row(8, 3)]
    assert world.rows(A) == kept(*ROWS, *found)
    assert refresh(world, graph).left.waiting == {}


def test_what_needs_a_plan_is_planned_once_for_a_person_to_decide(world: World):
    graph = chain(late_window=2)
    filled(world, graph)
    late(world, row(3, 2))
    first = refresh(world, graph)
    again = refresh(world, graph)
    stored = world.store.plans.get(str(first.needed))
    assert (stored.status, again.needed) == (PlanStatus.PROPOSED, stored.plan_id)
    assert stored.reason == "late data: web.events got, lost or changed rows"
    assert said(graph, stored.cells)[C] == "2024-01-03..2024-01-04 (2)"
    assert events(world, stored.plan_id) == [PlanEventKind.NEEDED]

    late(world, row(3, 3))  # once more the same cell: it is planned already
    assert refresh(world, graph).needed == first.needed
    late(world, row(2, 2))
    wider = refresh(world, graph)
    assert world.store.plans.get(str(first.needed)).status is PlanStatus.ABANDONED
    assert events(world, str(wider.needed)) == [PlanEventKind.NEEDED]

    plan = read_plan(world.store.plans.get(str(wider.needed)).content)
    plans = Plans(world)
    plans.apply(graph, plan)
    assert refresh(world, graph).needed == plan.plan_id, "they wait for it"
    plans.promote(graph, plan)
    assert world.rows(C) == kept(*ROWS, row(3, 2), row(3, 3), row(2, 2))
    assert refresh(world, graph).needed is None


def test_the_plan_that_late_data_needs_is_applied_while_an_edit_of_its_models_waits(world: World):
    graph, edited = chain(late_window=2), doubled(2)
    filled(world, graph)
    late(world, row(3, 2))
    plan = read_plan(world.store.plans.get(str(refresh(world, edited).needed)).content)
    with pytest.raises(RequestError, match=f"'{C}' was .* and is gone"):
        Plans(world).apply(a_graph(edited.model(A), edited.model(B)), plan)
    Plans(world).apply(edited, plan)
    Plans(world).promote(edited, plan)
    assert world.rows(C) == kept(*ROWS, row(3, 2))
    assert refresh(world, edited).needed is None
    assert A in world.open(edited).changed, "its own plan promotes the edit"


def test_a_plan_of_a_person_for_what_is_late_is_taken_for_the_one_that_is_needed(world: World):
    graph = chain(late_window=2)
    filled(world, graph)
    late(world, row(3, 2))
    plan = make_plan(Plans(world).project(graph), PlanRequest(environment="prod")).plan
    assert refresh(world, graph).needed == plan.plan_id
    assert events(world, plan.plan_id) == []

    world.clock.now += timedelta(days=8)
    anew = refresh(world, graph).needed
    assert anew != plan.plan_id, "that one has expired"
    assert events(world, str(anew)) == [PlanEventKind.NEEDED]
    world.clock.now += timedelta(days=8)
    assert events(world, str(refresh(world, graph).needed)) == [], "they were told of these cells"


def test_a_month_that_is_closed_keeps_its_days_from_healing_by_themselves(world: World):
    month = a_model(
        C,
        cadence=Monthly(start="2023-12-01"),
        upstreams=[A],
        unique_key=["ds", "id"],
    )
    graph = a_graph(a_model(A, late_window=40), month, sources=[a_source()])
    world.clock.now = world.clock.now.replace(month=2, day=3)
    filled(world, graph)
    apart(world, row(30, 2), (world.clock.now.date().replace(day=1), 7, 1.0))
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-02-01"}
    assert said(graph, done.left.waiting) == {A: "2024-01-30"}


def test_a_model_that_nobody_reads_is_refreshed_in_its_own_table(world: World):
    graph = a_graph(a_model(A, late_window=3))
    filled(world, graph)
    apart(world, row(9, 2), row(2, 2))
    done = refresh(world, graph)
    assert (said(graph, done.cells), done.plan_id) == ({A: "2024-01-09"}, None)
    assert said(graph, done.left.waiting) == {A: "2024-01-02"}


@pytest.mark.parametrize("graph", [chain(), a_graph(a_model(A, late_window=4))])
def test_a_published_cell_whose_rows_are_all_gone_stays_and_waits_where_its_source_says_so(
    world: World, graph: Graph
):
    waits = a_source(when_empty=WhenEmpty.WAIT)
    graph = a_graph(*graph.models.values(), sources=[waits])
    filled(world, graph)
    head = world.head(A)
    world.land(waits, *(each for each in ROWS if each != row(9)))

    done = refresh(world, graph)
    assert (done.plan_id, done.cells, done.built, done.failed) == (None, {}, {}, ())
    assert said(graph, done.left.awaits[EVENTS]) == {A: "2024-01-09"}
    assert (done.left.waiting, done.held, done.ended) == ({}, {}, True)
    assert (world.head(A), world.rows(A)) == (head, kept(*ROWS))
    left = outstanding(world.open(graph), graph.order)
    assert left.words == "0 cells missing, 1 stale: 1 wait for rows of web.events"
    events_of_a = world.fill(graph)[A]
    assert told(events_of_a) == ["left stale", "skipped"]
    (stays,) = ended(events_of_a, LeftStale)
    assert stays.words == "web.events changed since; they wait for rows of web.events"

    world.land(waits, *ROWS[:8], row(9, 3), ROWS[9])
    assert said(graph, refresh(world, graph).cells) == {A: "2024-01-09"}
    assert world.rows(A) == kept(*ROWS[:8], row(9, 3), ROWS[9])


def test_a_plan_leaves_cells_whose_rows_are_all_gone_as_published_until_it_is_told_otherwise(
    world: World,
):
    waits = a_source(when_empty=WhenEmpty.WAIT)
    graph, plans = a_graph(a_model(A, late_window=4), sources=[waits]), Plans(world)
    filled(world, graph)
    world.land(waits, *(each for each in ROWS if each not in (row(8), row(9))), row(10, 2))
    refresh(world, graph)

    plan = plans.make(graph)
    (planned,) = plan.models
    assert text(graph, A, planned.cells) == "2024-01-10"
    assert "web.events has lost the rows that they were built from: 2024-01-08..2024-01-09 (2)" in (
        "; ".join(planned.notes)
    )
    plans.published(graph, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    assert world.rows(A) == kept(*(each for each in ROWS if each != row(8)), row(10, 2))


def test_a_refresh_in_place_waits_for_an_open_plan_of_its_cells(world: World):
    graph, plans = a_graph(a_model(A, late_window=4)), Plans(world)
    filled(world, graph)
    plan = plans.make(graph, restate=(Restatement(A, "2024-01-09", "2024-01-09"),))
    plans.apply(graph, plan)
    apart(world, row(9, 2), row(10, 2))

    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-10"}
    assert said(graph, done.held) == {A: "2024-01-09"}
    (stays,) = ended(world.fill(graph)[A], LeftStale)
    assert stays.words == f"web.events changed since; they wait for plan {plan.plan_id}"
    left = outstanding(world.open(graph), graph.order)
    assert left.words == f"0 cells missing, 1 stale: 1 wait for plan {plan.plan_id}"
    assert world.rows(A) == kept(*ROWS, row(10, 2))

    plans.promote(graph, plan)
    assert said(graph, refresh(world, graph).cells) == {A: "2024-01-09"}
    assert world.rows(A) == kept(*ROWS, row(9, 2), row(10, 2))


def test_of_what_is_refreshed_in_place_only_what_was_committed_is_told_as_built(
    world: World,
    monkeypatch: Any,  # noqa: ANN401
):
    graph = a_graph(a_model(A, late_window=4))
    filled(world, graph)
    late(world, row(9, 2))
    monkeypatch.setattr("backfill_assets.engine.automatic.late_plan.fill_cells", lambda *_: {A: ()})

    done = refresh(world, graph)

    assert (done.cells, done.built) == ({}, {})


def test_a_run_of_a_range_publishes_no_part_of_a_correction(world: World):
    graph = a_graph(a_model(A, late_window=3, batch_size=1))
    filled(world, graph)
    late(world, row(8, 2), row(9, 2))
    late(world, row(10, 2))
    world.fill(graph, cells=days(9, 10))
    assert world.rows(A) == kept(*ROWS, row(10, 2))
    head = world.head(A)
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-08..2024-01-09 (2)"}
    assert world.rows(A) == kept(*ROWS, row(8, 2), row(9, 2), row(10, 2))
    assert world.head(A) == head + 1


def test_models_that_read_one_source_move_together_though_nobody_reads_them(world: World):
    graph = a_graph(a_model(A, late_window=3), a_model(B, late_window=3))
    filled(world, graph)
    late(world, row(9, 2))
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-09", B: "2024-01-09"}
    assert done.plan_id is not None
    assert world.head(A) == world.head(B)


def test_what_fails_an_audit_is_left_out_and_the_rest_is_published(world: World):
    graph = a_graph(
        a_model(A, late_window=4, batch_size=1),
        a_model(
            B, upstreams=[A], late_window=4, batch_size=1, audits=[accepted_range("cost", 0, 9)]
        ),
    )
    filled(world, graph)
    late(world, row(8, 2, 99.0), row(9, 2))
    done = refresh(world, graph)
    assert [event.model for event in done.failed] == [B]
    assert said(graph, done.cells) == {A: "2024-01-09"}
    assert said(graph, {**done.held, **done.left.waiting}) == {A: "2024-01-08"}
    assert world.rows(B) == world.rows(A) == kept(*ROWS, row(9, 2))
    late(world, row(10, 2))
    assert said(graph, refresh(world, graph).cells) == {A: "2024-01-10"}


def test_what_fails_in_its_own_table_is_tried_once_beside_a_plan(world: World):
    other = a_source("web.other")
    alone = a_model(
        "web.alone", upstreams=[other.name], late_window=4, audits=[accepted_range("cost", 0, 9)]
    )
    graph = a_graph(
        a_model(A, late_window=4),
        a_model(B, upstreams=[A], late_window=4),
        alone,
        sources=[a_source(), other],
    )
    for source in (a_source(), other):
        world.land(source, *ROWS)
    world.fill(graph)
    late(world, row(8, 2))
    world.land(other, *ROWS, row(8, 2, 99.0))

    done = refresh(world, graph)

    assert said(graph, done.cells) == {A: "2024-01-08"}
    assert [failure.model for failure in done.failed] == ["web.alone"]


def test_a_plan_that_late_data_needs_is_made_by_the_next_run_where_the_state_was_away(
    world: World,
    monkeypatch: Any,  # noqa: ANN401
):
    graph = chain(late_window=0)
    filled(world, graph)
    late(world, row(8, 2))
    with monkeypatch.context() as away:
        away.setattr("backfill_assets.engine.automatic.needed_plan.plan_of", _busy)
        done = refresh(world, graph)
    assert not done.ended

    assert refresh(world, graph).needed is not None


def test_a_refresh_that_died_is_finished_by_the_next_one(world: World, monkeypatch: Any):  # noqa: ANN401
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    with monkeypatch.context() as patched:
        patched.setattr("backfill_assets.engine.automatic.automatic_plan.promote_plan", _dies)
        with pytest.raises(KeyboardInterrupt):
            refresh(world, graph)
    assert world.rows(C) == kept(*ROWS)
    late(world, row(9, 2))
    done = refresh(world, graph)
    assert world.rows(C) == kept(*ROWS, row(8, 2), row(9, 2))
    assert {plan.status for plan in world.store.plans.latest()} == {PlanStatus.PROMOTED}
    assert said(graph, done.cells) == {A: "2024-01-08..2024-01-09 (2)"}


def test_a_late_plan_that_is_built_while_the_state_is_busy_is_published_by_the_next_refresh(
    world: World,
    monkeypatch: Any,  # noqa: ANN401
):
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    with monkeypatch.context() as patched:
        patched.setattr("backfill_assets.engine.automatic.automatic_plan.promote_plan", _busy)
        first = refresh(world, graph)
    assert (first.promoted, world.rows(C)) == (False, kept(*ROWS))
    done = refresh(world, graph)
    assert (done.promoted, done.plan_id) == (True, first.plan_id)
    assert world.rows(C) == kept(*ROWS, row(8, 2))
    assert [plan.status for plan in world.store.plans.latest()] == [PlanStatus.PROMOTED]


def test_after_a_killed_refresh_its_cells_are_counted_with_who_holds_them_and_until_when(
    world: World,
):
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    world.store.locks.take_lease(lease_name("prod"), "cli-dead")
    done = refresh(world, graph)
    left = outstanding(world.open(graph), graph.order, done.looks)
    until = world.clock.now + timedelta(seconds=world.store.lease_seconds)
    held = f"wait for run cli-dead, whose lease on them ends at {until:%Y-%m-%d %H:%M:%S} UTC unless it is renewed"
    assert (done.promoted, left.is_open) == (False, True)
    assert left.words == f"0 cells missing, 1 stale: 1 {held}"
    world.store.locks.release_lease(lease_name("prod"), "cli-dead")
    assert refresh(world, graph).promoted
    left = outstanding(world.open(graph), graph.order)
    assert (left.words, left.is_open) == ("0 cells missing, 0 stale", False)


def _busy(*_: object) -> None:
    raise StateBusyError("state.db", 30)


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_late_data_where_a_plan_is_open_waits_for_it(world: World):
    graph, plans = chain(), Plans(world)
    filled(world, graph)
    plan = plans.make(graph, restate=(Restatement(B, "2024-01-08", "2024-01-08"),))
    plans.apply(graph, plan)
    apart(world, row(8, 2), row(10, 2))
    done = refresh(world, graph)
    assert said(graph, done.cells) == {A: "2024-01-10"}
    assert said(graph, done.held) == {A: "2024-01-08"}
    plans.promote(graph, plan)
    assert said(graph, refresh(world, graph).cells) == {A: "2024-01-08"}
    assert world.rows(C) == kept(*ROWS, row(8, 2), row(10, 2))


def test_a_plan_that_waits_for_too_long_holds_no_late_data_and_is_not_promoted(world: World):
    graph, plans = chain(late_window=30, first=30), Plans(world)
    filled(world, graph)
    plan = plans.make(graph, restate=(Restatement(B, "2024-01-08", "2024-01-08"),))
    plans.apply(graph, plan)
    late(world, row(8, 2))
    world.clock.now += timedelta(days=6)
    assert said(graph, refresh(world, graph).held) == {A: "2024-01-08"}
    world.clock.now += timedelta(days=2)
    done = refresh(world, graph)
    assert (said(graph, done.cells), done.held) == ({A: "2024-01-08"}, {}), done.notes
    assert world.rows(C) == kept(*ROWS, row(8, 2))
    world.store.plans.tell(plan.plan_id, PlanEventKind.WATCH, who="ann")  # it revives nothing
    for refused in (plans.promote, plans.apply):
        with pytest.raises(RequestError, match=f"backfill abandon {plan.plan_id}"):
            refused(graph, plan)
    assert world.rows(C) == kept(*ROWS, row(8, 2))


def test_what_a_person_took_back_does_not_come_again_by_itself(world: World):
    from backfill_assets.engine.plans.plan_verbs import rollback_plan  # noqa: PLC0415

    graph, plans = chain(), Plans(world)
    filled(world, graph)
    late(world, row(8, 2))
    done = refresh(world, graph)
    stored = world.store.plans.get(str(done.plan_id))
    from backfill_assets.planning.plan.plan_json import read_plan  # noqa: PLC0415

    rollback_plan(plans.project(graph), read_plan(stored.content))
    again = refresh(world, graph)
    assert again.cells == {}
    assert said(graph, again.left.waiting) == {A: "2024-01-08"}
    assert world.rows(C) == kept(*ROWS)


def test_edited_code_does_not_come_in_with_late_data(world: World):
    graph = chain()
    filled(world, graph)
    late(world, row(8, 2))
    done = refresh(world, doubled(4))
    assert said(graph, done.cells) == {A: "2024-01-08"}
    assert world.rows(C) == kept(*ROWS, row(8, 2))
