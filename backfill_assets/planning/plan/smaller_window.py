"""Propose a smaller window if a plan goes further back than any declared consumer reads."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import local_day
from backfill_assets.models.cells import cells_read
from backfill_assets.planning.plan.plan import Change, Why

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import CellWork


def furthest_read(graph: Graph, now: datetime) -> dict[str, str]:
    """Give per model the earliest local date that a declared consumer reads.

    Days are counted back from now, or from the end of a history that has ended. A consumer of all of
    history reads from its start. A model without a consumer has none.
    """
    days: dict[str, str] = {}
    for consumer in graph.consumers.values():
        for reading in consumer.reads:
            cadence = graph.models[reading.model].cadence
            if cadence.unit is Unit.WHOLE or cadence.start is None:
                continue
            ends = now if cadence.end is None else min(now, cadence.end)
            back = timedelta(days=reading.days_back or 0)
            first = cadence.start if reading.days_back is None else max(cadence.start, ends - back)
            day = _date(first, cadence.tz)
            days[reading.model] = min(day, days.get(reading.model, day))
    return days


def read_from(graph: Graph, furthest_read: Mapping[str, str], now: datetime) -> dict[str, datetime]:
    """Give per model where the part begins that a declared consumer reads, readers included.

    A model without a declared consumer, or whose reader's consumers are not known, has none.
    """
    begins: dict[str, datetime] = {}
    for name in reversed(graph.order):
        model = graph.models[name]
        starts: list[datetime | None] = []
        if name in furthest_read:
            starts.append(model.cadence.floor(start_at(furthest_read[name], model.cadence.tz)))
        starts += [_through(graph, reader, name, begins, now) for reader in graph.readers(name)]
        known_starts = [start for start in starts if start is not None]
        if starts and len(known_starts) == len(starts) and model.cadence.unit is not Unit.WHOLE:
            begins[name] = min(known_starts)
    return begins


def _through(
    graph: Graph, reader: str, name: str, begins: Mapping[str, datetime], now: datetime
) -> datetime | None:
    """Follow a reader's need to the cells that it reads of the model."""
    if reader not in begins:
        return None
    model, upstream_model = graph.models[reader], graph.models[name]
    upstream = next(up for up in model.reads if up.name == name)
    first = IntervalSet.of([Interval(begins[reader], model.cadence.next(begins[reader]))])
    read = cells_read(model.cadence, upstream, upstream_model.cadence, first, until=now)
    return instant_of(read.boundaries[0]) if read else upstream_model.cadence.start


def smaller_window(
    graph: Graph, name: str, change: Change, work: Sequence[CellWork], since: datetime | None
) -> str | None:
    """Propose the smaller window, if the planned cells begin before any consumer reads."""
    if since is None:
        return None
    cells = IntervalSet.union_all(part.cells for part in work if part.certain)
    if not cells or cells.boundaries[0] >= epoch_of(since):
        return None
    cadence = graph.models[name].cadence
    needed = cells.within(epoch_of(since), cells.boundaries[-1])
    first = _date(since, cadence.tz)
    if not needed:
        return f"no declared consumer reads any of these cells, all of them read from {first} on"
    counts = f"{cadence.count(needed)} of {cadence.count(cells)} cells"
    how = _asking_for(first, change, work)
    would = f"with {how} {counts} are built" if how else f"they read {counts}"
    return f"no declared consumer reads cells before {first}: {would}"


def _asking_for(first: str, change: Change, work: Sequence[CellWork]) -> str:
    """Say which option asks for the smaller window; a restatement names its range itself."""
    if change in (Change.MODIFIED, Change.INDIRECT):
        return f"--cutoff {first} --reason TEXT"
    filled = all(part.why in (Why.GAP, Why.NEW_SNAPSHOT) for part in work)
    return f"--start {first}" if filled else ""


def _date(instant: datetime, zone: str) -> str:
    """Give the local date of an instant."""
    return date.fromordinal(local_day(zone, epoch_of(instant))).isoformat()
