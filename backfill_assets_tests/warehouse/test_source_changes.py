from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.intervals.cadence import Daily, Hourly, Monthly, Whole
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.column import Column
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.warehouse.log.delta_log import table_id
from backfill_assets.warehouse.sources.source_changes import life_of, present, touched

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.warehouse.sources.source_changes import ConcernedCells

DAYS = Daily(start="2024-01-01")


def raw(cadence: Cadence = DAYS, dtype: str = "date", event: str | None = "at") -> Source:
    return Source(
        name="raw.events",
        path="events",
        cadence=cadence,
        times=TimeColumns(event=event),
        columns=(Column("at", dtype), Column("n", "bigint")),
    )


def land(path: Path, *times: Any, n: int = 1, **how: Any) -> int:  # noqa: ANN401
    """Append rows as one commit, and give its delta_version."""
    dtype = how.pop(
        "dtype", pa.date32() if not isinstance(times[0], datetime) else pa.timestamp("us", "UTC")
    )
    rows = pa.table({"at": pa.array(times, dtype), "n": pa.array([n] * len(times), pa.int64())})
    write_deltalake(str(path), rows, mode="append", **how)
    return DeltaTable(str(path)).version()


def on(day: int) -> date:
    return date(2024, 1, day)


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2024, 1, day, hour, minute, tzinfo=UTC)


def changed(found: ConcernedCells, source: Source) -> dict[str, int]:
    return {
        ranges_text(source.cadence, IntervalSet.of([cell])): rows
        for cell, rows in sorted(found.changed.items(), key=lambda change: change[0].start)
    }


def test_a_file_inside_one_cell_has_changed_it_by_its_rows(tmp_path: Path):
    source = raw()
    land(tmp_path, on(1))
    head = land(tmp_path, on(3), on(3))
    found = touched(str(tmp_path), source, 0, head)
    assert (changed(found, source), found.unsure) == ({"2024-01-03": 2}, IntervalSet.empty())


def test_a_file_over_several_cells_leaves_open_which_of_them_changed(tmp_path: Path):
    land(tmp_path, on(1))
    head = land(tmp_path, on(2), on(5))
    found = touched(str(tmp_path), raw(), 0, head)
    assert not found.changed
    assert ranges_text(DAYS, found.unsure) == "2024-01-02..2024-01-05 (4)"


def test_partitions_say_it_without_statistics(tmp_path: Path):
    land(tmp_path, on(1), partition_by=["at"])
    head = land(tmp_path, on(2), on(5), on(5), partition_by=["at"])
    found = touched(str(tmp_path), raw(), 0, head)
    assert changed(found, raw()) == {"2024-01-02": 1, "2024-01-05": 2}


def test_a_compaction_touches_nothing(tmp_path: Path):
    land(tmp_path, on(1))
    since = land(tmp_path, on(4))
    DeltaTable(str(tmp_path)).optimize.compact()
    head = DeltaTable(str(tmp_path)).version()
    assert head > since
    found = touched(str(tmp_path), raw(), since, head)
    assert (found.changed, found.unsure) == ({}, IntervalSet.empty())


def test_late_rows_that_were_compacted_since_are_found_all_the_same(tmp_path: Path):
    since = land(tmp_path, on(1))
    land(tmp_path, on(4))
    DeltaTable(str(tmp_path)).optimize.compact()
    found = touched(str(tmp_path), raw(), since, DeltaTable(str(tmp_path)).version())
    assert changed(found, raw()) == {"2024-01-04": 1}


def test_a_delete_of_a_whole_file_takes_its_cells_rows_away(tmp_path: Path):
    land(tmp_path, on(1))
    since = land(tmp_path, on(2), on(2))
    DeltaTable(str(tmp_path)).delete("at = '2024-01-02'")
    found = touched(str(tmp_path), raw(), since, since + 1)
    assert changed(found, raw()) == {"2024-01-02": -2}


def mark_deleted(path: Path, old: int, new: int | None) -> int:
    """Let the only file hold more rows that a deletion vector deletes, as Spark does; or remove the file."""
    log = path / "_delta_log"
    head = DeltaTable(str(path)).version()
    (add,) = pa.table(DeltaTable(str(path)).get_add_actions()).to_pylist()
    file: dict[str, Any] = {"path": add["path"], "dataChange": True, "size": add["size_bytes"]}
    rows, nulls = add["num_records"], add["null_count"]
    removed = {**file, "deletionTimestamp": 0, "stats": json.dumps({"numRecords": rows})}
    if old:
        removed["deletionVector"] = vector(old)
    actions: list[dict[str, Any]] = [{"remove": removed}]
    if new is not None:
        bounds = {"at": add["min"]["at"].isoformat()}
        stats = {"numRecords": rows, "minValues": bounds, "maxValues": bounds, "nullCount": nulls}
        added = {**file, "partitionValues": {}, "modificationTime": 0, "stats": json.dumps(stats)}
        actions.append({"add": {**added, "deletionVector": vector(new)}})
    if not old:
        features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
        actions.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    text = "\n".join(json.dumps(action) for action in actions)
    (log / f"{head + 1:020d}.json").write_text(text)
    return head + 1


def vector(rows: int) -> dict[str, Any]:
    where = {"storageType": "u", "pathOrInlineDv": f"AQ&N8v#S)/KdnJ73d!X{rows}", "offset": 1}
    return {**where, "sizeInBytes": 31, "cardinality": rows}


def test_rows_that_deletion_vectors_delete_are_counted_once(tmp_path: Path):
    since = land(tmp_path, *[on(1)] * 10)
    mark_deleted(tmp_path, 0, 4)
    more = mark_deleted(tmp_path, 4, 6)
    gone = mark_deleted(tmp_path, 6, None)
    counted = [
        changed(touched(str(tmp_path), raw(), first, last), raw())
        for first, last in ((-1, gone), (since, more), (since, gone))
    ]
    assert counted == [{}, {"2024-01-01": -6}, {"2024-01-01": -10}]
    # Which rows a file had lost before, only its rows tell where the log gives no span of it.
    assert ranges_text(DAYS, touched(str(tmp_path), raw(), more, gone).unsure) == "2024-01-01"


def test_what_is_there_is_counted_by_rows_where_deletion_vectors_may_delete_some(tmp_path: Path):
    land(tmp_path, *[on(1)] * 10)
    head = mark_deleted(tmp_path, 0, 4)
    found = present(str(tmp_path), raw(), head)
    assert (changed(found, raw()), ranges_text(DAYS, found.unsure)) == ({}, "2024-01-01")
    assert present(str(tmp_path), raw(Whole()), head).unsure == life_of(raw(Whole()))


def test_which_rows_without_a_time_a_deletion_vector_deletes_is_left_open(tmp_path: Path):
    since = land(tmp_path, on(1), on(1), None)
    head = mark_deleted(tmp_path, 0, 1)
    found = touched(str(tmp_path), raw(), since, head)
    assert (changed(found, raw()), ranges_text(DAYS, found.unsure)) == ({}, "2024-01-01")


def test_an_update_that_keeps_the_number_of_rows_must_be_looked_at(tmp_path: Path):
    since = land(tmp_path, on(1))
    since = land(tmp_path, on(2), on(2))
    DeltaTable(str(tmp_path)).update({"n": "7"}, predicate="at = '2024-01-02'")
    found = touched(str(tmp_path), raw(), since, since + 1)
    assert (changed(found, raw()), ranges_text(DAYS, found.unsure)) == ({}, "2024-01-02")


def test_cells_are_cut_on_the_sources_zone(tmp_path: Path):
    berlin = raw(Daily(start="2024-01-01", tz="Europe/Berlin"), "timestamp")
    land(tmp_path, at(3, 12))
    head = land(tmp_path, at(4, 22, 30), at(4, 22, 59))
    assert changed(touched(str(tmp_path), berlin, 0, head), berlin) == {"2024-01-04": 2}
    head = land(tmp_path, at(4, 22, 59), at(4, 23, 0))
    found = touched(str(tmp_path), berlin, head - 1, head)
    assert ranges_text(berlin.cadence, found.unsure) == "2024-01-04..2024-01-05 (2)"


def test_a_date_in_another_zone_is_a_local_day(tmp_path: Path):
    source = raw(Daily(start="2024-01-01", tz="Pacific/Auckland"))
    land(tmp_path, on(1))
    head = land(tmp_path, on(2))
    assert changed(touched(str(tmp_path), source, 0, head), source) == {"2024-01-02": 1}


def test_hours_and_months_are_cut_as_declared(tmp_path: Path):
    land(tmp_path, at(1))
    head = land(tmp_path, at(2, 5, 1), at(2, 5, 59))
    hours, months = (
        raw(Hourly(start="2024-01-01"), "timestamp"),
        raw(Monthly(start="2024-01-01"), "timestamp"),
    )
    assert list(touched(str(tmp_path), hours, 0, head).changed) == [Interval(at(2, 5), at(2, 6))]
    assert changed(touched(str(tmp_path), months, 0, head), months) == {"2024-01-01": 2}


def test_rows_without_an_event_time_belong_to_no_cell(tmp_path: Path):
    land(tmp_path, on(1))
    head = land(tmp_path, None, None, dtype=pa.date32())
    found = touched(str(tmp_path), raw(), 0, head)
    assert (found.changed, found.unsure) == ({}, IntervalSet.empty())
    head = land(tmp_path, on(3), None)
    assert changed(touched(str(tmp_path), raw(), head - 1, head), raw()) == {"2024-01-03": 1}


def test_rows_before_the_sources_life_concern_nobody(tmp_path: Path):
    land(tmp_path, on(1))
    head = land(tmp_path, date(1, 1, 1), date(2023, 12, 31))
    found = touched(str(tmp_path), raw(), 0, head)
    assert (found.changed, found.unsure) == ({}, IntervalSet.empty())
    head = land(tmp_path, date(2023, 12, 31), date(9999, 12, 31))
    assert touched(str(tmp_path), raw(), head - 1, head).unsure == life_of(raw())


def test_a_file_that_begins_before_the_sources_life_says_nothing_certain_of_its_first_cell(
    tmp_path: Path,
):
    before = date(2023, 12, 31)
    since = land(tmp_path, before, on(1))
    assert ranges_text(DAYS, present(str(tmp_path), raw(), since).unsure) == "2024-01-01"
    rows = pa.table(
        {"at": pa.array([before, before, on(1)], pa.date32()), "n": pa.array([1, 1, 1], pa.int64())}
    )
    write_deltalake(str(tmp_path), rows, mode="overwrite")
    found = touched(str(tmp_path), raw(), since, since + 1)
    assert (changed(found, raw()), ranges_text(DAYS, found.unsure)) == ({}, "2024-01-01")


@pytest.mark.parametrize("number", [10_000_000, -10_000_000])
def test_a_date_that_python_does_not_know_lies_outside_of_the_sources_life(
    tmp_path: Path, number: int
):
    land(tmp_path, on(1))
    days = pa.array([number], pa.int32()).cast(pa.date32())
    write_deltalake(
        str(tmp_path), pa.table({"at": days, "n": pa.array([1], pa.int64())}), mode="append"
    )

    found = present(str(tmp_path), raw(), 1)

    assert changed(found, raw()) == {"2024-01-01": 1}
    assert found.unsure == IntervalSet.empty()


def test_without_statistics_every_cell_may_have_changed(tmp_path: Path):
    none = {"delta.dataSkippingNumIndexedCols": "0"}
    land(tmp_path, on(1), configuration=none)
    head = land(tmp_path, on(3))
    found = touched(str(tmp_path), raw(), 0, head)
    assert (found.changed, found.unsure) == ({}, life_of(raw()))
    assert present(str(tmp_path), raw(), head).unsure == life_of(raw())


def test_commits_that_are_cleaned_away_leave_everything_open(tmp_path: Path):
    land(tmp_path, on(1))
    land(tmp_path, on(2))
    head = land(tmp_path, on(3))
    DeltaTable(str(tmp_path)).create_checkpoint()
    for number in (0, 1):
        (tmp_path / "_delta_log" / f"{number:020d}.json").unlink()
    assert touched(str(tmp_path), raw(), 0, head).unsure == life_of(raw())
    assert changed(touched(str(tmp_path), raw(), 1, head), raw()) == {"2024-01-03": 1}
    assert table_id(str(tmp_path)) == ""


def test_a_source_that_is_not_cut_has_one_cell(tmp_path: Path):
    for source in (raw(Whole()), raw(event=None)):
        path = tmp_path / source.cadence.unit.name
        since = land(path, on(1))
        head = land(path, on(5), on(9))
        assert list(touched(str(path), source, since, head).changed.values()) == [2]
        assert list(present(str(path), source, head).changed.values()) == [3]
        write_deltalake(
            str(path), DeltaTable(str(path)).to_pyarrow_table(), mode="overwrite"
        )  # the same rows again
        assert touched(str(path), source, head, head + 1).unsure == life_of(source)


def test_what_is_there_is_counted_from_the_log(tmp_path: Path):
    land(tmp_path, on(1), on(1))
    land(tmp_path, on(2))
    head = land(tmp_path, on(4), on(6))
    found = present(str(tmp_path), raw(), head)
    assert changed(found, raw()) == {"2024-01-01": 2, "2024-01-02": 1}
    assert ranges_text(DAYS, found.unsure) == "2024-01-04..2024-01-06 (3)"


@pytest.mark.parametrize(
    ("dtype", "tz", "time"),
    [
        ("timestamp", "Europe/Berlin", at(4, 23, 30)),
        ("timestamp_ntz", "Europe/Berlin", datetime(2024, 1, 5, 23, 30)),  # noqa: DTZ001
        ("timestamp_ntz", "America/New_York", datetime(2024, 1, 5, 0, 30)),  # noqa: DTZ001
    ],
)
def test_what_is_there_and_what_came_are_cut_alike(
    tmp_path: Path, dtype: str, tz: str, time: datetime
):
    source = raw(Daily(start="2024-01-01", tz=tz), dtype)
    arrow = pa.timestamp("us", "UTC") if dtype == "timestamp" else pa.timestamp("us")
    head = land(tmp_path, time, dtype=arrow)
    assert changed(present(str(tmp_path), source, head), source) == {"2024-01-05": 1}
    assert changed(touched(str(tmp_path), source, -1, head), source) == {"2024-01-05": 1}


def test_a_table_that_is_made_anew_has_another_id(tmp_path: Path):
    land(tmp_path, on(1))
    before = table_id(str(tmp_path))
    land(tmp_path, on(2))
    assert table_id(str(tmp_path)) == before != ""
    shutil.rmtree(tmp_path)
    land(tmp_path, on(1))
    assert table_id(str(tmp_path)) != before


def test_a_declared_column_of_another_type_leaves_everything_open(tmp_path: Path):
    since = land(tmp_path, on(1))
    rows = pa.table({"at": pa.array([on(1)], pa.date32()), "n": pa.array(["1"])})
    write_deltalake(str(tmp_path), rows, mode="overwrite", schema_mode="overwrite")
    assert touched(str(tmp_path), raw(), since, since + 1).unsure == life_of(raw())


def test_a_new_column_that_nobody_declares_changes_nothing(tmp_path: Path):
    since = land(tmp_path, on(1))
    rows = pa.table({"at": pa.array([on(2)], pa.date32()), "n": [1], "more": ["x"]})
    write_deltalake(str(tmp_path), rows, mode="append", schema_mode="merge")
    assert changed(touched(str(tmp_path), raw(), since, since + 1), raw()) == {"2024-01-02": 1}


def mapped(name: str, dtype: Any, number: int, physical: str) -> dict[str, Any]:  # noqa: ANN401
    """A column that files hold under another name, as Delta describes it."""
    names = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": dtype, "nullable": True, "metadata": names}


AT, N = mapped("at", "date", 1, "at"), mapped("n", "long", 2, "n")


def described(path: Path, delta_version: int, *columns: dict[str, Any], file: bool = False) -> None:
    """Write a commit that gives a table these columns, by its log alone, and with it perhaps a file of January 1."""
    log = path / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    schema = json.dumps({"type": "struct", "fields": columns})
    mode = "name" if any(column["metadata"] for column in columns) else "none"
    low, nulls = {"at": "2024-01-01", "n": 7}, {"at": 0, "n": 0}
    stats = {"numRecords": 1, "minValues": low, "maxValues": low, "nullCount": nulls}
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {
            "metaData": {
                "id": "one",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {"delta.columnMapping.mode": mode},
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 0,
                "dataChange": True,
                "stats": json.dumps(stats),
            }
        },
    ]
    lines = [json.dumps(action) for action in (actions if file else actions[:2])]
    (log / f"{delta_version:020d}.json").write_text("\n".join(lines))


NESTED = {"type": "struct", "fields": [mapped("x", "long", 3, "x")]}
NESTED_ANEW = {"type": "struct", "fields": [mapped("x", "long", 4, "col-4")]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((AT, N), (AT, mapped("n", "long", 3, "col-3"))),  # dropped, and added again
        ((AT, N), (AT, mapped("m", "long", 2, "n"), mapped("n", "long", 3, "col-3"))),
        ((AT, mapped("m", "long", 2, "n")), (AT, N)),  # an older column has got the name
        ((AT, N), (mapped("old", "date", 1, "at"), mapped("at", "date", 3, "col-3"), N)),
        ((AT, mapped("n", NESTED, 2, "n")), (AT, mapped("n", NESTED_ANEW, 2, "n"))),
    ],
)
def test_a_column_that_stands_for_other_values_leaves_everything_open(
    tmp_path: Path, before: tuple[dict[str, Any], ...], after: tuple[dict[str, Any], ...]
):
    described(tmp_path, 0, *before, file=True)
    described(tmp_path, 1, *after)
    assert touched(str(tmp_path), raw(), 0, 1).unsure == life_of(raw())


@pytest.mark.parametrize(
    "after",
    [
        (AT, mapped("n", "long", 2, "n"), mapped("more", "string", 3, "col-3")),
        (AT, {**N, "nullable": False, "metadata": {**N["metadata"], "comment": "a number"}}),
    ],
)
def test_columns_that_stand_for_the_same_values_change_nothing(
    tmp_path: Path, after: tuple[dict[str, Any], ...]
):
    described(tmp_path, 0, {**AT, "metadata": {}}, {**N, "metadata": {}}, file=True)
    described(tmp_path, 1, *after)
    found = touched(str(tmp_path), raw(), 0, 1)
    assert (found.changed, found.unsure) == ({}, IntervalSet.empty())


def test_cells_of_a_renamed_event_time_are_told_by_its_name_in_the_files(tmp_path: Path):
    described(tmp_path, 0, AT, N, file=True)
    described(tmp_path, 1, mapped("old", "date", 1, "at"), mapped("at", "date", 3, "col-3"), N)
    described(tmp_path, 2, mapped("at", "date", 1, "at"), N)
    assert present(str(tmp_path), raw(), 1).changed == {}
    assert changed(present(str(tmp_path), raw(), 2), raw()) == {"2024-01-01": 1}
