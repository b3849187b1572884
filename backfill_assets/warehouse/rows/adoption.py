"""Adopt a table that another system wrote as a model's history, without recomputing it.

Its rows are copied once, through the same write path as any batch: cut into cells, audited, and
committed into a table of ours. Registering the original table would be quicker, and wrong: it has no
`_cell` to replace and prune by, its log may be cleaned up under our pins, and its writer would go on
changing data that the state records as audited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Reconciles, References
from backfill_assets.models.column import quoted
from backfill_assets.warehouse.files.cells import cell_of_number, number_expression, time_predicate
from backfill_assets.warehouse.files.stored_columns import column_changes
from backfill_assets.warehouse.files.tables import MissingTableError, Table, snapshot_df
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.outside_rows import refuse_outside
from backfill_assets.warehouse.rows.profile import Subject, profile
from backfill_assets.warehouse.spark.spark_errors import explaining_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import CellProfile
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.stored_columns import ColumnChanges
    from backfill_assets.warehouse.rows.inputs import Input, RowsFrom


def _unfit_table(model: str, path: str, changes: ColumnChanges) -> RequestError:
    differences = "; ".join(
        f"{word} {', '.join(names)}"
        for word, names in (
            ("it lacks", changes.added),
            ("of another type are", changes.retyped),
        )
        if names
    )
    return RequestError(
        found=f"the table at {path} can't be adopted as '{model}': {differences}. Nothing was written",
        do="correct the declaration, or write a table that fits",
    )


@dataclass(frozen=True)
class ForeignProfile:
    """The content of a table that another system wrote, by a model's cells.

    Attributes:
        cells: those that hold at least one row.
        profiles: their content, and what the audits measure.
        audited: the model, with the audits that were made.
        left_out: audits that compare with an upstream, which each batch makes.
    """

    cells: IntervalSet
    profiles: tuple[CellProfile, ...]
    audited: Model
    left_out: tuple[str, ...]


def profile_table(spark: SparkSession, model: Model, table: Table) -> ForeignProfile:
    """Audit a table of any layout against a model: rows, checksums and audits by the model's cells.

    Args:
        spark: a session.
        model: the model whose history it becomes.
        table: the table at a pin.

    Raises:
        MissingTableError: there is no table.
        RequestError: declared columns are missing or of another type.
        DeclarationError: rows have no time, and so no cell.
    """
    rows = contract(foreign_rows(spark, model, table), model)
    number = number_expression(model.cadence)
    with explaining_errors(table.path):
        counted = rows.groupBy(F.expr(number).alias("cell")).count().collect()
    counts = {row["cell"]: row["count"] for row in counted}
    refuse_outside(rows, model, (), {None: counts[None]} if None in counts else {})
    cells = tuple(cell_of_number(model.cadence, cell) for cell in sorted(counts))
    audits = [each for each in model.audits if not isinstance(each, (References, Reconciles))]
    audited = replace(model, audits=audits)
    profiles = profile(rows, Subject(audited, cells, Table(table.path, ABSENT)))
    left_out = tuple(audit.name for audit in model.audits if audit not in audits)
    return ForeignProfile(IntervalSet.of(cells), profiles, audited, left_out)


def adopted_from(table: Table) -> RowsFrom:
    """Give a function by which batches copy a foreign table's rows: see `computed_batch`."""

    def rows(
        session: SparkSession,
        model: Model,
        interval: Interval,
        inputs: Mapping[str, Input],  # noqa: ARG001 - the signature of `RowsFrom`
    ) -> DataFrame:
        frame = foreign_rows(session, model, table)
        time = model.time_column
        if time is None:
            return frame
        dtype = frame.schema[time].dataType.simpleString()
        return frame.where(time_predicate(time, dtype, model.cadence, [interval]))

    return rows


def foreign_rows(spark: SparkSession, model: Model, table: Table) -> DataFrame:
    """Read a model's declared columns from a table of any layout.

    Raises:
        MissingTableError: there is no table.
        RequestError: declared columns are missing or of another type.
    """
    if not table.exists:
        raise MissingTableError(name=model.name, path=table.path)
    rows = snapshot_df(spark, table.path, table.delta_version)
    declared = {column.name: column.dtype for column in model.schema}
    changes = column_changes(declared, dict(rows.dtypes))
    if changes.added or changes.retyped:
        raise _unfit_table(model.name, table.path, changes)
    return rows.select(*map(quoted, declared))
