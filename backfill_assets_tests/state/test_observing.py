from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.observation import (
    BASELINE,
    UNREAD,
    ChangedCells,
    Observation,
    ObservedSource,
    SourceCell,
    SourcePin,
    listed,
)
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.snapshots.state_view import SourceState, UpstreamChange
from backfill_assets_tests.state.building import Asked, add_model, days, fill

if TYPE_CHECKING:
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.state.store import Store

RAW = ObservedSource("raw", "/lake/raw", "id-1", "days", 3)


def _cells(*starts: int, rows: int = 5) -> tuple[SourceCell, ...]:
    return tuple(SourceCell(days(at, at + 1), rows) for at in starts)


def _first(*starts: int) -> Observation:
    return Observation(RAW, None, (ChangedCells(_cells(*starts), BASELINE),), anew=True)


def _next(store: Store, *cells: SourceCell, head: int = 4) -> Observation:
    before = store.sources.observed()["raw"]
    return Observation(replace(before, head=head), before, (ChangedCells(cells),))


def _read(delta_version: int, last: int, start: int, end: int) -> SourcePin:
    """What ready cells from one day to another have read."""
    return SourcePin(delta_version, last, IntervalSet.of([days(start, end)]))


def _opened(store: Store, pin: int, path: str = "/lake/raw") -> OpenBatch:
    source = InputPin("raw", "", path, pin)
    return store.batches.open_batch(replace(Asked().request, source_pins=(source,)))


def test_what_was_there_at_the_first_look_is_older_than_everything(store: Store):
    assert store.sources.observe(_first(0, 1, 2))

    raw = store.views.of("prod").sources["raw"]
    assert (raw.pointer.delta_version, raw.ready) == (3, IntervalSet.of([days(0, 3)]))
    assert [(run.interval, run.changed_at.latest(None)) for run in raw.runs] == [(days(0, 3), 0)]


def test_the_last_picture_of_a_source_is_drawn_once_and_those_before_are_not_kept(store: Store):
    def pictures() -> int:
        return sum(type(each) is SourceState for each in gc.get_objects())

    store.sources.observe(_first(0, 1, 2))
    first = store.views.of("prod").sources["raw"]
    assert store.views.of("prod").sources["raw"] is first
    del first
    before = pictures()
    for at in range(3, 9):
        store.sources.observe(_next(store, *_cells(at), head=at + 1))
        store.views.of("prod")

    assert pictures() == before


def test_a_change_is_stamped_with_a_number_after_every_batch_that_has_not_read_it(store: Store):
    store.sources.observe(_first(0, 1, 2))
    before = _opened(store, 3)
    store.sources.observe(_next(store, *_cells(1)))

    stamps = {
        run.interval: run.changed_at.latest(None)
        for run in store.views.of("prod").sources["raw"].runs
    }
    assert stamps == {days(0, 1): 0, days(1, 2): before.built_at + 1, days(2, 3): 0}


def test_a_cell_that_lost_its_rows_has_changed_and_holds_none(store: Store):
    store.sources.observe(_first(0, 1))
    store.sources.observe(_next(store, *_cells(1, rows=0)))

    raw = store.views.of("prod").sources["raw"]
    assert raw.ready == IntervalSet.of([days(0, 1)])
    assert raw.runs[1].changed_at.latest(None) > 0


def test_the_bytes_of_a_source_are_those_of_its_last_look(store: Store):
    first = _first(0, 1, 2)
    store.sources.observe(replace(first, found=replace(RAW, bytes=3 * 86_400)))
    assert store.views.of("prod").sources["raw"].bytes_per_second == 1

    grown = _next(store, *_cells(3))
    store.sources.observe(replace(grown, found=replace(grown.found, bytes=8 * 86_400)))
    assert store.sources.observed()["raw"].bytes == 8 * 86_400
    assert store.views.of("prod").sources["raw"].bytes_per_second == 2


def test_of_a_source_that_an_older_release_looked_at_no_bytes_are_known(store: Store):
    store.sources.observe(_first(0, 1, 2))

    raw = store.views.of("prod").sources["raw"]
    assert (raw.bytes, raw.bytes_per_second) == (None, 0)


def test_of_two_who_look_at_once_only_the_first_counts(store: Store):
    store.sources.observe(_first(0))
    mine, theirs = _next(store, *_cells(1)), _next(store, *_cells(1))

    assert store.sources.observe(theirs)
    drawn = store.views.of("prod").counter
    assert not store.sources.observe(mine)
    assert store.views.of("prod").counter == drawn
    assert not store.sources.observe(_first(0))


def test_a_look_that_finds_nothing_new_moves_the_head_and_draws_no_number(store: Store):
    store.sources.observe(_first(0))
    drawn = store.views.of("prod").counter
    assert store.sources.observe(_next(store, head=9))
    assert (store.views.of("prod").counter, store.sources.observed()["raw"].head) == (drawn, 9)


def test_a_batch_reads_a_source_at_its_observed_head_and_not_at_what_came_since(store: Store):
    store.sources.observe(_first(0))
    assert _opened(store, 12).inputs[-1].delta_version == 3


def test_a_source_that_nobody_looked_at_is_read_where_it_was_found(store: Store):
    assert _opened(store, 12).inputs[-1].delta_version == 12


def test_a_source_that_lies_elsewhere_by_now_is_read_where_it_was_found(store: Store):
    store.sources.observe(_first(0))
    assert _opened(store, 12, "/lake/other").inputs[-1].delta_version == 12


def test_what_a_cell_holds_is_remembered_beside_its_stamp(store: Store):
    store.sources.observe(_first(0, 1))
    known = store.sources.observed()["raw"]
    read = SourceCell(days(1, 2), 5, "sum")
    store.sources.observe(Observation(replace(known, head=4), known, same=(read,)))

    found = store.sources.source_cells("raw")
    assert found == {days(0, 1): SourceCell(days(0, 1), 5), days(1, 2): read}
    assert len(store.views.of("prod").sources["raw"].runs) == 1


def test_looking_anew_forgets_what_was_known(store: Store):
    store.sources.observe(_first(0, 1))
    again = replace(_next(store, *_cells(4)), anew=True)
    store.sources.observe(again)
    assert store.views.of("prod").sources["raw"].ready == IntervalSet.of([days(4, 5)])


def test_ready_cells_tell_where_they_have_read_a_source(store: Store):
    add_model(store, "revenue")
    pins = [InputPin("raw", "", "/lake/raw", at) for at in (2, 2, 5)]
    asked = [Asked("orders", 0, 3), Asked("revenue", 0, 3), Asked("orders", 3, 5)]
    done = [
        fill(store, replace(request, sources=(pin,)))
        for request, pin in zip(asked, pins, strict=True)
    ]
    here, elsewhere = replace(RAW, head=5), replace(RAW, head=5, path="/elsewhere")
    read = _read(2, done[1].built_at, 0, 3), _read(5, done[2].built_at, 3, 5)
    assert store.sources.source_pins(None, here) == read
    assert store.sources.source_pins(here, elsewhere) == read  # it was moved
    assert store.sources.source_pins(None, replace(here, source="other")) == ()


def test_ready_cells_that_have_read_another_table_have_read_nothing_of_this_one(store: Store):
    add_model(store, "revenue")
    old = InputPin("raw", "", "/lake/raw", 2)
    asked = (
        (Asked("orders", 0, 1), old),  # of an earlier release
        (Asked("orders", 1, 2), replace(old, table_id="id-0")),
        (Asked("revenue", 0, 1), replace(old, table_id="id-1", path="/before")),
        (Asked("revenue", 1, 2), replace(old, table_id="id-1", delta_version=9)),
    )
    built = [fill(store, replace(request, sources=(pin,))).built_at for request, pin in asked]

    assert store.sources.source_pins(None, RAW) == (
        _read(UNREAD, built[3], 1, 2),
        _read(2, built[2], 0, 1),
    )
    made_anew = replace(RAW, table_id="id-0")
    assert store.sources.source_pins(made_anew, RAW)[1:] == (_read(2, built[2], 0, 1),)
    assert store.sources.source_pins(RAW, made_anew) == (
        _read(UNREAD, built[3], 0, 2),
        _read(2, built[1], 1, 2),
    )


def test_a_first_look_knows_where_batches_in_flight_read(store: Store):
    flying = _opened(store, 2)
    assert store.sources.source_pins(None, RAW) == (_read(2, flying.built_at, 0, 3),)
    changed = ChangedCells(_cells(1), since=2)
    baseline = ChangedCells(_cells(0), BASELINE)
    assert store.sources.observe(
        Observation(RAW, None, (baseline, changed), anew=True, pins=frozenset({2}))
    )

    stamps = {
        run.interval: run.changed_at.latest(None)
        for run in store.views.of("prod").sources["raw"].runs
    }
    assert stamps == {days(0, 1): 0, days(1, 2): flying.built_at + 1}


def test_a_first_look_counts_nothing_if_somebody_read_elsewhere_meanwhile(store: Store):
    baseline = (ChangedCells(_cells(0), BASELINE),)
    look = Observation(RAW, None, baseline, anew=True, pins=frozenset())
    _opened(store, 2)

    assert not store.sources.observe(look)
    assert store.sources.observe(replace(look, pins=frozenset({2})))


def test_each_change_of_a_look_has_a_number_of_its_own_and_a_cell_stands_in_all_of_its(
    store: Store,
):
    store.sources.observe(_first(0, 1, 2, 3))
    before = store.sources.observed()["raw"]
    changes = (ChangedCells(_cells(0, 2)), ChangedCells(_cells(1)))
    store.sources.observe(Observation(replace(before, head=4), before, changes))
    store.sources.observe(_next(store, *_cells(2, 3), head=5))

    found = store.views.of("prod").sources["raw"].changes(None)
    numbers = [change.number for change in found]
    assert numbers == sorted(set(numbers))
    assert [[*change.cells] for change in found] == [
        [days(0, 1), days(2, 3)], [days(1, 2)], [days(2, 4)],
    ]  # fmt: skip


def test_a_change_that_lies_within_a_later_one_is_told_by_that(store: Store):
    store.sources.observe(_first(0, 1))
    for head in range(4, 9):
        store.sources.observe(_next(store, *_cells(1), head=head))
    store.sources.observe(_next(store, *_cells(0, 1), head=9))

    (found,) = store.views.of("prod").sources["raw"].changes(None)
    assert found.cells == IntervalSet.of([days(0, 2)])


def test_of_very_many_changes_the_oldest_are_connected_and_none_is_lost():
    every = [UpstreamChange(at, IntervalSet.of([days(at, at + 1)])) for at in range(1, 1501)]

    found = listed(every[:700], every[700:])
    assert len(found) == 1000
    assert IntervalSet.union_all(change.cells for change in found) == IntervalSet.of(
        [days(1, 1501)]
    )
    assert found[0] == UpstreamChange(501, IntervalSet.of([days(1, 502)]))


def test_what_the_release_before_has_seen_change_is_told_by_its_stamps(store: Store):
    store.sources.observe(_first(0, 1, 2))
    store.sources.observe(_next(store, *_cells(0, 2)))
    known = store.views.of("prod").sources["raw"].changes(None)
    text = "update observed_sources set changes = null"
    store._database.write(lambda found: found.execute(sa.text(text)))

    raw = store.views.of("prod").sources["raw"]
    assert [change for change in raw.changes(None) if change.number] == [*known]
    store.sources.observe(_next(store, *_cells(1), head=5))
    found = store.views.of("prod").sources["raw"].changes(None)
    assert [[*change.cells] for change in found] == [[days(0, 1), days(2, 3)], [days(1, 2)]]


def test_single_columns_have_stamps_of_their_own_until_the_row_set_changes(store: Store):
    store.sources.observe(_first(0, 1))
    priced = SourceCell(days(1, 2), 5, changed=frozenset({"price"}))
    store.sources.observe(_next(store, priced))

    runs = store.views.of("prod").sources["raw"].runs
    stamps = {run.interval: run.changed_at for run in runs}
    assert stamps[days(0, 1)].latest(None) == stamps[days(1, 2)].latest(frozenset({"name"})) == 0
    known = stamps[days(1, 2)].latest(frozenset({"price", "name"}))
    assert known == stamps[days(1, 2)].latest(None) > 0
    store.sources.observe(_next(store, replace(priced, changed=frozenset({"name"})), head=5))
    (_, both) = store.views.of("prod").sources["raw"].runs
    assert both.changed_at.latest(frozenset({"name"})) > known
    assert both.changed_at.latest(frozenset({"price"})) == known
    store.sources.observe(_next(store, *_cells(1), head=6))
    (_, rows) = store.views.of("prod").sources["raw"].runs
    assert rows.changed_at.latest(frozenset()) == rows.changed_at.latest(None) > known


def test_cells_that_the_release_before_has_looked_at_count_in_every_column(store: Store):
    store.sources.observe(_first(0, 1))
    store.sources.observe(_next(store, *_cells(1)))
    with_four = "update observed_sources set runs = '[[0, 86400, 4, 1]]'"
    store._database.write(lambda found: found.execute(sa.text(with_four)))

    (run,) = store.views.of("prod").sources["raw"].runs
    assert run.changed_at.latest(frozenset({"any"})) == 4
