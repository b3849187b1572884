"""Measure numbers of cells: those of a batch, of what the same cells publish, and of the cells around."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import (
    Complete,
    Fresh,
    NearNeighbours,
    NearPublished,
    NumberWithin,
)
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.column import quoted
from backfill_assets.models.number import Number, NumberFound, Of
from backfill_assets.warehouse.files.cells import cell_number, number_expression
from backfill_assets.warehouse.files.layers import rows_of
from backfill_assets.warehouse.rows.checksum import exact_sum

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from backfill_assets.models.audit import Audit, Numbering
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.rows.profile import Subject

PUBLISHED = "published numbers"
"""The part of a profile that holds what is published."""


def number_name(audit: Audit) -> str:
    """Name the aggregate that measures an audit's number."""
    return f"number.{audit.name}"


def number_sql(number: Number, schema: StructType) -> str:
    """Write Spark SQL for a number of a group of rows."""
    column = quoted(number.column)
    match number.of:
        case Of.ROWS:
            return "count(1)"
        case Of.TOTAL:
            return exact_sum(column, schema[number.column].dataType.simpleString())
        case Of.DISTINCT:
            return f"size(collect_set({column}))"
        case Of.PERCENTILE:
            return f"percentile({column}, {number.share!r})"
        case Of.NEWEST:
            return f"max(unix_micros({column}))"


def compares_with_published(model: Model) -> bool:
    """Whether an audit of a model needs what is published of it."""
    return any(
        _compared(audit) or (isinstance(audit, Complete) and not audit.entities)
        for audit in audits_of(model)
    )


def _compared(audit: Audit) -> bool:
    return isinstance(audit, (NearPublished, NearNeighbours))


def _numbering(model: Model) -> list[Numbering]:
    kinds = (NumberWithin, NearPublished, NearNeighbours, Fresh)
    return [audit for audit in audits_of(model) if isinstance(audit, kinds)]


def numbers_without_rows(model: Model) -> dict[str, NumberFound]:
    """Give the numbers of a cell without rows, by audit."""
    return {audit.name: NumberFound(audit.number.without_rows) for audit in _numbering(model)}


def published_numbers(spark: SparkSession, subject: Subject) -> list[DataFrame]:
    """Give the part of a profile that measures published cells: of the batch, and around it.

    A column without a published value gives none, so that one that is new is not compared.
    """
    audits = [audit for audit in _numbering(subject.model) if _compared(audit)]
    if not audits or subject.published is None or not subject.cells:
        return []
    from pyspark.sql import functions as F  # noqa: PLC0415 - a tenth of a second that light commands must not pay

    rows = rows_of(spark, subject.model, subject.published, _reach(subject, audits))
    expressions = ", ".join(_if_filled(audit.number, rows.schema) for audit in audits)
    number = number_expression(subject.model.cadence)
    grouped = rows.groupBy(F.expr(number).alias("cell")).agg(
        F.expr(f"array({expressions})").alias("answers")
    )
    return [grouped.select(F.lit(PUBLISHED).alias("part"), "cell", "answers")]


def _if_filled(number: Number, schema: StructType) -> str:
    measured = f"CAST({number_sql(number, schema)} AS STRING)"
    return (
        f"IF(count({quoted(number.column)}) > 0, {measured}, NULL)" if number.column else measured
    )


def _reach(subject: Subject, audits: Sequence[Audit]) -> IntervalSet:
    """Give the batch's cells, and as many on either side of each stretch of them as an audit looks at."""
    cadence = subject.model.cadence
    far = max(
        (audit.neighbours for audit in audits if isinstance(audit, NearNeighbours)), default=0
    )
    cells = IntervalSet.of(subject.cells)
    if not far or cadence.unit is Unit.WHOLE:
        return cells
    return IntervalSet.of(
        Interval(cadence.shift(span.start, -far), cadence.shift(span.end, far)) for span in cells
    )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The numbers of a batch's cells, of the published ones, and of those around.

    Attributes:
        audits: what measures them.
        own: by audit and cell number, of the batch's cells that hold rows.
        published: the same of published cells, for audits that compare.
        around: by audit that looks at neighbours, the numbers of the batch's cells and of those around, by cell number
            in ascending order. A published cell of the batch counts as the batch has it: not at all where that empties it.
    """

    audits: Sequence[Numbering]
    own: Mapping[str, Mapping[int, str | None]]
    published: Mapping[str, Mapping[int, str | None]]
    around: Mapping[str, Mapping[int, str]]

    @classmethod
    def of(
        cls,
        subject: Subject,
        main: Mapping[int | None, Sequence[str]],
        wanted: Sequence[str],
        published: Mapping[int | None, Sequence[str]],
    ) -> Surroundings:
        """Sort what a profile has collected.

        Args:
            subject: the batch.
            main: of the main part, answers by cell number.
            wanted: the names of these answers.
            published: of the published part, answers by cell number.
        """
        audits = _numbering(subject.model)
        places = {audit.name: wanted.index(number_name(audit)) for audit in audits}
        compared = [audit.name for audit in audits if _compared(audit)]
        own = {name: _by_cell(main, place) for name, place in places.items()}
        before = {name: _by_cell(published, place) for place, name in enumerate(compared)}
        cells = {cell_number(subject.model.cadence, cell) for cell in subject.cells}
        around = {
            audit.name: _around(own[audit.name], before[audit.name], cells)
            for audit in audits
            if isinstance(audit, NearNeighbours)
        }
        return cls(audits, own, before, around)

    def numbers(self, cell: int) -> dict[str, NumberFound]:
        """Give the numbers of one cell, by audit."""
        return {audit.name: self._found(audit, cell) for audit in self.audits}

    def _found(self, audit: Numbering, cell: int) -> NumberFound:
        own = self.own[audit.name].get(cell, audit.number.without_rows)
        if isinstance(audit, (NumberWithin, Fresh)):
            return NumberFound(own)
        if isinstance(audit, NearPublished):
            return NumberFound(own, self.published[audit.name].get(cell))
        around, far = self.around[audit.name], audit.neighbours
        numbers = list(around)
        at, after = bisect_left(numbers, cell), bisect_right(numbers, cell)
        near = (*numbers[max(0, at - far) : at], *numbers[after : after + far])
        return NumberFound(own, around=tuple(around[number] for number in near))


def _around(
    own: Mapping[int, str | None], published: Mapping[int, str | None], cells: Container[int]
) -> dict[int, str]:
    beyond = {number: text for number, text in published.items() if number not in cells}
    known = ((number, text) for number, text in {**beyond, **own}.items() if text is not None)
    return dict(sorted(known))


def _by_cell(answers: Mapping[int | None, Sequence[str]], place: int) -> dict[int, str | None]:
    return {cell: own[place] for cell, own in answers.items() if cell is not None}
