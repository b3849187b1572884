"""Whom a change of published history touches: consumers, with the columns and cells that they read of it."""

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
"""Stands for the row set where columns are named: rows came or went, so every column differs."""


@dataclass(frozen=True, slots=True)
class ChangedModel:
    """What of a model's published history is other than before.

    Attributes:
        cells: those that changed, or may change while nothing is published.
        columns: where each of them differs, and `ROWS`; None while that is not known.
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
    """Find who reads something that changed; a consumer of other columns, or of later days, is not touched.

    Args:
        consumers: those that are declared.
        changed: by model.
        cadences: by model; one that is declared no more is read whole.
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
        kind = str(getattr(consumer.kind, "value", consumer.kind))
        yield Touched(consumer.name, kind, consumer.owner, reading.model, columns, cells)


def _columns(reading: Reading, changed: ChangedModel) -> tuple[str, ...]:
    """Name the differing ones of the columns that a consumer reads; with other rows, all of those."""
    read = tuple(reading.columns)
    if changed.columns is None or changed.columns.get(ROWS):
        return read
    differing = tuple(name for name in changed.columns if name != ROWS and changed.columns[name])
    return tuple(name for name in differing if not read or name in read) or read


def reads_since(reading: Reading, cadence: Cadence | None, at: datetime) -> datetime | None:
    """Give where the cells begin that a consumer reads; None for all of history."""
    if reading.days_back is None or cadence is None or cadence.unit is Unit.WHOLE:
        return None
    ends = at if cadence.end is None else min(at, cadence.end)
    return cadence.floor(ends - timedelta(days=reading.days_back))


_NONE = IntervalSet.empty()
