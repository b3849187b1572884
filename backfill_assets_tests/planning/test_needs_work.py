from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from backfill_assets.intervals import (
    WHOLE_CELL,
    Cadence,
    Daily,
    Interval,
    IntervalSet,
    Monthly,
    Unit,
)
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.content import ChangedAt
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets.planning.plan.left import left_of
from backfill_assets.planning.rule.late_work import KeptBack, late_work
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.planning.rule.reopening import last_cells, reopened_by_new_cells
from backfill_assets.planning.rule.stale import Stale
from backfill_assets.snapshots.environment import Environment, Pointer
from backfill_assets.snapshots.state_view import ReadyRun, SourceState, StateView
from backfill_assets_tests.builders import (
    DAY,
    EVENTS,
    FIRST,
    a_graph,
    a_model,
    a_pointer,
    a_run,
    a_source,
    a_view,
    a_whole,
    day,
    days,
    stamps,
)

NOW = FIRST + 5 * DAY + timedelta(hours=3)  # the 6th: five days are over
NOTHING = IntervalSet.empty()

FIRST_MODEL = a_model("web.first")
READER = a_model("web.reader", upstreams=["web.first"])
LOOKING_BACK = a_model("web.reader", upstreams=[Upstream("web.first", lookback=2)])
GRAPH = a_graph(FIRST_MODEL, READER)
FIVE = [a_run(day(number), 1) for number in range(1, 6)]


def test_without_state_every_due_cell_is_a_gap():
    work = needs_work(GRAPH, a_view({}), FIRST_MODEL, now=NOW)

    assert work.required == work.gaps == work.runnable == days(1, 2, 3, 4, 5)
    assert work.ready == NOTHING
    assert not work.stale


def test_a_ready_cell_that_a_rarer_cron_calls_due_later_is_still_watched():
    cadence = Daily(start="2024-01-01", cron="0 5 * * 1")
    weekly = a_model("web.reader", upstreams=["web.first"], cadence=cadence)
    runs = [a_run(day(number), 9 if number == 4 else 1) for number in range(1, 6)]
    view = a_view({"web.first": runs, "web.reader": [a_run(day(1, 5), 5)]})

    work = needs_work(a_graph(FIRST_MODEL, weekly), view, weekly, now=NOW)

    assert (work.ready, work.gaps) == (days(1, 2, 3, 4, 5), NOTHING)
    assert work.stale_cells == days(4)


def test_a_plan_that_ignores_the_cron_requires_every_cell_that_is_over():
    weekly = a_model("web.first", cadence=Daily(start="2024-01-01", cron="0 5 * * 1"))

    def gaps(*, ignore_cron: bool) -> IntervalSet:
        view = a_view({})
        return needs_work(a_graph(weekly), view, weekly, now=NOW, ignore_cron=ignore_cron).gaps

    assert (gaps(ignore_cron=False), gaps(ignore_cron=True)) == (NOTHING, days(1, 2, 3, 4, 5))


@pytest.mark.parametrize("hole", [1, 3, 5])
def test_a_gap_is_seen_wherever_it_is(hole: int):
    runs = [a_run(day(number), 1) for number in range(1, 6) if number != hole]

    work = needs_work(GRAPH, a_view({"web.first": runs}), FIRST_MODEL, now=NOW)

    assert work.gaps == work.runnable == days(hole)


def test_ready_and_fresh_needs_nothing():
    view = a_view({"web.first": FIVE, "web.reader": [a_run(day(1, 5), 2)]})

    work = needs_work(GRAPH, view, READER, now=NOW)

    assert not work.gaps
    assert not work.stale
    assert not work.blocked
    assert work.ready == work.required


def test_a_changed_upstream_cell_makes_exactly_its_readers_stale():
    runs = [*FIVE[:2], a_run(day(3), 7), *FIVE[3:]]
    view = a_view({"web.first": runs, "web.reader": [a_run(day(1, 5), 5)]})

    work = needs_work(GRAPH, view, READER, now=NOW)
    back = needs_work(a_graph(FIRST_MODEL, LOOKING_BACK), view, LOOKING_BACK, now=NOW)

    assert work.stale_cells == days(3)
    assert back.stale_cells == days(3, 4, 5)
    assert [(cause.upstream, cause.upstream_cells) for cause in back.stale] == [
        ("web.first", days(3))
    ]
    assert work.ready == days(1, 2, 3, 4, 5)  # stale is not unready


def test_a_cell_that_an_earlier_definition_has_made_is_stale_where_what_that_one_reads_has_changed():
    runs = [*FIVE[:2], a_run(day(3), 7), *FIVE[3:]]
    earlier, now_run = (
        replace(a_run(cells, 5), fingerprint=made_by)
        for cells, made_by in ((day(1, 4), "looking back"), (day(5), "as it is"))
    )
    view = a_view({"web.first": runs, "web.reader": [earlier, now_run]})
    view = replace(view, earlier={"looking back": LOOKING_BACK})

    [stale] = needs_work(GRAPH, view, READER, now=NOW).stale

    assert stale.cells == days(3, 4), "the fifth looks back no more"
    assert stale.upstream_cells == days(3)
    assert stale.changes == {7: days(3, 4)}, "they are published together"


@pytest.mark.parametrize(("column", "stale"), [("cost", days(1, 2)), ("id", NOTHING)])
def test_of_what_an_earlier_definition_reads_the_columns_count_that_it_reads(
    column: str, stale: IntervalSet
):
    where = "WHERE ds >= :start_ds AND ds < :end_ds"
    now_runs, once_ran = (
        a_model(
            "web.reader",
            sql=f"SELECT ds, id, CAST({read} AS DECIMAL(18,2)) AS cost FROM web.first {where}",  # noqa: S608
            upstreams=["web.first"],
        )
        for read in ("id", column)
    )
    made = replace(a_run(day(1, 2), 2), fingerprint="once")
    first = [a_run(day(1, 5), 9, stamps(1, cost=9))]
    view = a_view({"web.first": first, "web.reader": [made, a_run(day(3, 3), 2)]})
    view = replace(view, earlier={"once": once_ran})

    work = needs_work(
        a_graph(FIRST_MODEL, now_runs),
        view,
        now_runs,
        now=NOW,
        reads={"web.first": frozenset({"ds", "id"})},
    )

    assert work.stale_cells == stale


def test_an_earlier_definition_that_reads_what_is_there_no_more_says_nothing_of_it():
    gone = a_model("web.reader", upstreams=["web.first", "web.gone"])
    made = replace(a_run(day(1, 5), 5), fingerprint="once")
    view = a_view(
        {
            "web.first": [a_run(day(1, 5), 1)],
            "web.gone": [a_run(day(1, 5), 9)],
            "web.reader": [made],
        }
    )
    view = replace(view, earlier={"once": gone})

    assert not needs_work(GRAPH, view, READER, now=NOW).stale


def test_cells_built_after_the_change_have_seen_it():
    runs = [a_run(day(1, 5), 7)]
    own = [a_run(day(1), 5), a_run(day(2), 8), a_run(day(3, 3), 6)]

    work = needs_work(GRAPH, a_view({"web.first": runs, "web.reader": own}), READER, now=NOW)

    assert work.stale_cells == days(1, 3, 4, 5)


def test_a_rebuild_that_changed_nothing_moves_nothing():
    runs = [a_run(day(1, 5), built_at=9, changed=1)]
    view = a_view({"web.first": runs, "web.reader": [a_run(day(1, 5), 2)]})

    assert not needs_work(GRAPH, view, READER, now=NOW).stale


@pytest.mark.parametrize(
    ("reads", "moves"),
    [
        ({}, True),
        ({"web.first": frozenset({"cost"})}, True),
        ({"web.first": frozenset({"ds", "id"})}, False),
        ({"web.first": frozenset()}, False),
        ({"web.other": frozenset({"id"})}, True),
    ],
)
def test_a_column_that_is_not_read_moves_nothing(reads: dict, moves: bool):  # noqa: FBT001
    runs = [a_run(day(1, 5), 9, stamps(1, cost=9))]
    view = a_view({"web.first": runs, "web.reader": [a_run(day(1, 5), 2)]})

    work = needs_work(GRAPH, view, READER, now=NOW, reads=reads)

    assert bool(work.stale) == moves


def test_other_rows_move_a_reader_of_any_column():
    runs = [a_run(day(1, 5), 9, stamps(9, cost=1, id=1, ds=1))]
    view = a_view({"web.first": runs, "web.reader": [a_run(day(1, 5), 2)]})

    work = needs_work(GRAPH, view, READER, now=NOW, reads={"web.first": frozenset({"id"})})

    assert work.stale_cells == days(1, 2, 3, 4, 5)


def test_a_gap_waits_for_every_cell_that_it_looks_back_on():
    runs = [run for run in FIVE if run.interval != day(2)]

    work = needs_work(
        a_graph(FIRST_MODEL, LOOKING_BACK), a_view({"web.first": runs}), LOOKING_BACK, now=NOW
    )

    assert work.gaps == days(1, 2, 3, 4, 5)
    assert work.blocked == {"web.first": days(2, 3, 4)}
    assert work.runnable == days(1, 5)


def test_a_month_waits_for_its_last_day():
    monthly = a_model("web.reader", cadence=Monthly(start="2023-12-01"), upstreams=["web.first"])
    first = a_model("web.first", cadence=Daily(start="2023-12-01"))
    month = Interval(FIRST - 31 * DAY, FIRST)
    graph = a_graph(first, monthly)

    short = a_view({"web.first": [a_run(Interval(month.start, month.end - DAY), 1)]})
    full = a_view({"web.first": [a_run(month, 1)]})

    assert needs_work(graph, short, monthly, now=NOW).runnable == NOTHING
    assert needs_work(graph, full, monthly, now=NOW).runnable == IntervalSet.of([month])


def test_a_whole_reader_waits_for_all_and_is_overtaken_by_any():
    whole = a_whole("web.reader", upstreams=["web.first"])
    graph = a_graph(FIRST_MODEL, whole)
    cell = IntervalSet.of([WHOLE_CELL])

    waiting = needs_work(graph, a_view({"web.first": FIVE[:4]}), whole, now=NOW)
    free = needs_work(graph, a_view({"web.first": FIVE}), whole, now=NOW)
    runs = {"web.first": [*FIVE[:4], a_run(day(5), 8)], "web.reader": [a_run(WHOLE_CELL, 5)]}
    overtaken = needs_work(graph, a_view(runs), whole, now=NOW)

    assert waiting.blocked == {"web.first": cell}
    assert free.runnable == cell
    assert overtaken.stale_cells == cell
    assert overtaken.stale[0].upstream_cells == days(5)


WHOLE_READER = a_whole("web.reader", upstreams=[EVENTS])


def of_events(changed: Mapping[int, int], *, built_at: int, began: datetime) -> tuple[Stale, ...]:
    """What is stale of a whole table over the days of the source, each with the number of its change."""
    own = replace(a_run(WHOLE_CELL, built_at), began_at=began)
    events = SourceState(
        a_pointer(EVENTS), tuple(a_run(day(number), at) for number, at in changed.items())
    )
    view = replace(a_view({"web.reader": [own]}), sources={EVENTS: events})
    return needs_work(a_graph(WHOLE_READER), view, WHOLE_READER, now=NOW).stale


def test_a_whole_reader_of_a_source_is_overtaken_by_a_day_that_was_not_over_when_it_was_built():
    built_on_the_5th = FIRST + 4 * DAY + timedelta(hours=20)

    (stale,) = of_events({4: 1, 5: 2}, built_at=7, began=built_on_the_5th)

    assert (stale.cells, stale.upstream_cells) == (IntervalSet.of([WHOLE_CELL]), days(5))
    assert stale.words == f"{EVENTS} had more cells that are over"
    assert stale.changes == {8: stale.cells}


def test_a_whole_reader_of_a_source_has_read_the_days_that_were_over_when_it_was_built():
    assert of_events({4: 1, 5: 2}, built_at=7, began=NOW) == ()


def test_a_whole_reader_of_a_source_is_not_overtaken_by_rows_of_today():
    assert of_events({5: 2, 6: 20}, built_at=7, began=NOW) == ()


def test_a_whole_reader_of_a_source_is_overtaken_by_late_rows_of_days_that_are_over():
    (stale,) = of_events({4: 9, 5: 2, 6: 20}, built_at=7, began=NOW)

    assert stale.upstream_cells == days(4)
    assert stale.words == f"{EVENTS} got, lost or changed rows"


@pytest.mark.parametrize(
    ("reopens", "late_window", "stale"),
    [
        (Reopens.NEVER, 2, NOTHING),
        (Reopens.LATE_WINDOW, 2, days(4, 5)),
        (Reopens.LATE_WINDOW, 0, NOTHING),
        (Reopens.ALL, 0, days(1, 2, 3, 4, 5)),
    ],
)
def test_the_change_of_a_whole_upstream_reopens_what_its_reader_declares(
    reopens: Reopens, late_window: int, stale: IntervalSet
):
    prices = a_whole("web.prices")
    reader = a_model(
        "web.reader",
        upstreams=["web.events", Upstream("web.prices", reopens=reopens)],
        late_window=late_window,
    )
    view = a_view({"web.prices": [a_run(WHOLE_CELL, 9)], "web.reader": [a_run(day(1, 5), 2)]})

    work = needs_work(a_graph(prices, reader), view, reader, now=NOW)

    assert work.stale_cells == stale


def test_gaps_wait_for_a_whole_upstream():
    reader = a_model("web.reader", upstreams=["web.events", "web.prices"])
    work = needs_work(a_graph(a_whole("web.prices"), reader), a_view({}), reader, now=NOW)
    assert work.blocked == {"web.prices": days(1, 2, 3, 4, 5)}


class TestAModelThatReadsItself:
    model = a_model("web.first", upstreams=["web.events", Upstream("web.first", lookback=1)])
    graph = a_graph(model)

    def stale(self, *runs: ReadyRun) -> IntervalSet:
        return needs_work(self.graph, a_view({"web.first": runs}), self.model, now=NOW).stale_cells

    def test_built_in_order_is_fresh(self):
        built = [a_run(day(number), number * 2, number * 2 + 1) for number in range(1, 6)]
        assert self.stale(*built) == NOTHING

    def test_cells_of_one_batch_do_not_overtake_each_other(self):
        assert self.stale(a_run(day(1, 3), 2, 3, "b"), a_run(day(4, 2), 2, 3, "b")) == NOTHING

    def test_a_changed_cell_makes_the_next_one_stale_and_not_itself(self):
        built = [a_run(day(1), 20, 21), a_run(day(2), 4, 5), a_run(day(3, 3), 6, 7)]
        assert self.stale(*built) == days(2)

    def test_its_gaps_do_not_wait_for_themselves(self):
        work = needs_work(self.graph, a_view({}), self.model, now=NOW)
        assert work.runnable == days(1, 2, 3, 4, 5)


def test_the_last_cells_of_what_is_ready_are_counted_back_from_its_end():
    model = a_model(late_window=2)

    assert last_cells(model, days(1, 2, 4, 5), 2) == days(4, 5)
    assert last_cells(model, days(1, 2, 5), 2) == days(5)
    assert last_cells(model, days(1, 2), 0) == NOTHING
    assert last_cells(model, NOTHING, 2) == NOTHING


def test_new_cells_reopen_the_ready_ones_before_them_where_late_rows_can_not_be_seen():
    model = a_model(late_window=2)
    view = a_view({model.name: [a_run(day(1, 2), 1), a_run(day(4), 1)]})

    def reopened(*, observed: bool) -> IntervalSet:
        graph = a_graph(model, sources=[a_source(observed=observed)])
        within = days(1, 2, 3, 4, 5)
        return reopened_by_new_cells(graph, view, model, days(5), within)

    assert (reopened(observed=False), reopened(observed=True)) == (days(4), NOTHING)


def test_ten_years_of_single_days_on_both_sides_are_paired_day_by_day():
    years = 3_650
    daily = Cadence(Unit.DAY, start=FIRST)
    first = a_model("web.first", cadence=daily)
    reader = a_model("web.reader", cadence=daily, upstreams=[Upstream("web.first", lookback=3)])
    theirs = [a_run(day(number), 2 * years + number) for number in range(1, years + 1)]
    own = [a_run(day(number), number) for number in range(1, years + 1)]
    view = a_view({"web.first": theirs, "web.reader": own})

    work = needs_work(a_graph(first, reader), view, reader, now=FIRST + years * DAY)

    assert work.stale_cells == work.required == work.ready
    assert work.stale[0].upstream_cells == work.required


LATE = a_model("web.reader", late_window=2, upstreams=["web.first"])
OVERTAKEN = {
    "web.first": [
        a_run(day(1, 3), 1, changed=20),
        a_run(day(4), 1, changed=21),
        a_run(day(5), 1, changed=22),
    ],
    "web.reader": [a_run(day(1, 5), 10)],
}


def test_a_stale_cell_of_the_late_window_is_refreshed_where_nobody_reads_it():
    work = needs_work(a_graph(FIRST_MODEL, LATE), a_view(OVERTAKEN), LATE, now=NOW)

    assert work.stale_cells == days(1, 2, 3, 4, 5)
    assert work.refresh == days(4, 5)


def test_a_change_that_reaches_beyond_the_late_window_is_not_refreshed_in_part():
    split = {**OVERTAKEN, "web.first": [a_run(day(1, 4), 1, 20), a_run(day(5), 1, 21)]}
    work = needs_work(a_graph(FIRST_MODEL, LATE), a_view(split), LATE, now=NOW)

    assert work.stale_cells == days(1, 2, 3, 4, 5)
    assert work.refresh == days(5)


def test_a_change_of_several_cells_is_left_to_a_plan_which_publishes_them_at_once():
    view = a_view({**OVERTAKEN, "web.first": [a_run(day(1, 3), 1), a_run(day(4, 2), 1, 21)]})
    graph = a_graph(FIRST_MODEL, LATE)

    work = needs_work(graph, view, LATE, now=NOW)

    assert work.stale_cells == days(4, 5)
    assert work.refresh == NOTHING
    late = late_work(graph, view, KeptBack(), now=NOW, reads={})
    assert (late.automatic, late.in_place) == ({"web.reader": days(4, 5)}, {})


def test_models_that_read_one_change_are_not_refreshed_one_by_one():
    graph = a_graph(FIRST_MODEL, LATE, a_model("web.other", upstreams=["web.first"]))

    assert needs_work(graph, a_view(OVERTAKEN), LATE, now=NOW).refresh == NOTHING


def test_a_stale_cell_that_others_read_takes_a_plan():
    graph = a_graph(FIRST_MODEL, LATE, a_model("web.last", upstreams=["web.reader"]))

    work = needs_work(graph, a_view(OVERTAKEN), LATE, now=NOW)

    assert work.stale_cells == days(1, 2, 3, 4, 5)
    assert work.refresh == NOTHING


def test_a_whole_table_is_refreshed_once_what_it_reads_is_ready():
    whole = a_whole("web.whole", late_window=1, upstreams=["web.first"])
    graph = a_graph(FIRST_MODEL, whole)
    built = [a_run(WHOLE_CELL, 10)]
    grown = a_view({"web.first": [a_run(day(1, 5), 1, changed=20)], "web.whole": built})
    growing = a_view({"web.first": [a_run(day(1, 4), 1, changed=20)], "web.whole": built})

    assert needs_work(graph, grown, whole, now=NOW).refresh == IntervalSet.of([WHOLE_CELL])
    assert needs_work(graph, growing, whole, now=NOW).refresh == NOTHING


def test_what_is_owed_is_rebuilt_in_a_workspace_and_waits_for_a_plan_elsewhere():
    ready = {"web.first": [a_run(day(1, 5), 1)], "web.reader": [a_run(day(1, 5), 2)]}
    view = replace(a_view(ready), owed=CellsByModel({"web.reader": days(2, 9)}))
    workspace = replace(view, environment=Environment("plan:p1", protected=False, opened=3))

    published = needs_work(GRAPH, view, READER, now=NOW)
    inside = needs_work(GRAPH, workspace, READER, now=NOW)

    assert published.owed == inside.owed == days(2)
    assert published.refresh == NOTHING
    assert inside.refresh == days(2)


def _late(view: StateView, *runs: ReadyRun) -> StateView:
    """The picture, with these cells of the source changed at their stamps."""
    moved = tuple(replace(run, own=False) for run in runs)
    return replace(view, sources={EVENTS: SourceState(Pointer("", EVENTS, "", "", 4), moved)})


def test_a_cell_that_was_built_before_its_source_got_late_rows_is_stale():
    graph = a_graph(FIRST_MODEL)
    built = a_view({"web.first": [a_run(day(1, 3), 5), a_run(day(4), 9)]})
    view = _late(built, a_run(day(1), 0), a_run(day(2), 7), a_run(day(4), 8))

    work = needs_work(graph, view, FIRST_MODEL, now=NOW)

    assert (work.late_cells, work.stale_cells) == (days(2), days(2))
    assert [(cause.upstream, cause.late) for cause in work.stale] == [(EVENTS, True)]


def test_what_a_publication_brought_has_read_its_source_when_its_batch_did():
    graph = a_graph(FIRST_MODEL)
    published = replace(a_run(day(2), 20), pinned_at=6)
    view = _late(a_view({"web.first": [published]}), a_run(day(2), 7))

    assert needs_work(graph, view, FIRST_MODEL, now=NOW).late_cells == days(2)


def test_a_plan_is_not_held_up_by_late_rows_in_cells_that_it_has_built():
    graph = a_graph(FIRST_MODEL)
    own, other = a_run(day(2), 6), replace(a_run(day(3), 4), own=False)
    view = _late(a_view({"web.first": [own, other]}), a_run(day(2, 2), 7))
    view = replace(view, environment=Environment("plan:p1", protected=False, opened=5))

    work = needs_work(graph, view, FIRST_MODEL, now=NOW)

    assert work.refresh == days(2, 3)
    assert left_of(work, view, "web.first") & days(2, 3) == days(3)


def test_late_rows_of_a_source_with_other_readers_are_not_refreshed_in_place():
    alone = a_model("web.first", late_window=3)
    other = a_model("web.other", late_window=3)
    view = _late(a_view({"web.first": [a_run(day(1, 5), 5)]}), a_run(day(5), 7))

    assert needs_work(a_graph(alone), view, alone, now=NOW).refresh == days(5)
    assert needs_work(a_graph(alone, other), view, alone, now=NOW).refresh == NOTHING


def test_a_model_that_is_rebuilt_as_a_whole_is_stale_when_what_it_reads_as_a_whole_changes():
    below, above = a_whole("web.below"), a_whole("web.above", upstreams=["web.below"])
    graph = a_graph(below, above)
    view = a_view({"web.below": [a_run(WHOLE_CELL, 9)], "web.above": [a_run(WHOLE_CELL, 5)]})

    assert needs_work(graph, view, above, now=NOW).stale_cells == IntervalSet.of([WHOLE_CELL])


def test_a_changed_column_of_a_source_reopens_only_what_reads_it():
    model = a_model(upstreams=[EVENTS])
    runs = (replace(a_run(day(1, 2), 5), changed_at=ChangedAt(0, {"cost": 5}), own=False),)
    source = SourceState(Pointer("", EVENTS, "", "", 3), runs)
    view = replace(a_view({model.name: [a_run(day(1, 5), 1)]}), sources={EVENTS: source})

    for read, stale in (({"id", "ds"}, NOTHING), ({"cost"}, days(1, 2)), (None, days(1, 2))):
        reads = {} if read is None else {EVENTS: frozenset(read)}
        work = needs_work(a_graph(model), view, model, now=NOW, reads=reads)
        assert work.late_cells == stale
