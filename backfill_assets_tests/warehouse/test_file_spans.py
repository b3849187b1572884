from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import example, given, strategies as st

from backfill_assets.intervals.cadence import WHOLE_CELL, Daily, Monthly, Weekly, Whole, Yearly
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import zone_of
from backfill_assets.warehouse.files.file_spans import (
    CellsRead,
    file_of,
    logged_file,
    logged_files,
    rows_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from backfill_assets.intervals.cadence import Cadence


def local(*clock: int) -> datetime:
    return datetime(*clock)  # type: ignore[arg-type]  # noqa: DTZ001 - what clocks show


LOCAL = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")
ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "America/Havana",  # midnight comes twice, and is skipped
    "America/St_Johns",  # clocks once went back over midnight
    "Pacific/Apia",  # a day was skipped
]
MOVED_CLOCKS = [
    local(2023, 11, 5),
    local(2024, 3, 10),
    local(2024, 3, 31),
    local(2006, 10, 29),
    local(2011, 12, 30),
]


def files(path: Path, dtype: pa.DataType, *times: Any, **how: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Write a file for each time, and give the log's entries."""
    for time in times:
        rows = pa.table({"at": pa.array([time], dtype), "n": [1]})
        write_deltalake(str(path), rows, mode="append", **how)
    return logged_files(str(path), len(times) - 1)


def read(cadence: Cadence, cell: str) -> CellsRead:
    return CellsRead("at", cadence, IntervalSet.of([cadence.cell(cell)]))


@pytest.mark.parametrize("how", [{}, {"partition_by": ["at"]}])
def test_a_time_without_a_zone_is_looked_for_in_its_local_day(tmp_path: Path, how: dict[str, Any]):
    cadence = Daily(start="2024-01-01", tz="America/New_York")
    night, morning = local(2024, 1, 2, 1), local(2024, 1, 2, 9)

    entries = files(tmp_path / "rows", LOCAL, night, morning, **how)

    assert all(read(cadence, "2024-01-02").may_hold(entry) for entry in entries)
    assert not any(read(cadence, "2024-01-01").may_hold(entry) for entry in entries)


@pytest.mark.parametrize("how", [{}, {"partition_by": ["at"]}])
def test_an_instant_is_looked_for_in_the_local_day_that_it_falls_in(
    tmp_path: Path, how: dict[str, Any]
):
    cadence = Daily(start="2024-01-01", tz="America/New_York")

    (entry,) = files(tmp_path / "rows", INSTANT, datetime(2024, 1, 2, 1, tzinfo=UTC), **how)

    assert read(cadence, "2024-01-01").may_hold(entry)
    assert not read(cadence, "2024-01-02").may_hold(entry)


@given(
    zone=st.sampled_from(ZONES),
    make=st.sampled_from([Daily, Weekly, Monthly, Yearly]),
    day=st.sampled_from(MOVED_CLOCKS) | st.datetimes(local(1990, 1, 1), local(2030, 1, 1)),
    minutes=st.integers(-200, 200),
)
@example(zone="America/Havana", make=Daily, day=local(2024, 3, 10), minutes=30)
@example(zone="Pacific/Apia", make=Daily, day=local(2011, 12, 30), minutes=0)
@example(zone="America/St_Johns", make=Daily, day=local(2006, 10, 29), minutes=-30)
def test_a_file_is_looked_at_for_the_cell_whose_clocks_showed_its_time(
    zone: str, make: Callable[..., Cadence], day: datetime, minutes: int
):
    cadence, time = make(start="1990-01-01", tz=zone), day + timedelta(minutes=minutes)

    for cell, start, end in cells_around(cadence, time):
        if start <= time < end:
            assert may_hold_one_row(cadence, cell, time)


@given(
    zone=st.sampled_from(ZONES),
    make=st.sampled_from([Daily, Weekly, Monthly, Yearly]),
    day=st.sampled_from(MOVED_CLOCKS) | st.datetimes(local(1990, 1, 1), local(2030, 1, 1)),
)
@example(zone="America/Havana", make=Daily, day=local(2024, 3, 10))
@example(zone="Pacific/Apia", make=Daily, day=local(2011, 12, 30))
def test_a_file_of_one_date_is_looked_at_for_the_cell_of_that_date_only(
    zone: str, make: Callable[..., Cadence], day: datetime
):
    cadence = make(start="1990-01-01", tz=zone)

    for cell, start, end in cells_around(cadence, day):
        of_this_date = start.date() <= day.date() < end.date()
        assert may_hold_one_row(cadence, cell, day.date()) == of_this_date


def cells_around(cadence: Cadence, time: datetime) -> Iterator[tuple[Interval, datetime, datetime]]:
    """Give cells with the midnights of their first day and of the next one, as `cells.time_predicate` chooses rows."""
    around = datetime(time.year, time.month, time.day, tzinfo=UTC)
    zone = zone_of(cadence.tz)
    for cell in cadence.cells(Interval(around - timedelta(3), around + timedelta(3))):
        days = (at.astimezone(zone).date() for at in (cell.start, cell.end))
        start, end = (local(day.year, day.month, day.day) for day in days)
        yield cell, start, end


def may_hold_one_row(cadence: Cadence, cell: Interval, time: date) -> bool:
    entry = {"num_records": 1, "null_count.at": 0, "min.at": time, "max.at": time}
    return CellsRead("at", cadence, IntervalSet.of([cell])).may_hold(entry)


@pytest.mark.parametrize(
    ("dtype", "text", "cell"),
    [
        ("timestamp_ntz", "2024-01-02T01:00:00.000", "2024-01-02"),
        ("timestamp_ntz", "2024-01-02 01:00:00", "2024-01-02"),
        ("timestamp", "2024-01-02T01:00:00.000Z", "2024-01-01"),
        ("timestamp", "2024-01-02 01:00:00", "2024-01-01"),
        ("date", "2024-01-02", "2024-01-02"),
    ],
)
def test_an_action_of_the_log_tells_its_cell_as_an_entry_does(dtype: str, text: str, cell: str):
    cadence = Daily(start="2024-01-01", tz="America/New_York")

    file = logged_file({"partitionValues": {"at": text}}, column="at", dtype=dtype, cadence=cadence)

    assert file.cells(cadence) == IntervalSet.of([cadence.cell(cell)])


@pytest.mark.parametrize(
    "times", [[None], [datetime(9999, 12, 31, tzinfo=UTC)], [datetime(1900, 1, 1, tzinfo=UTC)]]
)
def test_every_file_of_a_table_that_is_read_as_a_whole_is_read(tmp_path: Path, times: list[Any]):
    (entry,) = files(tmp_path / "rows", INSTANT, *times)

    assert CellsRead("at", Whole(), IntervalSet.of([WHOLE_CELL])).may_hold(entry)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"num_records": 2},
        {"num_records": 2, "null_count.at": 0, "min.at": date(2024, 1, 1), "max.at": None},
        {"num_records": 2, "null_count.at": 1, "min.at": None, "max.at": date(2024, 1, 1)},
    ],
)
def test_a_file_of_which_the_log_does_not_say_both_ends_may_hold_any_cell(known: dict[str, Any]):
    assert read(Daily(start="2024-01-01"), "2024-01-02").may_hold(known)
    assert read(Daily(start="2023-01-01"), "2023-12-31").may_hold(known)


def test_a_file_from_before_1970_may_hold_the_cells_of_that_time():
    cadence, long_ago = Daily(start="1960-01-01"), date(1965, 7, 1)
    entry = {"num_records": 1, "null_count.at": 0, "min.at": long_ago, "max.at": long_ago}

    assert read(cadence, "1965-07-01").may_hold(entry)
    assert not read(cadence, "1970-07-01").may_hold(entry)


def test_rows_are_not_counted_where_the_log_does_not_say_the_number_of_each_file(tmp_path: Path):
    path = str(tmp_path / "rows")
    files(tmp_path / "rows", pa.date32(), date(2024, 1, 1), date(2024, 1, 2))
    assert rows_at(path, 1) == 2
    entry = tmp_path / "rows" / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    entry.write_text("\n".join(map(json.dumps, actions)))

    assert rows_at(path, 1) is None
    assert rows_at(path, 0) == 1


@pytest.mark.parametrize("cadence", [Daily(start="2024-01-01"), Yearly(start="2024-01-01")])
def test_a_file_whose_dates_lie_beyond_every_cell_is_in_none(tmp_path: Path, cadence: Cadence):
    entries = files(tmp_path / "rows", pa.date32(), date(9998, 12, 31), date(9999, 12, 31))
    last, beyond = sorted(entries, key=lambda entry: entry["min.at"])

    assert file_of(beyond, "at", cadence).cells(cadence) == IntervalSet.empty()
    cells = file_of(last, "at", cadence).cells(cadence)
    assert cells is not None
    assert cells.span().end == WHOLE_CELL.end
