"""Which cells read which, held against a walk over every pair of cells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import (
    WHOLE_CELL,
    Cadence,
    Daily,
    Hourly,
    Interval,
    IntervalSet,
    Monthly,
    Unit,
    Weekly,
    Whole,
)
from backfill_assets.models.cells import cells_read, cells_reading, cells_without_input
from backfill_assets.models.upstream import OwnCells, Upstream, own_cells

START = datetime(2024, 3, 25, tzinfo=UTC)  # a Monday, days before clocks change in Berlin
NOW = START + timedelta(days=90)
LENGTHS = {Unit.HOUR: 2, Unit.DAY: 10, Unit.WEEK: 28, Unit.MONTH: 62}
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]

units = st.sampled_from([*LENGTHS])
zones = st.sampled_from(ZONES)
lookbacks = st.integers(0, 4) | st.integers(0, 2).map(own_cells)


@st.composite
def cadences(draw: st.DrawFn) -> Cadence:
    """A cadence with a short life, around the change of clocks."""
    unit, shift = draw(units), timedelta(hours=draw(st.integers(-48, 96)))
    end = draw(st.none() | st.just(START + shift + timedelta(days=3 * LENGTHS[unit])))
    return Cadence(unit, draw(zones), start=START + shift, end=end)


def life(cadence: Cadence) -> list[Interval]:
    """The first cells of a model's life: 48 hours, 10 days, 4 weeks, 2 months."""
    assert cadence.start is not None
    end = cadence.start + timedelta(days=LENGTHS[cadence.unit])
    return [
        cell
        for cell in cadence.cells(Interval(cadence.start, end))
        if cadence.end is None or cell.end <= cadence.end
    ]


def oracle(own: Cadence, upstream: Upstream, theirs: Cadence, cell: Interval) -> list[Interval]:
    """Walk back cell by cell, then ask every upstream cell whether it overlaps."""
    back = upstream.lookback
    grid, steps = (own, back.count) if isinstance(back, OwnCells) else (theirs, back)
    start = grid.floor(cell.start) if grid is theirs else cell.start
    for _ in range(steps):
        start = grid.floor(start - timedelta(seconds=1))
    return [
        candidate
        for candidate in life(theirs)
        if candidate.start < cell.end and start < candidate.end
    ]


@given(cadences(), cadences(), lookbacks)
def test_a_cell_reads_what_a_walk_over_all_cells_finds(
    own: Cadence, theirs: Cadence, lookback: int | OwnCells
):
    upstream = Upstream("a.b", lookback)
    known = IntervalSet.of(life(theirs))
    for cell in life(own)[:6]:
        read = cells_read(own, upstream, theirs, IntervalSet.of([cell]), until=NOW)
        assert read & known == IntervalSet.of(oracle(own, upstream, theirs, cell))


@given(cadences(), cadences(), lookbacks, st.data())
def test_a_cell_reads_another_if_and_only_if_the_other_is_read_by_it(
    own: Cadence, theirs: Cadence, lookback: int | OwnCells, data: st.DataObject
):
    upstream = Upstream("a.b", lookback)
    mine, others = life(own), life(theirs)
    changed = data.draw(st.sampled_from(others))

    reading = cells_reading(own, upstream, theirs, IntervalSet.of([changed]))

    for cell in mine:
        read = cells_read(own, upstream, theirs, IntervalSet.of([cell]), until=NOW)
        assert (cell in reading) == (changed in read)


@given(cadences(), cadences(), lookbacks, st.data())
def test_several_cells_read_what_each_of_them_reads(
    own: Cadence, theirs: Cadence, lookback: int | OwnCells, data: st.DataObject
):
    upstream = Upstream("a.b", lookback)
    mine = data.draw(st.lists(st.sampled_from(life(own)), max_size=5))
    changed = data.draw(st.lists(st.sampled_from(life(theirs)), max_size=5))

    def read(cells: list[Interval]) -> IntervalSet:
        return cells_read(own, upstream, theirs, IntervalSet.of(cells), until=NOW)

    def reading(cells: list[Interval]) -> IntervalSet:
        return cells_reading(own, upstream, theirs, IntervalSet.of(cells))

    assert read(mine) == IntervalSet.union_all(read([cell]) for cell in mine)
    assert reading(changed) == IntervalSet.union_all(reading([cell]) for cell in changed)


@given(cadences(), cadences(), lookbacks)
def test_only_whole_cells_of_the_upstreams_life_are_read(
    own: Cadence, theirs: Cadence, lookback: int | OwnCells
):
    read = cells_read(own, Upstream("a.b", lookback), theirs, IntervalSet.of(life(own)), until=NOW)

    assert theirs.snap_in(read) == read
    assert all(theirs.start <= cell.start for cell in read if theirs.start)
    assert all(cell.end <= theirs.end for cell in read if theirs.end)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_day_in_berlin_reads_the_23_hours_that_it_has():
    own, theirs = Daily(start="2024-03-01", tz="Europe/Berlin"), Hourly(start="2024-03-01")
    cells = IntervalSet.of([own.cell("2024-03-31")])

    read = cells_read(own, Upstream("a.b"), theirs, cells, until=NOW)

    assert theirs.count(read) == 23
    assert cells_reading(own, Upstream("a.b"), theirs, read) == cells


def test_a_month_may_look_back_one_of_its_own_cells_over_days():
    own, theirs = Monthly(start="2024-01-01"), Daily(start="2023-01-01")
    march = IntervalSet.of([own.cell("2024-03-01")])

    read = cells_read(own, Upstream("a.b", own_cells(1)), theirs, march, until=NOW)

    assert read == IntervalSet.of([Interval(utc("2024-02-01"), utc("2024-04-01"))])


def test_a_week_in_the_middle_of_which_the_upstream_begins_reads_what_there_is():
    own, theirs = Weekly(start="2024-01-01"), Daily(start="2024-01-04")
    week = IntervalSet.of([own.cell("2024-01-01")])
    read = cells_read(own, Upstream("a.b"), theirs, week, until=NOW)
    assert read == IntervalSet.of([Interval(utc("2024-01-04"), utc("2024-01-08"))])


def test_a_whole_upstream_is_read_whole_and_its_change_concerns_the_readers_whole_life():
    own = Daily(start="2024-01-01", end="2024-01-10")
    cell, whole = IntervalSet.of([own.cell("2024-01-05")]), IntervalSet.of([WHOLE_CELL])

    assert cells_read(own, Upstream("a.b"), Whole(), cell, until=NOW) == whole
    assert cells_reading(own, Upstream("a.b"), Whole(), whole) == IntervalSet.of(
        [Interval(utc("2024-01-01"), utc("2024-01-11"))]
    )


def test_a_whole_reader_reads_all_that_is_over_and_is_concerned_by_any_change():
    theirs = Daily(start="2024-01-01")
    whole = IntervalSet.of([WHOLE_CELL])
    now = utc("2024-01-04") + timedelta(hours=5)

    read = cells_read(Whole(), Upstream("a.b"), theirs, whole, until=now)

    assert read == IntervalSet.of([Interval(utc("2024-01-01"), utc("2024-01-04"))])
    changed = IntervalSet.of([theirs.cell("2024-01-02")])
    assert cells_reading(Whole(), Upstream("a.b"), theirs, changed) == whole


def test_a_model_that_is_rebuilt_as_a_whole_reads_every_cell_that_is_over_and_waits_for_due_ones():
    theirs = Daily(start="2024-01-01", cron="0 5 * * 1")  # on Mondays: the 1st and the 8th
    now, whole = utc("2024-01-10"), IntervalSet.of([WHOLE_CELL])
    week, more = (
        IntervalSet.of([Interval(utc("2024-01-01"), utc(end))])
        for end in ("2024-01-08", "2024-01-10")
    )

    assert cells_read(Whole(), Upstream("a.b"), theirs, whole, until=now) == more

    def without(there: IntervalSet) -> IntervalSet:
        return cells_without_input(Whole(), Upstream("a.b"), theirs, whole, there, until=now)

    assert without(week) == IntervalSet.empty()
    assert without(more - week) == whole


@pytest.mark.parametrize("own", [Daily(start="2024-01-01"), Whole()])
def test_a_source_that_does_not_say_when_it_began_is_read_all_the_same(own: Cadence):
    cells = IntervalSet.of([own.cell("2024-01-05") if own.start else WHOLE_CELL])
    read = cells_read(own, Upstream("a.b", lookback=0), Daily(), cells, until=NOW)
    assert Daily().cell("2024-01-05") in read


def test_no_cells_read_and_are_read_by_none():
    daily, none = Daily(start="2024-01-01"), IntervalSet.empty()

    assert cells_read(daily, Upstream("a.b"), Whole(), none, until=NOW) == none
    assert cells_reading(daily, Upstream("a.b"), Whole(), none) == none
