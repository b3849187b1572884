"""Find the consumers that a change of published history touches, with the columns and cells that they read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.consumer import Consumer, Reading

ROWS = ""
"""The row set, in the place of a column: rows came or went, so every column differs."""


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """The part of a model's published history that a plan changes.

    Attributes:
        cells: those that changed; before the publication, those that may change.
        columns: by column, or `ROWS`, the cells in which it differs; None while that is not known.
    """

    cells: IntervalSet
    columns: Mapping[str, IntervalSet] | None = None


@dataclass(frozen=True, slots=True)
class Touched:
    """A consumer's share of what changed in one model.

    Attributes:
        consumer: its name.
        kind: what sort of reader it is.
        owner: who answers for it.
        model: what it reads.
        columns: which of the columns that it reads differ; empty for all that it reads.
        cells: which of the cells that it reads.
    """

    consumer: str
    kind: str
    owner: str
    model: str
    columns: tuple[str, ...]
    cells: IntervalSet


def touched(
    consumers: Iterable[Consumer],
    changed: Mapping[str, ChangedModel],
    cadences: Mapping[str, Cadence],
    at: datetime,
) -> tuple[Touched, ...]:
    """Find who reads something that changed; consumers of other columns, or of later days only, do not.

    Args:
        consumers: those that are declared.
        changed: by model.
        cadences: by declared model; of any other model a consumer counts as reading all of history.
        at: the instant from which consumers count days back.
    """
    return tuple(
        reader
        for consumer in consumers
        for reading in consumer.reads
        if reading.model in changed
        for reader in _touched(consumer, reading, changed[reading.model], cadences, at)
    )


def _touched(
    consumer: Consumer,
    reading: Reading,
    changed: ChangedModel,
    cadences: Mapping[str, Cadence],
    at: datetime,
) -> Iterator[Touched]:
    since = reads_since(reading, cadences.get(reading.model), at)
    columns, cells = _columns(reading, changed), changed.cells
    if changed.columns is not None:
        differing = columns or tuple(changed.columns)
        cells &= IntervalSet.union_all(
            changed.columns.get(name, _NONE) for name in (*differing, ROWS)
        )
    if since is not None and cells:
        cells = cells.within(epoch_of(since), max(epoch_of(since), cells.boundaries[-1]))
    if cells:
        kind = str(consumer.kind)
        yield Touched(consumer.name, kind, consumer.owner, reading.model, columns, cells)


def _columns(reading: Reading, changed: ChangedModel) -> tuple[str, ...]:
    """Name the columns that a consumer reads and that differ; if rows came or went, all that it reads."""
    read = tuple(reading.columns)
    if changed.columns is None or changed.columns.get(ROWS):
        return read
    differing = tuple(name for name in changed.columns if name != ROWS and changed.columns[name])
    return tuple(name for name in differing if not read or name in read) or read


def reads_since(reading: Reading, cadence: Cadence | None, at: datetime) -> datetime | None:
    """Give the start of the first cell that a consumer reads; None if it reads all of history."""
    if reading.days_back is None or cadence is None or cadence.unit is Unit.WHOLE:
        return None
    ends = at if cadence.end is None else min(at, cadence.end)
    return cadence.floor(ends - timedelta(days=reading.days_back))


_NONE = IntervalSet.empty()
