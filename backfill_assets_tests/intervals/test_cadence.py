from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError, RequestError
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
    Yearly,
)
from backfill_assets.intervals.instants import InstantFormatError
from backfill_assets.intervals.partition_keys import PartitionKeyError
from backfill_assets.intervals.zones import UnknownZoneError
from backfill_assets_tests.intervals.strategies import cadences, instants

spans = st.lists(
    st.tuples(instants, st.integers(1, 40 * 86_400)).map(
        lambda pair: Interval(pair[0], pair[0] + timedelta(seconds=pair[1]))
    ),
    max_size=4,
).map(IntervalSet.of)

HALF_A_SECOND = timedelta(milliseconds=500)

day_like = cadences.filter(lambda cadence: not cadence.unit.is_subday)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@given(cadences, instants)
def test_an_instant_lies_between_its_floor_and_the_next_boundary(
    cadence: Cadence, instant: datetime
):
    assert cadence.floor(instant) <= instant < cadence.next(instant)
    assert cadence.floor(cadence.floor(instant)) == cadence.floor(instant)
    assert cadence.ceil(cadence.next(instant)) == cadence.next(instant)
    assert cadence.ceil(instant) in (cadence.floor(instant), cadence.next(instant))


@given(cadences, instants, st.integers(-500, 500))
def test_shifting_there_and_back_is_nothing(cadence: Cadence, instant: datetime, cells: int):
    boundary = cadence.floor(instant)

    assert cadence.shift(cadence.shift(boundary, cells), -cells) == boundary
    assert cadence.shift(boundary, 1) == cadence.next(boundary)


@given(cadences, instants)
def test_cells_tile_time_without_a_gap(cadence: Cadence, instant: datetime):
    some = Interval(cadence.shift(instant, -20), cadence.shift(instant, 20))
    cells = list(cadence.cells(some))

    assert (cells[0].start, cells[-1].end) == (some.start, some.end)
    assert all(before.end == after.start for before, after in pairwise(cells))
    assert len(cells) == cadence.count(some) == 40


@given(day_like, spans)
def test_snapping_out_holds_the_span_and_snapping_in_lies_within(
    cadence: Cadence, span: IntervalSet
):
    outer, inner = cadence.snap_out(span), cadence.snap_in(span)

    assert (outer & span, inner | span) == (span, span)
    assert cadence.snap_in(outer) == outer
    assert cadence.snap_out(inner) == inner
    assert list(cadence.cells(outer)) == list(cadence.cells(span))
    assert list(cadence.cells(inner)) == [cell for cell in cadence.cells(span) if cell in span]


def test_a_part_of_a_second_touches_its_cell_and_does_not_fill_it():
    first, second, third = (Daily().cell(f"2024-01-0{number}") for number in (1, 2, 3))
    span = Interval(first.start + HALF_A_SECOND, second.end + HALF_A_SECOND)

    assert Daily().snap_out(span) == IntervalSet.of([first, second, third])
    assert Daily().snap_in(span) == IntervalSet.of([second])


@given(cadences, spans)
def test_counting_is_walking(cadence: Cadence, span: IntervalSet):
    some = IntervalSet.of(islice(span, 2)) if cadence.unit.is_subday else span

    assert cadence.count(some) == sum(1 for _ in cadence.cells(some))


@given(cadences, instants)
def test_a_key_names_its_cell_and_no_other(cadence: Cadence, instant: datetime):
    cell = Interval(cadence.floor(instant), cadence.next(instant))

    assert cadence.cell(cadence.key(cell)) == cell


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2024-03-31", 23),
        ("Europe/Berlin", "2024-10-27", 25),
        ("America/New_York", "2024-03-10", 23),
        ("America/New_York", "2024-11-03", 25),
        ("Asia/Kolkata", "2024-10-27", 24),
        ("UTC", "2024-10-27", 24),
    ],
)
def test_a_day_of_a_clock_change_has_as_many_hours_as_the_clock_shows(
    zone: str, day: str, hours: int
):
    hourly = Hourly(tz=zone)
    cells = list(hourly.cells(Daily(tz=zone).cell(day)))

    assert len({hourly.key(cell) for cell in cells}) == len(cells) == hours
    assert [hourly.cell(hourly.key(cell)) for cell in cells] == cells
    assert hourly.key(cells[0]) == f"{day}-00:00"


def test_the_second_of_a_repeated_hour_carries_its_offset():
    hourly = Hourly(tz="Europe/Berlin")

    assert hourly.cell("2024-10-27-02:00").start == utc(2024, 10, 27, 0)
    assert hourly.cell("2024-10-27-02:00+0100").start == utc(2024, 10, 27, 1)


def test_hours_are_cut_where_local_clocks_strike():
    assert Hourly(tz="Asia/Kolkata").floor(utc(2024, 1, 1, 0, 45)) == utc(2024, 1, 1, 0, 30)


def test_hours_of_two_zones_are_the_same_cells_under_other_keys():
    utc_hours, berlin = Hourly(), Hourly(tz="Europe/Berlin")

    assert utc_hours.grid == berlin.grid
    assert not utc_hours.names_alike(berlin)
    assert utc_hours.names_alike(Hourly(start="2024-01-01", cron="5 * * * *"))
    assert not Daily().names_alike(Weekly())
    assert Whole().names_alike(Whole(tz="Europe/Berlin"))


def test_weeks_start_on_monday():
    assert Weekly().floor(utc(2024, 1, 7, 23)) == utc(2024, 1, 1)
    assert Weekly(tz="Europe/Berlin").floor(utc(2024, 1, 7, 23)) == utc(2024, 1, 7, 23)


@pytest.mark.parametrize(
    ("cadence", "key"),
    [
        (Daily(), "2024-02-30"),
        (Daily(), "2024-2-3"),
        (Daily(), "20240203"),
        (Weekly(), "2024-01-02"),
        (Monthly(), "2024-01-15"),
        (Monthly(), "2024-01"),
        (Yearly(), "2024-02-01"),
        (Hourly(), "2024-01-01"),
        (Hourly(), "2024-01-01-10:30"),
        (Hourly(), "2024-01-01-10:00+0000"),
        (Hourly(tz="Europe/Berlin"), "2024-03-31-02:00"),  # clocks skip it
        (Hourly(tz="Europe/Berlin"), "2024-10-27-02:00+0200"),  # the first one has no offset
        (Whole(), "2024-01-01"),
    ],
)
def test_a_bad_key_is_refused_with_a_right_one(cadence: Cadence, key: str):
    with pytest.raises(PartitionKeyError, match="a right one is") as refusal:
        cadence.cell(key)

    assert cadence.key(cadence.cell(refusal.value.example))


@pytest.mark.parametrize(
    ("cadence", "key", "right"),
    [
        (Weekly(tz="Europe/Berlin"), "2026-10-28", "2026-10-26"),
        (Monthly(), "2026-10-15", "2026-10-01"),
        (Hourly(tz="Europe/Berlin"), "2026-10-28", "2026-10-28-00:00"),
        (Hourly(tz="Europe/Berlin"), "0001-01-01", "2024-06-01-02:00"),
    ],
)
def test_a_day_that_is_no_key_is_refused_with_the_key_of_the_cell_of_that_day(
    cadence: Cadence, key: str, right: str
):
    with pytest.raises(PartitionKeyError) as refusal:
        cadence.cell(key)

    assert refusal.value.example == right


def test_only_a_cell_has_a_key():
    with pytest.raises(RequestError, match="not exactly one cell of one day"):
        Daily().key(Interval(utc(2024, 1, 1), utc(2024, 1, 3)))


def test_a_date_starts_and_ends_at_local_midnights_and_the_last_one_is_included():
    cadence = Daily(start="2024-01-01", tz="America/New_York", end=date(2024, 7, 1))

    assert cadence.start == utc(2024, 1, 1, 5)
    assert cadence.end == utc(2024, 7, 2, 4)


def test_an_instant_as_end_is_exclusive():
    assert Daily(start="2024-01-01", end="2024-02-01T00:00:00Z").end == utc(2024, 2, 1)


def test_a_life_is_rounded_outward_to_whole_cells():
    cadence = Monthly(start="2024-01-15", end="2024-03-10")

    assert (cadence.start, cadence.end) == (utc(2024, 1, 1), utc(2024, 4, 1))


def test_a_model_rebuilt_as_a_whole_has_one_cell():
    whole = Whole()
    some = IntervalSet.of([Interval(utc(2024, 1, 1), utc(2024, 1, 2))])

    assert list(whole.cells(some)) == [WHOLE_CELL]
    assert whole.snap_out(some) == IntervalSet.of([WHOLE_CELL])
    assert not whole.snap_in(some)
    assert whole.count(some) == 1
    assert whole.cell(whole.key(WHOLE_CELL)) == WHOLE_CELL
    assert whole.due(utc(2024, 1, 1)) == WHOLE_CELL.end


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Daily(tz="Europe/Berln"), UnknownZoneError, "tz database"),
        (lambda: Daily(cron="every day"), DeclarationError, "five fields"),
        (lambda: Daily(cron="0 0 * * * *"), DeclarationError, "five fields"),
        (lambda: Daily(start="2024-02-01", end="2024-01-01"), DeclarationError, "not after it"),
        (lambda: Daily(start="01.02.2024"), InstantFormatError, "neither a date nor an instant"),
        (lambda: Daily(start="2024-02-01T10:00"), InstantFormatError, "with its offset"),
        (lambda: Daily(start="2024-02-30"), InstantFormatError, "is no day of the calendar; give"),
        (lambda: Daily(start="0001-01-01"), InstantFormatError, "not of the years 2 to 9998; give"),
        (lambda: Daily(end=date(9999, 12, 31)), InstantFormatError, "'9999-12-31' is not of the"),
        (
            lambda: Daily(start=datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))),
            InstantFormatError,
            "2 to",
        ),
    ],
)
def test_a_cadence_that_makes_no_sense_is_refused(
    make: Callable[[], Cadence], error: type[Exception], words: str
):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("cadence", "now", "due"),
    [
        (Daily(), utc(2024, 1, 5, 0), utc(2024, 1, 5)),
        (Daily(cron="0 5 * * *"), utc(2024, 1, 5, 4, 59), utc(2024, 1, 4)),
        (Daily(cron="0 5 * * *"), utc(2024, 1, 5, 5), utc(2024, 1, 5)),
        (Daily(cron="0 5 * * *", cron_tz="Europe/Berlin"), utc(2024, 1, 5, 4), utc(2024, 1, 5)),
        (Daily(tz="Europe/Berlin", cron="0 0 * * *"), utc(2024, 1, 5, 23), utc(2024, 1, 5, 23)),
        (Monthly(cron="15 3 2 * *"), utc(2024, 3, 1, 12), utc(2024, 2, 1)),
        (Hourly(cron="@daily"), utc(2024, 3, 1, 12), utc(2024, 3, 1)),
    ],
)
def test_cells_are_due_up_to_the_last_tick(cadence: Cadence, now: datetime, due: datetime):
    assert cadence.due(now) == due


def test_ten_years_of_hours_are_counted_not_walked():
    hourly = Hourly(tz="Europe/Berlin")
    years = Interval(utc(2014, 1, 1), utc(2024, 1, 1))

    assert hourly.count(years) == 3652 * 24


def test_a_day_that_has_begun_goes_on_where_clocks_are_set_back_over_midnight():
    daily, night = Daily(tz="America/St_Johns"), utc(2006, 10, 29, 3)  # 00:01 became 23:01

    assert daily.floor(night) <= night < daily.next(night)
    assert daily.floor(night) == daily.cell("2006-10-29").start


def test_clocks_that_moved_by_half_an_hour_leave_one_longer_cell():
    hourly = Cadence(Unit.HOUR, "Australia/Lord_Howe")
    (cell,) = hourly.cells(Interval(utc(2024, 4, 6, 14), utc(2024, 4, 6, 14, 1)))

    assert cell.duration == timedelta(minutes=90)
    assert hourly.floor(utc(2024, 4, 6, 15, 15)) == cell.start
    assert hourly.floor(utc(2024, 4, 6, 15, 30)) == cell.end
    assert hourly.key(cell) == "2024-04-07-01:00"
