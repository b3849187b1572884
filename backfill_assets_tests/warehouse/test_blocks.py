"""Blocks: cells finer than a day share the files of their day, and each is still replaced alone."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

from backfill_assets.intervals.cadence import WHOLE_CELL, Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.warehouse.files.cell_files import files_at, files_in, partition_columns
from backfill_assets.warehouse.files.cells import block_of, cell_text
from backfill_assets.warehouse.files.commit import (
    WrittenCells,
    old_cells,
    unwritten_cells,
    written_cells,
)
from backfill_assets.warehouse.files.compaction import joined_files, what_to_compact
from backfill_assets.warehouse.files.housekeeping import cells_touched, create_table
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.files.log_entry import FilesGoneError
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.log.delta_log import head
from backfill_assets.warehouse.rows.copies import copy_cells
from backfill_assets.warehouse.spark.spark_errors import CommitConflictError, PinGoneError
from backfill_assets_tests.warehouse.shop import (
    START,
    batch,
    commit_cells,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from backfill_assets.models.model import Model

APP = "commerce__sales"
HOURLY = Cadence(Unit.HOUR, start=START)
_INSTANTS = pa.timestamp("us", "UTC")
TYPES = {
    "at": "timestamp", "shop": "string", "small": "smallint", "amount": "decimal(18,2)",
    "huge": "decimal(38,9)", "wall": "timestamp_ntz", "day": "date", "raw": "binary", "yes": "boolean",
    "x": "double", "tags": "array<string>", "seen": "map<string,bigint>", "of": "struct<A:int,b:timestamp>",
}  # fmt: skip


def hourly(**changes: Any) -> Model:  # noqa: ANN401
    return sales(
        **{
            "kind": IncrementalByTimeRange(time_column="at"),
            "cadence": HOURLY,
            "unique_key": ["at"],
            "columns": (Column("at", "timestamp"), Column("shop", "string")),
            **changes,
        }
    )


def hour(number: int) -> Interval:
    start = START + timedelta(hours=number)
    return Interval(start, start + timedelta(hours=1))


def hours(*numbers: int) -> list[Interval]:
    return [hour(number) for number in numbers]


def texts(*numbers: int) -> set[str]:
    return {cell_text(HOURLY, hour(number)) for number in numbers}


def sold(shop: str, *numbers: int) -> list[str]:
    """One sale in each hour, as SQL values."""
    at = (START + timedelta(hours=number, minutes=30) for number in numbers)
    return [f"(TIMESTAMP'{instant:%Y-%m-%d %H:%M:%S}+00:00', '{shop}')" for instant in at]


def no_spark() -> Any:  # noqa: ANN401
    pytest.fail("Spark was asked for")


def a_table(folder: Path) -> str:
    path = str(folder / "hours")
    create_table(no_spark, hourly(), path, app_id=APP, token=0)
    return path


def write(written: WrittenCells, rows: Mapping[int, Sequence[str]]) -> None:
    """Write a file for each block of the hours' rows, as Spark does."""
    blocks: dict[str, list[tuple[int, str]]] = {}
    for number, shops in rows.items():
        block = block_of(HOURLY, cell_text(HOURLY, hour(number)))
        blocks.setdefault(block, []).extend((number, shop) for shop in shops)
    for block, held in blocks.items():
        if held:
            times = [hour(number).start for number, _ in held]
            cells = pa.array(times, pa.timestamp("us", "UTC"))
            table = pa.table({"at": cells, "shop": [shop for _, shop in held], "_cell": cells})
            parquet.write_to_dataset(
                table.append_column("block", pa.array([block] * len(held))),
                f"{written.path}/{written.folder}",
                partition_cols=["block"],
            )
    written.files = files_in(written.path, written.folder)


def put(path: str, token: int, rows: Mapping[int, Sequence[str]]) -> None:
    """Let hours hold these rows, each a shop, and nothing else."""
    with unwritten_cells(path, HOURLY) as written:
        write(written, rows)
        written.commit(texts(*rows), written.files, ticket(path, token))


def compact(path: str, token: int) -> None:
    with joined_files(path) as joined:
        joined.commit(app_id=APP, token=token)


def held(path: str, at: int | None = None) -> dict[int, Counter[str]]:
    """What each hour holds, by another reader."""
    found: dict[int, Counter[str]] = {}
    rows = DeltaTable(path, version=at).to_pyarrow_table(columns=["_cell", "shop"])
    for row in rows.to_pylist():
        number = int((row["_cell"] - START) / timedelta(hours=1))
        found.setdefault(number, Counter())[row["shop"]] += 1
    return found


def lying(path: str) -> set[str]:
    """The data files below a table, whoever names them."""
    return {
        str(file.relative_to(path))
        for file in Path(path).glob("*/**/*.parquet")
        if "_delta_log" not in file.parts
    }


steps = st.lists(
    st.one_of(
        st.dictionaries(st.integers(0, 52), st.integers(0, 2), min_size=1, max_size=8),
        st.tuples(st.integers(0, 20), st.sets(st.integers(0, 52), min_size=1, max_size=8)),
        st.none(),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_every_hour_holds_what_was_put_there_last_and_every_version_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
):
    path = a_table(tmp_path_factory.mktemp("table"))
    worlds: list[dict[int, Counter[str]]] = [{}]
    for token, step in enumerate(steps, start=1):
        if isinstance(step, dict):
            rows = {number: [f"s{token}"] * count for number, count in step.items()}
            put(path, token, rows)
            new = {number: Counter(shops) for number, shops in rows.items()}
            worlds.append({n: shops for n, shops in (worlds[-1] | new).items() if shops})
        elif step is not None:
            to, numbers = step[0] % len(worlds), step[1]
            asked = texts(*numbers)
            with old_cells(path, HOURLY, files_at(path, to, asked), asked) as written:
                written.commit(asked, written.files, ticket(path, token))
            back = {number: worlds[to].get(number) for number in numbers}
            worlds.append({n: shops for n, shops in (worlds[-1] | back).items() if shops})
        elif what_to_compact(path).files:
            compact(path, token)
            worlds.append(worlds[-1])
            assert not what_to_compact(path).files
    assert [held(path, at) for at in range(head(path) + 1)] == worlds
    assert lying(path) == {file.name for at in range(head(path) + 1) for file in files_at(path, at)}


def test_a_new_hour_leaves_the_files_of_its_day_alone_and_a_rebuilt_one_rewrites_that_day_only(
    tmp_path: Path,
):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(40) if number != 5})
    first = {file.name for file in files_at(path, head(path))}
    put(path, 2, {5: ["late"], 40: ["new"]})
    assert first < {file.name for file in files_at(path, head(path))}
    put(path, 3, {6: ["b"]})
    (gone,) = first - {file.name for file in files_at(path, head(path))}
    assert all(file.last < "2024-01-02" for file in files_at(path, 1) if file.name == gone)


def test_two_batches_in_one_day_neither_wait_for_each_other_nor_lose_a_row(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(24)})
    with ExitStack() as both:
        first, other = (both.enter_context(unwritten_cells(path, HOURLY)) for _ in range(2))
        for written, numbers in ((first, (3, 4)), (other, (4, 5, 20))):
            write(written, {number: [f"of-{numbers[0]}"] for number in numbers})
            written.prepare(texts(*numbers))
        first.commit(texts(3, 4), first.files, ticket(path, 2))
        other.commit(texts(4, 5, 20), other.files, ticket(path, 3))
    new = {3: "of-3", 4: "of-4", 5: "of-4", 20: "of-4"}
    assert held(path) == {number: Counter([new.get(number, "a")]) for number in range(24)}
    assert lying(path) == {file.name for at in range(head(path) + 1) for file in files_at(path, at)}


def test_an_hour_that_keeps_its_file_keeps_it_though_the_batch_was_prepared_for_both(
    tmp_path: Path,
):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(24)})
    with unwritten_cells(path, HOURLY) as written:
        write(written, {3: ["b"]})
        written.prepare(texts(3, 7))
        written.commit(texts(3), written.files, ticket(path, 2))
    assert held(path) == {number: Counter("b" if number == 3 else "a") for number in range(24)}


def test_what_was_touched_since_there_was_no_table_is_all_that_is_there(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {3: ["a"], 4: ["a"], 30: ["a"]})
    assert cells_touched(HOURLY, path, -1) == IntervalSet.of(hours(3, 4, 30))


def test_of_a_file_that_was_replaced_the_cells_that_its_commit_names_were_touched(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in (0, 1, 2, 3, 30)})
    before = head(path)
    emptying = BatchCommit(
        "b1", "prod", "commerce.sales", "v", "f", hour(1), "run", "root", None, "promoted", 1, 7, 2,
        START, (), (), (), emptied=IntervalSet.of(hours(1, 30)),
    )  # fmt: skip
    with unwritten_cells(path, HOURLY) as written:
        written.commit(texts(1, 30), (), ticket(path, 2, emptying.to_json()))

    assert held(path) == {number: Counter("a") for number in (0, 2, 3)}
    assert cells_touched(HOURLY, path, before) == IntervalSet.of(hours(1, 30))
    put(path, 3, {2: ["b"]})  # which does not say what it is
    assert cells_touched(HOURLY, path, before) == IntervalSet.of(hours(0, 1, 2, 3, 30))


def test_an_hour_goes_back_without_the_others_of_its_day(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["old"] for number in range(4)})
    old = head(path)
    put(path, 2, {number: ["new"] for number in range(4)})

    with old_cells(path, HOURLY, files_at(path, old, texts(1)), texts(1)) as written:
        written.commit(texts(1), written.files, ticket(path, 3))

    assert held(path) == {n: Counter(["old" if n == 1 else "new"]) for n in range(4)}


def test_nothing_is_written_under_the_lock_that_was_prepared(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(24)})
    with unwritten_cells(path, HOURLY) as written:
        write(written, {3: ["b"]})
        written.prepare(texts(3))
        before = lying(path)
        written.commit(texts(3), written.files, ticket(path, 2))
    assert lying(path) == before


def test_what_is_left_of_a_day_is_not_named_where_it_is_gone(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(24)})
    with unwritten_cells(path, HOURLY) as written:
        write(written, {3: ["b"]})
        before = lying(path)
        written.prepare(texts(3))
        for left in lying(path) - before:
            Path(path, left).unlink()
        with pytest.raises(FilesGoneError):
            written.commit(texts(3), written.files, ticket(path, 2))
    assert (head(path), held(path)) == (1, {number: Counter("a") for number in range(24)})


def test_files_that_piled_up_in_a_day_become_one_and_no_reader_sees_another_row(tmp_path: Path):
    path = a_table(tmp_path)
    for number in range(30):
        put(path, number + 1, {number: [f"s{number}"]})
    before = held(path)
    found = what_to_compact(path)
    assert (found.files, found.blocks) == (30, 2)
    compact(path, 31)
    assert (len(files_at(path, head(path))), held(path)) == (2, before)
    assert not what_to_compact(path).files


def test_a_day_whose_files_have_different_columns_keeps_all_of_them(tmp_path: Path):
    path = a_table(tmp_path)
    cells = pa.array([START], pa.timestamp("us", "UTC"))
    for token, (number, more) in enumerate({3: "gone", 4: "new"}.items(), start=1):
        with unwritten_cells(path, HOURLY) as written:
            at = pa.array([hour(number).start], cells.type)
            folder = Path(path, written.folder, "block=2024-01-01")
            folder.mkdir(parents=True)
            parquet.write_table(
                pa.table({"at": at, more: [more], "_cell": at}), folder / "a.parquet"
            )
            written.files = files_in(path, written.folder)
            written.commit(texts(number), written.files, ticket(path, token))
    compact(path, 3)
    (file,) = files_at(path, head(path))
    rows = parquet.read_table(f"{path}/{file.name}", columns=["gone", "new"]).to_pylist()
    assert rows == [{"gone": "gone", "new": None}, {"gone": None, "new": "new"}]


def test_files_are_not_joined_over_a_strangers_commit(tmp_path: Path):
    path = a_table(tmp_path)
    for token in (1, 2):
        put(path, token, {token: ["a"]})
    with joined_files(path) as joined:
        DeltaTable(path).delete("_cell = '2024-01-01T02:00:00Z'")
        with pytest.raises(CommitConflictError):
            joined.commit(app_id=APP, token=3)
    assert held(path) == {1: Counter("a")}


def test_a_wide_table_says_of_each_file_which_hours_it_holds(tmp_path: Path):
    path = str(tmp_path / "hours")
    names = ["at", *(f"c{number}" for number in range(60))]
    columns = [Column(name, "timestamp") for name in names]
    create_table(no_spark, hourly(columns=columns), path, app_id=APP, token=0)
    put(path, 1, {3: ["a"], 30: ["a"]})
    assert [len(files_at(path, head(path), texts(n))) for n in (3, 4, 30)] == [1, 0, 1]


def test_a_rebuilt_hour_leaves_files_that_say_which_hours_they_hold(tmp_path: Path):
    path = a_table(tmp_path)
    with unwritten_cells(path, HOURLY) as written:
        rows = pa.table({"_cell": pa.array([hour(n).start for n in range(4)], _INSTANTS)})
        folder = Path(path, written.folder, "block=2024-01-01")
        folder.mkdir(parents=True)
        parquet.write_table(rows, folder / "a.parquet", row_group_size=1, compression="none")
        written.files = files_in(path, written.folder)
        written.commit(texts(*range(4)), written.files, ticket(path, 1))
    for token, number in enumerate((0, 2), start=2):
        with unwritten_cells(path, HOURLY) as written:
            written.commit(texts(number), (), ticket(path, token))
    (file,) = files_at(path, head(path))
    assert {file.first, file.last} == texts(1, 3)


def test_an_hour_may_be_rebuilt_any_number_of_times(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(24)})
    for token in range(2, 42):
        put(path, token, {token % 23: ["b"]})
    assert held(path)[0] == Counter("b")
    assert max(len(Path(name).name) for name in lying(path)) < 100


def test_a_day_whose_file_is_lost_is_healed_by_rebuilding_all_of_it(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {number: ["a"] for number in range(3, 20)})
    (lost,) = files_at(path, head(path))
    Path(path, lost.name).unlink()
    with pytest.raises(PinGoneError), unwritten_cells(path, HOURLY) as written:
        written.prepare(texts(4))
    put(path, 2, {number: ["b"] for number in range(24)})
    assert held(path) == {number: Counter("b") for number in range(24)}


def test_a_strangers_file_that_says_nothing_of_its_cells_may_be_of_any(tmp_path: Path):
    path = a_table(tmp_path)
    put(path, 1, {3: ["a"]})
    files = files_at(path, head(path))
    rows, before = pa.table({"at": pa.array([START], _INSTANTS), "shop": ["x"]}), head(path)
    write_deltalake(path, rows, mode="append", schema_mode="merge")
    assert cells_touched(HOURLY, path, before) == IntervalSet.of([WHOLE_CELL])
    assert {*files_at(path, head(path), texts(17))} == {*files_at(path, head(path))} - {*files}
    assert not what_to_compact(path).files


@pytest.mark.spark
def test_a_year_of_hours_is_a_file_a_day(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "hours"), hourly()
    numbers = range(24 * 20)
    rows = batch(spark, model, path, hours(*numbers), *sold("a", *numbers))
    commit_cells(rows, model, hours(*numbers), ticket(path, 1))
    assert len(files_at(path, head(path))) == 20
    assert partition_columns(path) == []


@pytest.mark.spark
def test_what_is_left_of_a_day_is_bit_for_bit_what_spark_had_written(
    spark: SparkSession, tmp_path: Path
):
    path, model = (
        str(tmp_path / "hours"),
        hourly(columns=[Column(name, dtype) for name, dtype in TYPES.items()]),
    )
    values = [_row(n) for n in range(24)]
    rows = batch(spark, model, path, hours(*range(24)), *values)
    commit_cells(rows, model, hours(*range(24)), ticket(path, 1))
    hashed = [*TYPES, "_cell"]
    shown = (
        f"to_json(struct({', '.join(hashed[:-2])}, hex(raw) AS raw_, unix_micros(wall::timestamp)))"
    )

    def found(at: int, where: str = "TRUE") -> list[Any]:
        frame = spark.read.format("delta").option("versionAsOf", at).load(path).where(where)
        return sorted(frame.selectExpr("CAST(_cell AS STRING)", shown, "of", "huge").collect())

    before = found(head(path))
    with unwritten_cells(path, HOURLY) as written:
        written.commit(texts(3, 9), (), ticket(path, 2))
    assert found(head(path)) == [row for row in before if row[0][11:13] not in {"03", "09"}]
    with old_cells(path, HOURLY, files_at(path, 1, texts(3, 9)), texts(3, 9)) as written:
        written.commit(texts(3, 9), written.files, ticket(path, 3))
    assert found(head(path)) == before
    compact(path, 4)
    assert (len(files_at(path, head(path))), found(head(path))) == (1, before)
    physical = [
        parquet.ParquetFile(f"{path}/{files_at(path, at)[0].name}").schema for at in (1, head(path))
    ]
    assert [str(column) for column in physical[0]] == [str(column) for column in physical[1]]


@pytest.mark.spark
def test_a_block_is_the_local_day_of_its_cells(spark: SparkSession, tmp_path: Path):
    path = str(tmp_path / "hours")
    model = hourly(cadence=Cadence(Unit.HOUR, start=START, tz="Asia/Tokyo"))
    numbers = range(24)
    rows = batch(spark, model, path, hours(*numbers), *sold("a", *numbers))
    commit_cells(rows, model, hours(*numbers), ticket(path, 1))
    files = files_at(path, head(path))
    assert sorted((file.first[11:13], file.last[11:13]) for file in files) == [
        ("00", "14"),
        ("15", "23"),
    ]
    blocks = {block_of(model.cadence, cell) for file in files for cell in (file.first, file.last)}
    assert blocks == {"2024-01-01", "2024-01-02"}


@pytest.mark.spark
def test_hours_of_a_table_of_the_release_before_keep_files_of_their_own(
    spark: SparkSession, tmp_path: Path
):
    path, model = str(tmp_path / "hours"), hourly()
    _older_table(path, model)
    commit_cells(
        batch(spark, model, path, hours(1, 2, 30), *sold("a", 1, 2, 30)),
        model,
        hours(1, 2, 30),
        ticket(path, 1),
    )
    commit_cells(
        batch(spark, model, path, hours(2), *sold("b", 2)), model, hours(2), ticket(path, 2)
    )
    assert held(path) == {1: Counter("a"), 2: Counter("b"), 30: Counter("a")}
    assert [file.first == file.last for file in files_at(path, head(path))] == [True] * 3
    assert cells_touched(HOURLY, path, 1) == IntervalSet.of(hours(2))
    assert not what_to_compact(path).files


@pytest.mark.spark
@pytest.mark.parametrize("older", ["source", "target"])
def test_hours_are_copied_between_tables_of_either_release(
    spark: SparkSession, tmp_path: Path, older: str
):
    mine, prod, model = str(tmp_path / "mine"), str(tmp_path / "prod"), hourly()
    _older_table(mine if older == "source" else prod, model)
    for path, shop in ((mine, "new"), (prod, "old")):
        rows = batch(spark, model, path, hours(*range(4)), *sold(shop, *range(4)))
        commit_cells(rows, model, hours(*range(4)), ticket(path, 1))
    some = IntervalSet.of(hours(1, 2))
    copy_cells(lambda: spark, model, table_now(mine), some, some, ticket(prod, 2))
    assert held(prod) == {n: Counter(["new" if n in {1, 2} else "old"]) for n in range(4)}


@pytest.mark.spark
def test_hours_of_a_day_are_copied_without_spark_and_without_the_other_hours(
    spark: SparkSession, tmp_path: Path
):
    mine, prod, model = str(tmp_path / "mine"), str(tmp_path / "prod"), hourly()
    for path, shop in ((mine, "new"), (prod, "old")):
        rows = batch(spark, model, path, hours(*range(50)), *sold(shop, *range(50)))
        commit_cells(rows, model, hours(*range(50)), ticket(path, 1))
    some = IntervalSet.of(hours(1, 2, *range(24, 48)))
    copy_cells(no_spark, model, table_now(mine), some, some, ticket(prod, 2))
    new = {1, 2, *range(24, 48)}
    assert held(prod) == {n: Counter(["new" if n in new else "old"]) for n in range(50)}


@pytest.mark.spark
def test_an_hour_that_lies_over_others_hides_that_hour_alone(spark: SparkSession, tmp_path: Path):
    under, over = a_table(tmp_path / "under"), a_table(tmp_path / "over")
    put(under, 1, {number: ["old"] for number in range(4)})
    put(over, 1, {1: ["new"], 2: ["not read"]})
    mine = replace(table_now(over), cells=IntervalSet.of(hours(1)), under=(table_now(under),))

    for cells in (None, IntervalSet.of(hours(0, 1, 2, 3))):
        rows = rows_of(spark, hourly(), mine, cells).selectExpr("hour(at)", "shop").collect()
        assert sorted(map(tuple, rows)) == [(0, "old"), (1, "new"), (2, "old"), (3, "old")]


@pytest.mark.spark
def test_a_batch_that_is_given_up_leaves_no_file_of_a_day(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "hours"), hourly()
    rows = batch(spark, model, path, hours(*range(24)), *sold("a", *range(24)))
    commit_cells(rows, model, hours(*range(24)), ticket(path, 1))
    before = lying(path)
    again = batch(spark, model, path, hours(3), *sold("b", 3))
    with written_cells(again, model, hours(3), path):
        assert lying(path) > before
    assert lying(path) == before
    found = rows_of(spark, model, table_now(path), IntervalSet.of(hours(3))).collect()
    assert [row["shop"] for row in found] == ["a"]


def _row(n: int) -> str:
    """A row of hour n with a value of every type, some at the edge of what it can hold."""
    values = (
        f"TIMESTAMP'2024-01-01 {n:02d}:15:00.123456Z'",
        f"'s{n}é'" if n % 5 else "NULL",
        f"{n - 3}",
        f"{n}.25",
        f"12345678901234567890123456789.{n:09d}",
        f"TIMESTAMP_NTZ'1889-01-0{1 + n % 9} 03:04:05.000006'",
        "DATE'0001-01-01'" if n % 2 else "DATE'9999-12-31'",
        f"X'{n:02X}00'",
        f"{n % 2 == 0}",
        ("double('NaN')", "-0.0D", "1e308")[n % 3],
        f"array('a', NULL, 's{n}')",
        f"map('k', {n}L, 'n', NULL)",
        f"named_struct('A', {n}, 'b', TIMESTAMP'9998-12-31 23:59:59.999999Z')",
    )
    return f"({', '.join(values)})"


def _older_table(path: str, model: Model) -> None:
    """Make a table in which each hour is a partition, as releases before blocks did."""
    create_table(no_spark, model, f"{path}-like", app_id=APP, token=0)
    DeltaTable.create(path, DeltaTable(f"{path}-like").schema(), partition_by=["_cell"])
