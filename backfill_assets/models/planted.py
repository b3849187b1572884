"""Defects that are planted in a copy of published cells, to see which audits notice them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.models.column import canonical_type, is_numeric
from backfill_assets.models.kind import IncrementalByUniqueKey, SoftDelete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.column import Column
    from backfill_assets.models.model import Model


class Defect(StrEnum):
    """What goes wrong in one cell; a shift of the time that names it concerns every cell."""

    DUPLICATED = "rows twice"
    FANNED_OUT = "a join fans out"
    DROPPED = "all rows dropped"
    HALVED = "half of the rows dropped"
    STOPPED = "the second half of a cell dropped"
    SHIFTED = "shifted by two hours"
    DOUBLED = "values doubled"
    NEGATED = "sign flipped"
    EMPTIED = "a burst of NULLs"
    MOVED = "a shift by two hours"


OF_ROWS = (
    Defect.DUPLICATED, Defect.FANNED_OUT, Defect.DROPPED, Defect.HALVED, Defect.STOPPED, Defect.SHIFTED,
)  # fmt: skip
"""Defects of whole rows; the others are of one column."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One defect.

    Attributes:
        defect: what is wrong.
        column: of a defect of values: the column; else empty.
    """

    defect: Defect
    column: str = ""

    @property
    def words(self) -> str:
        """Name it."""
        return f"{self.defect.value} of {self.column}" if self.column else self.defect.value


def defects_of(model: Model) -> Iterator[Planted]:
    """List the defects that can be planted in a model: of its rows, and of each column but the key's."""
    timed = {Defect.SHIFTED: model.time_column is not None, Defect.STOPPED: _knows_instants(model)}
    for defect in OF_ROWS:
        if timed.get(defect, True):
            yield Planted(defect)
    for column in model.schema:
        if column.name in model.key:
            continue
        if is_numeric(column.dtype):
            yield Planted(Defect.DOUBLED, column.name)
            yield Planted(Defect.NEGATED, column.name)
        yield Planted(Defect.EMPTIED, column.name)
        if column.name != model.time_column and _is_time(column):
            yield Planted(Defect.MOVED, column.name)


def _knows_instants(model: Model) -> bool:
    """Whether a row's time column says where in its cell it lies."""
    types = {column.name: canonical_type(column.dtype) for column in model.schema}
    return types.get(model.time_column or "") == "timestamp"


def _is_time(column: Column) -> bool:
    return canonical_type(column.dtype) in {"date", "timestamp", "timestamp_ntz"}


@dataclass(frozen=True, slots=True)
class Noticed:
    """Which audits notice a planted defect.

    Attributes:
        planted: the defect.
        stopped_by: blocking audits that fail with it in a cell in which they did not before.
        warned_by: the same of warnings.
        failed_before: audits that fail in as many cells without it, and so can't tell.
    """

    planted: Planted
    stopped_by: tuple[str, ...] = ()
    warned_by: tuple[str, ...] = ()
    failed_before: tuple[str, ...] = ()


_OF_LOST_ROWS = (Defect.DROPPED, Defect.HALVED, Defect.STOPPED)
"""Of a model with soft deletes a lost row stays, and is marked."""

_ADVICE = {
    Defect.DUPLICATED: "a unique key that is the grain",
    Defect.FANNED_OUT: "a unique key that is the grain",
    Defect.DROPPED: 'metric_within("*", 0.05), or trend_within("*") for new cells',
    Defect.HALVED: 'metric_within("*", 0.05), or trend_within("*") for new cells',
    Defect.STOPPED: 'fresh(column, "6h"), or metric_within("*", 0.05)',
    Defect.SHIFTED: 'reconciles(...) with an upstream, or metric_within("*", 0.05)',
    Defect.DOUBLED: 'metric_within("{0}", 0.05), reconciles("{0}", ...) or trend_within("{0}")',
    Defect.NEGATED: 'accepted_range("{0}", 0, None)',
    Defect.EMPTIED: 'not_null("{0}", allowed=...)',
    Defect.MOVED: "row_rule(...) that holds {0} against another column",
}


def advice(planted: Planted, model: Model) -> str:
    """Name an audit of a model that would notice a defect."""
    policy = model.delete_policy
    if planted.defect in _OF_LOST_ROWS and isinstance(policy, SoftDelete):
        return f'row_rule("few_deleted", "NOT {policy.column}", allowed=...)'
    if planted.defect is Defect.FANNED_OUT and _leaves_one_row(model):
        return "reconciles(...) with an upstream: latest_by leaves one row of a key"
    return _ADVICE[planted.defect].format(planted.column)


def _leaves_one_row(model: Model) -> bool:
    return isinstance(model.kind, IncrementalByUniqueKey) and model.kind.latest_by is not None
