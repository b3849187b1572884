"""Small models and tables that the warehouse's tests are about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.commit import prepare_table, written_cells
from backfill_assets.warehouse.files.log_entry import set_cells
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.log.delta_log import actions_of
from backfill_assets.warehouse.log.ticket import Ticket
from backfill_assets.warehouse.rows.conform import RowStamp, contract, result_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.warehouse.files.cell_files import CellFile
    from backfill_assets.warehouse.log.ticket import FoundCommit

START = datetime(2024, 1, 1, tzinfo=UTC)
DAILY = Cadence(Unit.DAY, start=START)
STAMP = RowStamp("plan", "batch-1", "code-1", datetime(2024, 2, 1, tzinfo=UTC))

SALES_COLUMNS = (
    Column("ds", "date"),
    Column("shop", "string"),
    Column("amount", "decimal(18,2)"),
)
ORDER_COLUMNS = (
    Column("order_id", "int"),
    Column("ds", "date"),
    Column("amount", "decimal(18,2)"),
    Column("seen_at", "timestamp"),
    Column("gone", "boolean"),
)


def sales(**changes: Any) -> Model:  # noqa: ANN401
    """One row per day and shop, replaced cell by cell."""
    declared: dict[str, Any] = {
        "name": "commerce.sales",
        "query": SqlQuery("SELECT ds, shop, amount FROM commerce.raw_sales"),
        "kind": IncrementalByTimeRange(time_column="ds"),
        "cadence": DAILY,
        "upstreams": ["commerce.raw_sales"],
        "grain": "one row per day and shop",
        "unique_key": ["ds", "shop"],
        "columns": SALES_COLUMNS,
        "owner": "team:shop",
    }
    return Model(**{**declared, **changes})


def orders(**changes: Any) -> Model:  # noqa: ANN401
    """One row per order, merged by key."""
    declared: dict[str, Any] = {
        "name": "commerce.orders",
        "query": SqlQuery("SELECT * FROM commerce.raw_orders"),
        "kind": IncrementalByUniqueKey(time_column="ds"),
        "cadence": DAILY,
        "upstreams": ["commerce.raw_orders"],
        "grain": "one row per order",
        "unique_key": ["order_id"],
        "columns": ORDER_COLUMNS,
        "owner": "team:shop",
    }
    return Model(**{**declared, **changes})


def day(number: int, count: int = 1) -> Interval:
    """Days of January 2024, from the first."""
    start = START + timedelta(days=number - 1)
    return Interval(start, start + timedelta(days=count))


def days(*numbers: int) -> tuple[Interval, ...]:
    return tuple(day(number) for number in numbers)


def ticket(path: str, token: int, metadata: str | None = None) -> Ticket:
    return Ticket(path, "commerce__sales", token, metadata or f'{{"batch":{token}}}')


def frame(spark: SparkSession, columns: Sequence[Column], *rows: str) -> DataFrame:
    """Rows as SQL values, typed as declared."""
    names = ", ".join(f"`{column.name}`" for column in columns)
    cast = [f"CAST(`{column.name}` AS {column.dtype}) AS `{column.name}`" for column in columns]
    if not rows:
        return spark.createDataFrame([], ", ".join(f"`{c.name}` {c.dtype}" for c in columns))
    return spark.sql(f"VALUES {', '.join(rows)} AS t({names})").selectExpr(*cast)


def sale(number: int, shop: str, amount: float = 1) -> str:
    return f"(DATE'2024-01-{number:02d}', '{shop}', {amount})"


def order(
    order_id: int, number: int, amount: float = 1, *, seen: int = 0, gone: str = "NULL"
) -> str:
    seen_at = f"TIMESTAMP'2024-01-01 00:00:{seen:02d}+00:00'"
    return f"({order_id}, DATE'2024-01-{number:02d}', {amount}, {seen_at}, {gone})"


def batch(
    spark: SparkSession, model: Model, path: str, cells: Sequence[Interval], *rows: str
) -> DataFrame:
    """The rows that the cells shall hold, from what a query gave."""
    computed = contract(frame(spark, model.schema, *rows), model)
    return result_rows(computed, model, cells, table_now(path), STAMP)


def content(spark: SparkSession, path: str, *columns: str) -> list[tuple[Any, ...]]:
    """What a table holds, sorted."""
    rows = spark.read.format("delta").load(path).select(*columns).collect()
    return sorted(tuple(row) for row in rows)


def commit_cells(
    rows: DataFrame, model: Model, cells: Sequence[Interval], said: Ticket
) -> FoundCommit:
    """Write rows, and let cells consist of them, as a batch does."""
    prepare_table(lambda: rows.sparkSession, model, said)
    with written_cells(rows, model, cells, said.path) as written:
        texts = {cell_text(model.cadence, cell) for cell in cells}
        return written.commit(texts, written.files, said)


def entry(files: Mapping[str, Sequence[CellFile]], said: Ticket) -> FoundCommit:
    """Let cells that have files of their own consist of these."""
    return set_cells({*files}, [*chain.from_iterable(files.values())], lambda _: (), said)


def partitions_touched(path: str, delta_version: int) -> set[str]:
    """The cells whose files a commit has brought or taken away, by the log's own words."""
    actions = (
        action.get("add") or action.get("remove") for action in actions_of(path, delta_version)
    )
    return {action["partitionValues"]["_cell"] for action in actions if action}
