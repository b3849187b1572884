"""Receipts that are merged by their key, and what a day takes in: what some histories have beside the rest.

`receipts` holds each sale as a row, and does with those that are deleted what it declares; a sale whose day is
corrected moves to another cell. `takings` adds up those that are not marked as gone, of a day and some before it.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey, SoftDelete
from backfill_assets.models.model import Model
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.histories.daily import trailing
from backfill_assets_tests.histories.sales import SALES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from backfill_assets_tests.histories.declared import Declared
    from backfill_assets_tests.histories.oracle import Cells

RECEIPTS, TAKINGS = "shop.receipts", "shop.takings"
SOFT = "soft"
DELETES = ("absent", "none", SOFT)
"""What may become of a receipt whose sale is deleted: it goes, stays, or is marked."""


def receipts_model(name: str, declared: Declared) -> Model:
    """Hold each sale as a row."""
    sql = (
        f"SELECT ds, id, CAST(amount * {declared.factor} AS BIGINT) AS total, FALSE AS gone"
        f" FROM {SALES} WHERE ds >= :start_ds AND ds < :end_ds"
    )
    return _model(
        name,
        declared,
        sql,
        (*_columns("id", "total"), Column("gone", "boolean")),
        kind=IncrementalByUniqueKey("ds", rows_move=True),
        deletes=SoftDelete("gone") if declared.deletes == SOFT else declared.deletes,
        unique_key=["id"],
        upstreams=[SALES],
    )


def takings_model(name: str, declared: Declared) -> Model:
    """Add up the receipts of each day, and of some days before it."""
    back = declared.lookback
    total = f"CAST(SUM(earlier.total) + {declared.plus} AS BIGINT)"
    sql = trailing(total, RECEIPTS, "total", back, only="NOT gone")
    reads = [Upstream(RECEIPTS, lookback=back)]
    return _model(name, declared, sql, _columns("total"), unique_key=["ds"], upstreams=reads)


def lost_keys(before: Cells, after: Cells) -> Iterator[int]:
    """Give the receipts that are not published any more, of cells that are."""
    left = {row["id"] for rows in after.values() for row in rows}
    for at in before.keys() & after.keys():
        yield from (row["id"] for row in before[at] if row["id"] not in left)


def cells_left_by(before: Cells, after: Cells, into: Collection[datetime]) -> set[datetime]:
    """Give the cells that differ only in that receipts have moved from them into others."""
    moved = {row["id"] for at in into for row in after.get(at, ())}
    return {
        at
        for at in before.keys() & after.keys()
        if after[at] == tuple(row for row in before[at] if row["id"] not in moved)
    }


def doubled_keys(cells: Mapping[Any, Any]) -> list[int]:
    """Give the receipts that are published more than once."""
    keys = [row["id"] for rows in cells.values() for row in rows]
    return [key for key in set(keys) if keys.count(key) > 1]


def _columns(*numbers: str) -> tuple[Column, ...]:
    return (Column("ds", "date"), *(Column(one, "bigint") for one in numbers))


def _model(
    name: str,
    declared: Declared,
    sql: str,
    columns: tuple[Column, ...],
    **more: Any,  # noqa: ANN401
) -> Model:
    given: dict[str, Any] = {"kind": IncrementalByTimeRange("ds"), **more}
    return Model(
        name=name,
        query=SqlQuery(sql),
        columns=columns,
        cadence=Daily(start=declared.start, end=declared.end, cron=declared.cron),
        late_window=declared.late_window,
        batch_size=declared.batch_size,
        description=declared.note,
        grain="rows of a day",
        owner="team:shop",
        **given,
    )
