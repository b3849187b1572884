"""Log entries: compare-and-set, whole files only, and every version stays readable."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import given, settings, strategies as st
from pyarrow import parquet
from pyarrow.fs import LocalFileSystem

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.warehouse.files import cell_files, log_entry
from backfill_assets.warehouse.files.cell_files import (
    CellFile,
    UnseenFilesError,
    described,
    files_at,
    files_in,
)
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.file_statistics import statistics_of
from backfill_assets.warehouse.files.housekeeping import create_table, fence, restore
from backfill_assets.warehouse.files.log_entry import FilesGoneError
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.log.delta_log import actions_of, head, last_token
from backfill_assets.warehouse.log.ticket import CommitLostError, Ticket
from backfill_assets.warehouse.rows.conform import contract, result_rows
from backfill_assets.warehouse.spark.spark_errors import CommitConflictError, PinGoneError
from backfill_assets_tests.warehouse.shop import (
    STAMP,
    START,
    batch,
    commit_cells,
    days,
    entry,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from deltalake import CommitProperties
    from pyspark.sql import SparkSession

SHOPS = sales(columns=(Column("ds", "date"), Column("shop", "string"), Column("amount", "bigint")))
APP = "commerce__sales"
README = Path(__file__).parents[2] / "README.md"
FIRST, SECOND = "2024-01-01", "2024-01-02"


def no_spark() -> Any:  # noqa: ANN401
    pytest.fail("Spark was asked for")


def a_table(folder: Path) -> str:
    path = str(folder / "sales")
    create_table(no_spark, SHOPS, path, app_id=APP, token=0)
    return path


def a_file(path: str, cell: str, *shops: str) -> tuple[CellFile, ...]:
    """Write a file as Spark does, into a folder that no other has."""
    folder = f"b-{'-'.join(shops)}-{cell}"
    table = pa.table({"shop": [*shops], "amount": [*range(len(shops))]})
    parquet.write_to_dataset(
        table.append_column("_cell", pa.array([cell] * len(shops))),
        f"{path}/{folder}",
        partition_cols=["_cell"],
    )
    return files_in(path, folder)


def shops(path: str, at: int | None = None) -> dict[str, list[str]]:
    found = DeltaTable(path, version=at).to_pyarrow_table(columns=["_cell", "shop"])
    held: dict[str, list[str]] = {}
    for row in found.to_pylist():
        held.setdefault(str(row["_cell"]), []).append(row["shop"])
    return {cell: sorted(names) for cell, names in held.items()}


def test_a_cell_consists_of_exactly_the_files_of_its_last_entry(tmp_path: Path):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a"), SECOND: a_file(path, SECOND, "a")}, ticket(path, 1))
    done = entry({FIRST: a_file(path, FIRST, "b", "c"), SECOND: ()}, ticket(path, 2))
    assert done.delta_version == head(path) == 2
    assert shops(path) == {FIRST: ["b", "c"]}
    assert shops(path, 1) == {FIRST: ["a"], SECOND: ["a"]}


def test_an_entry_says_how_many_rows_a_file_has_and_what_lies_in_it(tmp_path: Path):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a", "z")}, ticket(path, 1))
    (added,) = (action["add"] for action in actions_of(path, 1) if "add" in action)
    said = json.loads(added["stats"])
    assert (added["dataChange"], added["partitionValues"]) == (True, {"_cell": FIRST})
    assert (said["numRecords"], said["nullCount"]) == (2, {"shop": 0, "amount": 0})
    assert said["minValues"] == {"shop": "a", "amount": 0}
    assert said["maxValues"] == {"shop": "z", "amount": 1}


def test_a_writer_whose_token_is_not_the_newest_publishes_nothing(tmp_path: Path):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 2))
    for token in (1, 2):
        with pytest.raises(CommitLostError, match="larger token"):
            entry({FIRST: a_file(path, FIRST, f"zombie{token}")}, ticket(path, token, "zombie"))
    assert (shops(path), head(path)) == ({FIRST: ["a"]}, 1)


def asleep(monkeypatch: pytest.MonkeyPatch, meanwhile: Any) -> None:  # noqa: ANN401
    """Let something happen once between the reading of a token and the entry."""
    real = log_entry.commit_properties

    def slept(given: Ticket, transaction: int) -> CommitProperties:
        monkeypatch.setattr(log_entry, "commit_properties", real)
        meanwhile()
        return real(given, transaction)

    monkeypatch.setattr(log_entry, "commit_properties", slept)


def test_a_writer_that_sleeps_after_it_has_read_its_token_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = a_table(tmp_path)
    file = a_file(path, FIRST, "zombie")
    asleep(monkeypatch, lambda: entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 5)))
    with pytest.raises(CommitLostError):
        entry({FIRST: file}, ticket(path, 4, "zombie"))
    assert (shops(path), last_token(path, APP)) == ({FIRST: ["a"]}, 5)


def test_a_fence_of_another_holder_is_not_taken_for_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = a_table(tmp_path)
    asleep(monkeypatch, lambda: fence(path, app_id=APP, token=5))
    with pytest.raises(CommitLostError):
        fence(path, app_id=APP, token=4)
    assert (head(path), last_token(path, APP)) == (1, 5)


def test_who_was_overtaken_before_there_was_a_table_publishes_nothing(tmp_path: Path):
    path = str(tmp_path / "sales")
    create_table(no_spark, SHOPS, path, app_id=APP, token=5)
    create_table(no_spark, SHOPS, path, app_id=APP, token=4)
    with pytest.raises(CommitLostError):
        entry({FIRST: a_file(path, FIRST, "zombie")}, ticket(path, 4))
    entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 5))
    assert (shops(path), head(path)) == ({FIRST: ["a"]}, 1)


def test_of_two_that_make_a_table_at_once_one_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, real = str(tmp_path / "sales"), DeltaTable.create

    def late(*given: Any, **named: Any) -> None:  # noqa: ANN401
        real(*given, **named)
        real(*given, **named)

    monkeypatch.setattr(DeltaTable, "create", late)
    create_table(no_spark, SHOPS, path, app_id=APP, token=1)
    assert head(path) == 0


def test_a_holder_takes_its_own_batch_back_and_commits_no_second_one(tmp_path: Path):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 1))
    entry({FIRST: a_file(path, FIRST, "b")}, ticket(path, 2))
    restore(path, 1, app_id=APP, token=2)
    assert shops(path) == {FIRST: ["a"]}
    with pytest.raises(CommitLostError):
        entry({FIRST: a_file(path, FIRST, "c")}, ticket(path, 2))
    entry({FIRST: a_file(path, FIRST, "d")}, ticket(path, 3))
    assert shops(path) == {FIRST: ["d"]}


@pytest.mark.parametrize("cell", [None, 3_000_000, -800_000], ids=["no cell", "10183", "before 1"])
def test_rows_of_a_stranger_in_a_cell_that_no_cell_is_are_taken_back(
    tmp_path: Path, cell: int | None
):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 1))
    rows = pa.table({"shop": ["theirs"], "_cell": pa.array([cell], pa.date32())})
    write_deltalake(path, rows, mode="append", schema_mode="merge")
    entry({SECOND: a_file(path, SECOND, "b")}, ticket(path, 2))
    assert len(files_at(path, 3)) == 3
    restore(path, 1, app_id=APP, token=3)
    assert shops(path) == {FIRST: ["a"]}


def test_a_table_with_checkpoints_goes_on(tmp_path: Path):
    path = a_table(tmp_path)
    for token in range(1, 26):
        entry({FIRST: a_file(path, FIRST, f"s{token}")}, ticket(path, token))
    assert json.loads((tmp_path / "sales/_delta_log/_last_checkpoint").read_text())["version"] >= 10
    assert [shops(path, at)[FIRST] for at in (1, 11, 25)] == [["s1"], ["s11"], ["s25"]]
    restore(path, 7, app_id=APP, token=26)
    assert (shops(path), last_token(path, APP)) == ({FIRST: ["s7"]}, 26)


_VALUES = st.one_of(st.none(), st.integers(-3, 3))
_TEXTS = st.one_of(
    st.none(),
    st.text(max_size=40),
    st.sampled_from(["a", "z" * 33, "ä", "\x00", "a\u2028b", "\x85"]),
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.tuples(_VALUES, _TEXTS), min_size=1, max_size=4), min_size=1, max_size=4),
    _VALUES,
    _TEXTS,
)
def test_what_an_entry_says_of_its_files_hides_no_row(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[int | None, str | None]]],
    number: int | None,
    text: str | None,
):
    path = a_table(tmp_path_factory.mktemp("table"))
    written: list[CellFile] = []
    for at, rows in enumerate(files):
        columns = {
            "shop": pa.array([row[1] for row in rows], pa.string()),
            "amount": pa.array([row[0] for row in rows], pa.int64()),
            "_cell": pa.array([FIRST] * len(rows)),
        }
        folder = f"b-{at}"
        parquet.write_to_dataset(pa.table(columns), f"{path}/{folder}", partition_cols=["_cell"])
        written += files_in(path, folder)
    assert entry({FIRST: written}, ticket(path, 1)).delta_version == head(path)
    every = [row for rows in files for row in rows]
    for keep, kept in (
        (
            pl.col("amount").eq_missing(pl.lit(number, pl.Int64)),
            [row for row in every if row[0] == number],
        ),
        (
            pl.col("shop").eq_missing(pl.lit(text, pl.String)),
            [row for row in every if row[1] == text],
        ),
    ):
        found = pl.scan_delta(path).filter(keep).select("amount", "shop").collect().rows()
        assert sorted(found, key=repr) == sorted(kept, key=repr)


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
NO_BOUNDS = (None, None)


@pytest.mark.parametrize(
    ("dtype", "values", "bounds"),
    [
        (pa.int64(), [3, None, 1, 2], (1, 3)),
        (pa.date32(), [NOON.date(), None], (FIRST, FIRST)),
        (pa.string(), ["b", "z" * 32, "a"], ("a", "z" * 32)),
        (pa.string(), ["b", "z" * 33, "a"], NO_BOUNDS),
        (pa.string(), ["a", "b", "z" * 5000, "c"], NO_BOUNDS),  # no statistics of the second group
        (
            pa.timestamp("us", "UTC"),
            [NOON, NOON.replace(microsecond=1_000)],
            ("2024-01-01T12:00:00.000Z", "2024-01-01T12:00:00.001Z"),
        ),
        (pa.timestamp("us", "UTC"), [NOON, NOON.replace(microsecond=1)], NO_BOUNDS),
        (pa.timestamp("us"), [NOON.replace(tzinfo=None)], NO_BOUNDS),
        (pa.float64(), [1.0, float("nan"), 2.0], NO_BOUNDS),
        (pa.bool_(), [True, False], NO_BOUNDS),
        (pa.decimal128(9, 2), [Decimal("1.50")], NO_BOUNDS),
    ],
)
def test_an_entry_has_bounds_only_where_the_log_writes_all_values_exactly(
    tmp_path: Path, dtype: pa.DataType, values: list[Any], bounds: tuple[Any, Any]
):
    rows = pa.table({"v": pa.array(values, dtype)})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=2)

    _, said = statistics_of(LocalFileSystem(), str(tmp_path / "rows.parquet"))

    assert (said["minValues"].get("v"), said["maxValues"].get("v")) == bounds
    assert said["numRecords"] == len(values)


def test_a_condition_in_duckdb_and_polars_finds_values_of_which_the_log_has_no_bounds(
    tmp_path: Path,
):
    path = str(tmp_path / "sales")
    create_table(no_spark, sales(), path, app_id=APP, token=0)
    columns = {"shop": ["s" * 33], "amount": [Decimal("1.50")], "_cell": [FIRST]}
    parquet.write_to_dataset(pa.table(columns), f"{path}/b-0", partition_cols=["_cell"])
    entry({FIRST: files_in(path, "b-0")}, ticket(path, 1))
    keep = f"amount > 1 AND shop = '{'s' * 33}'"

    found = (
        _in_duckdb(path, 1).filter(keep).project("shop").fetchall(),
        pl.scan_delta(path, version=1).sql(f"SELECT shop FROM self WHERE {keep}").collect().rows(),  # noqa: S608
    )

    assert found == ([("s" * 33,)],) * 2


def test_an_entry_that_a_strangers_commit_came_before_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = a_table(tmp_path)
    file = a_file(path, FIRST, "ours")
    asleep(monkeypatch, lambda: entry({}, Ticket(path, "theirs", 1, "theirs")))
    with pytest.raises(CommitConflictError):
        entry({FIRST: file}, ticket(path, 1))
    assert (shops(path), head(path)) == ({}, 1)


def test_files_that_are_gone_or_cut_short_are_never_named(tmp_path: Path):
    path = a_table(tmp_path)
    (whole,) = a_file(path, FIRST, "a")
    (cut,) = a_file(path, SECOND, "b")
    (tmp_path / "sales" / cut.name).write_bytes(b"PAR1")
    for wanted in ({SECOND: [cut]}, {FIRST: [whole], SECOND: [cut]}):
        with pytest.raises(FilesGoneError, match="Nothing was committed"):
            entry(wanted, ticket(path, 1))
    assert head(path) == 0


def test_an_entry_counts_though_what_follows_on_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = a_table(tmp_path)
    file, real = a_file(path, FIRST, "a"), DeltaTable.create_write_transaction

    def failing(*given: Any, **named: Any) -> None:  # noqa: ANN401
        real(*given, **named)
        message = "the checkpoint could not be written"
        raise DeltaError(message)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", failing)
    assert entry({FIRST: file}, ticket(path, 1)).delta_version == 1
    assert shops(path) == {FIRST: ["a"]}


def test_a_way_back_to_files_that_are_gone_is_refused(tmp_path: Path):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 1))
    entry({FIRST: a_file(path, FIRST, "b")}, ticket(path, 2))
    (old,) = files_at(path, 1)
    (tmp_path / "sales" / old.name).unlink()
    with pytest.raises(PinGoneError):
        restore(path, 1, app_id=APP, token=3)
    assert shops(path) == {FIRST: ["b"]}


CELLS = [f"2024-01-0{number}" for number in range(1, 5)]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(CELLS), st.integers(0, 2), min_size=1), max_size=12)
)
def test_every_version_of_a_table_reads_as_it_was_published(
    tmp_path_factory: pytest.TempPathFactory, entries: list[dict[str, int]]
):
    path = a_table(tmp_path_factory.mktemp("table"))
    worlds: list[dict[str, list[str]]] = [{}]
    for token, cells in enumerate(entries, start=1):
        named = {
            cell: [
                file for number in range(count) for file in a_file(path, cell, f"s{token}-{number}")
            ]
            for cell, count in cells.items()
        }
        entry(named, ticket(path, token))
        new = {cell: [f"s{token}-{n}" for n in range(count)] for cell, count in cells.items()}
        worlds.append({cell: held for cell, held in (worlds[-1] | new).items() if held})
    assert [shops(path, at) for at in range(head(path) + 1)] == worlds
    if len(worlds) > 2:
        restore(path, 1, app_id=APP, token=len(worlds))
        assert shops(path) == worlds[1]


def test_files_of_an_older_version_are_described_as_they_were(tmp_path: Path):
    path = a_table(tmp_path)
    files = a_file(path, FIRST, "a")
    entry({FIRST: files}, ticket(path, 1))
    assert described(path, files_at(path, 1)) == files


@pytest.mark.spark
def test_every_reader_reads_every_version(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "sales"), sales(audit_columns=True)
    rows = batch(spark, model, path, days(1, 2), sale(1, "a"), sale(2, "a"))
    commit_cells(rows, model, days(1, 2), ticket(path, 1))
    rows = batch(spark, model, path, days(2), sale(2, "b"), sale(2, "c"))
    commit_cells(rows, model, days(2), ticket(path, 2))
    commit_cells(batch(spark, model, path, days(1)), model, days(1), ticket(path, 3))
    restore(path, 1, app_id=APP, token=4)
    worlds = [[], ["a", "a"], ["a", "b", "c"], ["b", "c"], ["a", "a"]]
    readers = (_spark(spark), _polars, _duckdb, _delta_rs)
    for read in readers:
        assert [sorted(read(path, at)) for at in range(head(path) + 1)] == worlds
    told = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0]
    said = '{"@":"Restored","to":1}'
    assert told["userMetadata"] == DeltaTable(path).history(1)[0]["userMetadata"] == said


def _spark(spark: SparkSession) -> Any:  # noqa: ANN401
    def read(path: str, at: int) -> list[str]:
        frame = spark.read.format("delta").option("versionAsOf", at).load(path)
        assert "_inserted_at" not in frame.columns or frame.where("_inserted_at IS NULL").isEmpty()
        return [row[0] for row in frame.select("shop").collect()]

    return read


def _polars(path: str, at: int) -> list[str]:
    return pl.scan_delta(path, version=at).select("shop").collect()["shop"].to_list()


def _duckdb(path: str, at: int) -> list[str]:
    return [row[0] for row in _in_duckdb(path, at).project("shop").fetchall()]


def _in_duckdb(path: str, at: int) -> duckdb.DuckDBPyRelation:
    """Read a table with DuckDB as the README does."""
    (line,) = re.findall(r"rows = (.+?) +# DuckDB", README.read_text(encoding="utf-8"))
    rows = eval(line, {"DeltaTable": DeltaTable, "path": path, "version": at})  # noqa: S307 - the README's own
    return duckdb.from_arrow(rows)


def _delta_rs(path: str, at: int) -> list[str]:
    return [name for held in shops(path, at).values() for name in held]


def test_a_commit_of_a_stranger_that_changes_no_row_is_taken_back_too(tmp_path: Path):
    path = a_table(tmp_path)
    entry({FIRST: a_file(path, FIRST, "a")}, ticket(path, 1))
    theirs = DeltaTable(path)
    theirs.alter.set_table_properties({"delta.checkpointInterval": "99"})
    assert restore(path, 1, app_id=APP, token=2).delta_version == 3
    assert DeltaTable(path).metadata().configuration["delta.checkpointInterval"] == "10"
    assert (shops(path), last_token(path, APP)) == ({FIRST: ["a"]}, 2)


@pytest.mark.spark
def test_rows_that_a_stranger_marked_as_deleted_come_back(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "sales"), sales()
    rows = batch(spark, model, path, days(1), sale(1, "a"), sale(1, "b"))
    commit_cells(rows, model, days(1), ticket(path, 1))
    vectors = "SET TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    spark.sql(f"ALTER TABLE delta.`{path}` {vectors}")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE shop = 'a'")  # noqa: S608 - a test's own
    assert any("deletionVector" in action.get("add", {}) for action in actions_of(path, head(path)))
    restore(path, 1, app_id=APP, token=2)
    assert sorted(_spark(spark)(path, head(path))) == ["a", "b"]
    commit_cells(batch(spark, model, path, days(1), sale(1, "c")), model, days(1), ticket(path, 3))
    assert _spark(spark)(path, head(path)) == ["c"]


@pytest.mark.spark
def test_a_table_of_the_release_before_goes_on(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "sales"), sales(audit_columns=True)
    old = {"txnAppId": APP, "replaceWhere": "_cell IN (DATE'2024-01-01', DATE'2024-01-02')"}
    for token, shop in ((1, "a"), (2, "b")):
        rows = batch(spark, model, path, days(1, 2), sale(1, shop), sale(2, shop))
        writer = rows.write.format("delta").partitionBy("_cell").mode("overwrite")
        writer.options(**old, txnVersion=4 * token + 3, userMetadata=f"batch {token}").save(path)
    rows = batch(spark, model, path, days(2), sale(2, "c"))
    commit_cells(rows, model, days(2), ticket(path, 3))
    assert _spark(spark)(path, head(path)) == ["b", "c"]
    assert (head(path), last_token(path, APP)) == (2, 3)
    restore(path, 0, app_id=APP, token=4)
    for read in (_spark(spark), _polars, _duckdb, _delta_rs):
        assert [sorted(read(path, at)) for at in (0, 1, 2, 3)] == [
            ["a", "a"], ["b", "b"], ["b", "c"], ["a", "a"],
        ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_cells_of_hours_are_written_named_again_and_read_whatever_the_zone_of_a_session(
    spark: SparkSession, tmp_path: Path, zone: str
):
    path, zoned = str(tmp_path / "hours"), spark.newSession()
    zoned.conf.set("spark.sql.session.timeZone", zone)
    model = sales(
        kind=IncrementalByTimeRange(time_column="at"),
        cadence=Cadence(Unit.HOUR, start=START),
        unique_key=["at"],
        columns=(Column("at", "timestamp"), Column("shop", "string")),
    )
    hours = [Interval(START + timedelta(hours=n), START + timedelta(hours=n + 1)) for n in range(3)]

    def sold(*at: int, shop: str) -> list[str]:
        return [f"(TIMESTAMP'2024-01-01 {hour:02d}:30:00+00:00', '{shop}')" for hour in at]

    rows = batch(zoned, model, path, hours, *sold(0, 2, shop="a"))
    commit_cells(rows, model, hours, ticket(path, 1))
    commit_cells(
        batch(zoned, model, path, hours[2:], *sold(2, shop="b")), model, hours[2:], ticket(path, 2)
    )
    texts = [cell_text(model.cadence, hour) for hour in hours]
    assert [len(files_at(path, head(path), [text])) for text in texts] == [1, 0, 1]
    restore(path, 1, app_id=APP, token=3)
    worlds = [[], ["a", "a"], ["a", "b"], ["a", "a"]]
    for read in (_spark(spark), _polars, _duckdb):
        assert [sorted(read(path, at)) for at in range(head(path) + 1)] == worlds


@pytest.mark.spark
def test_nested_fields_are_spelled_as_declared_for_every_reader(
    spark: SparkSession, tmp_path: Path
):
    path = str(tmp_path / "sales")
    columns = (Column("ds", "date"), Column("shop", "struct<Name:string,size:int>"))
    model = sales(columns=columns, unique_key=["ds"])
    given = spark.sql("SELECT DATE'2024-01-01' AS ds, named_struct('name', 'a', 'SIZE', 1) AS shop")
    rows = result_rows(contract(given, model), model, days(1), table_now(path), STAMP)
    commit_cells(rows, model, days(1), ticket(path, 1))
    assert pl.read_delta(path)["shop"].to_list() == [{"Name": "a", "size": 1}]


@pytest.mark.spark
def test_files_that_are_not_seen_from_here_are_not_published_as_no_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, model = str(tmp_path / "sales"), sales()
    rows = batch(spark, model, path, days(1), sale(1, "a"))
    commit_cells(rows, model, days(1), ticket(path, 1))
    monkeypatch.setattr(cell_files, "files_in", lambda *_: ())
    with pytest.raises(UnseenFilesError, match="written 1 row for"):
        commit_cells(
            batch(spark, model, path, days(1), sale(1, "b")), model, days(1), ticket(path, 2)
        )
    assert _spark(spark)(path, head(path)) == ["a"]
