"""Profile a batch in one action: per cell its rows, checksums and failing rows of audits.

The action is a union of small aggregations over the cached batch: the main one by cell, one per
uniqueness (by its columns, which would otherwise multiply every other sum), and one per upstream
that a sum is reconciled with, unless its files alone tell that (`upstream_sums`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.intervals.instants import read, start_at
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.zones import zone_of
from backfill_assets.models.audit import (
    Complete,
    Counting,
    Fresh,
    KnownRows,
    NearNeighbours,
    NearPublished,
    NumberWithin,
    PythonAudit,
    Reconciles,
    References,
    RowRule,
    SqlAudit,
    Unique,
)
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.column import CELL_COLUMN, all_given, quoted
from backfill_assets.models.content import (
    CellProfile,
    Content,
    checksum,
    checksum_within,
    once_rounded,
)
from backfill_assets.warehouse.files.cells import (
    cell_number,
    number_expression,
)
from backfill_assets.warehouse.rows.checksum import (
    hash_within,
    joined,
    key_hash,
    sums,
    value_hash,
)
from backfill_assets.warehouse.rows.inputs import Input, read_whole
from backfill_assets.warehouse.rows.moves import rows_elsewhere
from backfill_assets.warehouse.rows.numbers import (
    PUBLISHED,
    Surroundings,
    number_name,
    number_sql,
    numbers_without_rows,
    published_numbers,
)
from backfill_assets.warehouse.rows.outside_rows import refuse_outside
from backfill_assets.warehouse.rows.own_audits import NUMBER, failing_by_query, lacking_entities
from backfill_assets.warehouse.rows.upstream_sums import (
    reconciled,
    sums_by_spark,
    sums_in_files,
    total_sql,
)
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError, explaining_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from backfill_assets.models.audit import Audit
    from backfill_assets.models.content import Checksum
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table

_Answers: TypeAlias = "defaultdict[str, dict[int | None, Sequence[str]]]"
"""Collected numbers: by part (main, or an audit's name) and cell number."""

_MAIN = ""
_KEY, _ROWS, _PLACE, _OWN = "_key of a row", "_rows of a value", "_place of a row", "_own value"
"""Columns beside the author's own; they have no name that one of these could have."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The batch that a profile and its samples describe.

    Attributes:
        model: whose rows are profiled.
        cells: of the batch.
        target: the table as it is now, for uniqueness against its other cells.
        inputs: by upstream name, for references and reconciliations.
        published: what people read of the model, for audits that compare with it; None where nothing
            of it is published.
    """

    model: Model
    cells: Sequence[Interval]
    target: Table
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])
    published: Table | None = None


def profile(rows: DataFrame, subject: Subject) -> tuple[CellProfile, ...]:
    """Profile a (cached) batch in one action.

    Args:
        rows: the rows that the batch's cells shall hold, with `_cell`.
        subject: the model, its cells and what the audits compare with.

    Returns:
        One profile per cell of the batch, in order, cells without rows included.

    Raises:
        DeclarationError: rows belong to other cells, or to none.
    """
    aggregates = _main_wanted(rows, subject.model)
    parts = [_main(rows, subject, aggregates)]
    parts += [part for audit in audits_of(subject.model) for part in _extra(rows, audit, subject)]
    answers: _Answers = defaultdict(dict)
    for name in reconciled(subject.model):
        parts += _upstream_sums(rows, name, subject, answers)
    parts += published_numbers(rows.sparkSession, subject)
    with explaining_errors(subject.target.path):
        collected = reduce(lambda frame, other: frame.unionByName(other), parts).collect()
    for row in collected:
        answers[row["part"]][row["cell"]] = row["answers"]
    counted = list(aggregates).index("rows")
    counts = {cell: int(answer[counted]) for cell, answer in answers[_MAIN].items()}
    refuse_outside(rows, subject.model, subject.cells, counts)
    around = Surroundings.of(subject, answers[_MAIN], list(aggregates), answers[PUBLISHED])
    return tuple(
        replace(
            _cell_profile(subject.model, cell, answers, list(aggregates)),
            numbers=around.numbers(cell_number(subject.model.cadence, cell)),
        )
        for cell in subject.cells
    )


def empty_profiles(model: Model, cells: Sequence[Interval]) -> tuple[CellProfile, ...]:
    """Give the profile of cells without a row, in order, without reading."""
    nothing: _Answers = defaultdict(dict)
    numbers = numbers_without_rows(model)
    return tuple(
        replace(_cell_profile(model, cell, nothing, ()), numbers=numbers) for cell in cells
    )


def _main_wanted(rows: DataFrame, model: Model) -> dict[str, str]:
    """Name each aggregate of the main part with its SQL; `_KEY` is the row's key hash."""
    key = quoted(_KEY)
    hashes = {"key": key}
    for column in model.schema:
        hashes[f"value.{column.name}"] = value_hash(column.name, rows.schema, key)
        if column.tolerance is not None:
            within = hash_within(column.name, rows.schema, key, column.tolerance)
            hashes[f"within.{column.name}"] = within
    aggregates = {"rows": "count(1)"}
    for name, hash_ in hashes.items():
        aggregates[f"{name}.high"], aggregates[f"{name}.low"] = sums(hash_)
    for audit in audits_of(model):
        aggregates |= _audit_wanted(audit, rows.schema)
    return aggregates


def _audit_wanted(  # noqa: PLR0911 - one case for each audit
    audit: Audit, schema: StructType
) -> dict[str, str]:
    """Name what an audit measures in the main part, each with its SQL."""
    match audit:
        case RowRule():
            return {f"failing.{audit.name}": f"count_if(NOT coalesce({audit.predicate}, TRUE))"}
        case References():
            return {f"failing.{audit.name}": f"count_if({_unreferenced(audit)})"}
        case Reconciles():
            return {f"sum.{audit.name}": total_sql(audit.column, schema)}
        case NumberWithin() | NearPublished() | NearNeighbours() | Fresh():
            return {number_name(audit): number_sql(audit.number, schema)}
        case KnownRows():
            return {
                f"known.{audit.name}.{place}": f"count_if({row.where} AND {row.holds})"
                for place, row in enumerate(audit.rows)
            }
        case _:
            return {}


def _main(rows: DataFrame, subject: Subject, aggregates: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    model = subject.model
    frame = rows.withColumn(_KEY, F.expr(key_hash(model.key, rows.schema)))
    for audit in audits_of(model):
        if isinstance(audit, References):
            frame = _with_reference(frame, audit, subject)
    answers = ", ".join(f"CAST({sql} AS STRING)" for sql in aggregates.values())
    return _part(_MAIN, frame, number_expression(model.cadence), f"array({answers})")


def _part(name: str, frame: DataFrame, cell: str, answers: str) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415

    grouped = frame.groupBy(F.expr(cell).alias("cell")).agg(F.expr(answers).alias("answers"))
    return grouped.select(F.lit(name).alias("part"), "cell", "answers")


def _with_reference(frame: DataFrame, audit: References, subject: Subject) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: PLC0415

    upstream = read_whole(frame.sparkSession, subject.inputs[audit.upstream])
    values = (
        upstream.select(F.col(quoted(audit.to_column)).alias(_value_of(audit)))
        .where(f"{quoted(_value_of(audit))} IS NOT NULL")
        .distinct()
    )
    if frame.schema[audit.column].dataType != upstream.schema[audit.to_column].dataType:
        # Several values of another type may equal one of the rows, which must be counted once.
        own = frame.select(F.col(quoted(audit.column)).alias(_OWN)).distinct()
        equal = F.expr(f"{quoted(_OWN)} = {quoted(_value_of(audit))}")
        values = own.join(values, equal, "left_semi").withColumnRenamed(_OWN, _value_of(audit))
    return frame.join(
        values, F.expr(f"{quoted(audit.column)} = {quoted(_value_of(audit))}"), "left"
    )


def _value_of(audit: References) -> str:
    return f"_value.{audit.name}"


def _unreferenced(audit: References) -> str:
    return f"{quoted(audit.column)} IS NOT NULL AND {quoted(_value_of(audit))} IS NULL"


def _extra(rows: DataFrame, audit: Audit, subject: Subject) -> list[DataFrame]:
    match audit:
        case Unique():
            parts = [_duplicates(rows, audit, subject)]
            elsewhere = rows_held_elsewhere(rows, audit, subject)
            if elsewhere is not None:
                parts.append(_clashing(elsewhere, audit, subject))
            return parts
        case Complete():
            return [
                _part(audit.name, lacking_entities(rows, audit, subject), quoted(NUMBER), _COUNTED)
            ]
        case SqlAudit() | PythonAudit():
            failed = failing_by_query(rows, audit, subject.model, subject.cells)
            return [_part(audit.name, failed, number_expression(subject.model.cadence), _COUNTED)]
        case _:
            return []


_COUNTED = "array(CAST(count(1) AS STRING))"


def _duplicates(rows: DataFrame, audit: Unique, subject: Subject) -> DataFrame:
    """Rows beyond the first of each value, counted in the first cell that holds it."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    repeated = (
        rows.where(all_given(audit.columns))
        .groupBy(*(quoted(name) for name in audit.columns))
        .agg(F.min(CELL_COLUMN).alias(CELL_COLUMN), F.count(F.lit(1)).alias(_ROWS))
        .where(f"{quoted(_ROWS)} > 1")
    )
    counted = f"array(CAST(sum({quoted(_ROWS)} - 1) AS STRING))"
    return _part(audit.name, repeated, number_expression(subject.model.cadence), counted)


def _clashing(elsewhere: DataFrame, audit: Unique, subject: Subject) -> DataFrame:
    """Rows of values that another cell holds, without those that `_duplicates` counts of them."""
    from pyspark.sql import Window, functions as F  # noqa: PLC0415

    same = Window.partitionBy(*(quoted(name) for name in audit.columns))
    counted_rows = elsewhere.select(
        CELL_COLUMN,
        F.count(F.lit(1)).over(same).alias(_ROWS),
        F.row_number().over(same.orderBy(CELL_COLUMN)).alias(_PLACE),
    )
    counted = f"sum(IF({quoted(_PLACE)} = 1, 2 - {quoted(_ROWS)}, 1))"
    return _part(
        f"elsewhere.{audit.name}",
        counted_rows,
        number_expression(subject.model.cadence),
        f"array(CAST({counted} AS STRING))",
    )


def rows_held_elsewhere(rows: DataFrame, audit: Unique, subject: Subject) -> DataFrame | None:
    """Give the rows of a batch whose value its table already holds in a cell outside the batch."""
    others = rows_elsewhere(
        rows.sparkSession, subject.model, subject.cells, subject.target, audit.columns
    )
    if others is None:
        return None
    return rows.join(others.drop(CELL_COLUMN), list(audit.columns), "left_semi")


def _upstream_sums(
    rows: DataFrame, name: str, subject: Subject, answers: _Answers
) -> list[DataFrame]:
    """Sum an upstream's columns by the model's own cells, in the order of the audits that ask for them.

    Sums that need no query are put into `answers`.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415

    columns = [audit.to_column for audit in reconciled(subject.model)[name]]
    arguments = subject.inputs[name], columns, sorted(subject.cells), subject.model.cadence
    try:
        answers[_sums_of(name)] = {**sums_in_files(*arguments)}
    except NeedsSparkError:
        summed = sums_by_spark(rows.sparkSession, *arguments)
        return [summed.select(F.lit(_sums_of(name)).alias("part"), "cell", "answers")]
    return []


def _sums_of(upstream: str) -> str:
    return f"sums.{upstream}"


def _cell_profile(
    model: Model, cell: Interval, answers: _Answers, names: Sequence[str]
) -> CellProfile:
    number = cell_number(model.cadence, cell)
    main = dict(zip(names, answers[_MAIN].get(number, ()), strict=False))
    rounded = once_rounded({column.name: column.dtype for column in model.schema}, model.key)

    def hashes(name: str) -> int:
        return joined(int(main.get(f"{name}.high", 0)), int(main.get(f"{name}.low", 0)))

    def total(name: str, *columns: str) -> Checksum:
        return checksum(hashes(name), exact=not rounded.isdisjoint(columns))

    return CellProfile(
        cell=cell,
        content=Content(
            rows=int(main.get("rows", 0)),
            key=total("key", *model.key),
            columns={
                column.name: total(f"value.{column.name}", column.name) for column in model.schema
            },
            within={
                column.name: checksum_within(hashes(f"within.{column.name}"), column.tolerance)
                for column in model.schema
                if column.tolerance is not None
            },
        ),
        failing={
            audit.name: _failing(audit, answers, number, main)
            if not isinstance(audit, KnownRows)
            else _unknown(audit, model, cell, main)
            for audit in audits_of(model)
            if isinstance(audit, Counting)
        },
        sums={
            audit.name: (main.get(f"sum.{audit.name}", "0"), upstream_sum)
            for upstream, audits in reconciled(model).items()
            for audit, upstream_sum in zip(
                audits, answers[_sums_of(upstream)].get(number) or ["0"] * len(audits), strict=True
            )
        },
    )


def _failing(audit: Audit, answers: _Answers, number: int, main: Mapping[str, str]) -> int:
    if isinstance(audit, Unique):
        return int(_first(answers, audit.name, number)) + int(
            _first(answers, f"elsewhere.{audit.name}", number)
        )
    if isinstance(audit, (Complete, SqlAudit, PythonAudit)):
        return int(_first(answers, audit.name, number))
    return int(main.get(f"failing.{audit.name}", 0))


def _unknown(audit: KnownRows, model: Model, cell: Interval, main: Mapping[str, str]) -> int:
    """Count the known rows of a cell that are not there, or have other values."""
    return sum(
        int(main.get(f"known.{audit.name}.{place}", 0)) == 0
        for place, row in enumerate(audit.rows)
        if not row.when or _cell_at(model, row.when) == cell
    )


def _cell_at(model: Model, when: str) -> Interval:
    zone = model.cadence.tz
    at = start_at(when, zone)
    times = {column.name: column.dtype for column in model.schema}
    if times.get(model.time_column or "") == "timestamp_ntz" and isinstance(read(when), datetime):
        at = at.replace(tzinfo=zone_of(zone)).astimezone(UTC)  # it was written as local clocks show
    start = model.cadence.floor(at)
    return Interval(start, model.cadence.next(start))


def _first(answers: _Answers, part: str, number: int) -> str:
    values = answers[part].get(number)
    return values[0] if values else "0"
